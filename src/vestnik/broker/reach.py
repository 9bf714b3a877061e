"""Which brokers are behind which neighbour, and how far what they took has come here.

Brokers form a tree: none is behind two neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable

from vestnik.wire.messages import NodeId, Reach


class Surroundings:
    """What one broker knows of where the others are. A neighbour is within reach once it has said who is behind it."""

    def __init__(self, name: NodeId) -> None:
        self._name = name
        self._behind: dict[NodeId, dict[NodeId, int]] = {}
        self.position = 0  # all that this broker took up to here has been routed

    def all(self, without: NodeId | None = None) -> frozenset[NodeId]:
        """This broker, and all that are connected to it, but those behind one neighbour."""
        sides = [{near, *far} for near, far in self._behind.items() if near != without]
        return frozenset({self._name}.union(*sides))

    @property
    def positions(self) -> dict[NodeId, int]:
        """All brokers within reach, with this one: what they took up to here has come, as far as it is wanted."""
        return self._positions()

    def _positions(self, without: NodeId | None = None) -> dict[NodeId, int]:
        found = {self._name: self.position}
        for near, far in self._behind.items():
            if near != without:
                found |= far
        return found

    def position_of(self, broker: NodeId) -> int | None:
        """What a broker took up to here has come; None if it is not within reach."""
        return self.positions.get(broker)

    def way(self, to: NodeId) -> NodeId | None:
        """The neighbour that a broker is behind."""
        return next((near for near, far in self._behind.items() if to in far), None)

    def joined(self, neighbour: NodeId) -> None:
        self._behind[neighbour] = {}

    def parted(self, neighbour: NodeId) -> None:
        self._behind.pop(neighbour, None)

    def told(self, neighbour: NodeId, brokers: Iterable[tuple[NodeId, int]]) -> frozenset[NodeId]:
        """A neighbour says who is on its side. If these are this broker or other neighbours, the link closes a cycle.

        Others that are also elsewhere are being linked to twice; whoever does that will notice, and it is not believed.
        """
        said = dict(brokers)
        if neighbour in self._behind and not said.keys() & self.all(without=neighbour):
            self._behind[neighbour] = said
        return frozenset(said.keys() & ({self._name} | self._behind.keys() - {neighbour}))

    def report(self, to: NodeId) -> Reach:
        """What to tell a neighbour."""
        return Reach(tuple(sorted(self._positions(without=to).items())))

    @property
    def unmet(self) -> list[NodeId]:
        """The neighbours that have not said yet who is behind them."""
        return [near for near, far in self._behind.items() if not far]

    def behind(self, neighbour: NodeId) -> list[NodeId]:
        """The brokers on a neighbour's side, with itself."""
        return sorted(self._behind[neighbour])

    def neighbours(self, but: NodeId | None = None) -> list[NodeId]:
        return [near for near in self._behind if near != but]
