"""Which brokers are behind which neighbour. Brokers form a tree: none is behind two."""

from __future__ import annotations

from vestnik.wire.messages import NodeId, Reach


class Surroundings:
    """What one broker knows of where the others are."""

    def __init__(self, name: NodeId) -> None:
        self._name = name
        self._behind: dict[NodeId, frozenset[NodeId]] = {}

    def all(self, without: NodeId | None = None) -> frozenset[NodeId]:
        """This broker, and all that are connected to it, but those behind one neighbour."""
        return frozenset({self._name}.union(*(far for near, far in self._behind.items() if near != without)))

    def way(self, to: NodeId) -> NodeId | None:
        """The neighbour that a broker is behind."""
        return next((near for near, far in self._behind.items() if to in far), None)

    def joined(self, neighbour: NodeId) -> None:
        self._behind[neighbour] = frozenset({neighbour})

    def parted(self, neighbour: NodeId) -> None:
        self._behind.pop(neighbour, None)

    def told(self, neighbour: NodeId, brokers: frozenset[NodeId]) -> frozenset[NodeId]:
        """A neighbour says who is on its side. If these are this broker or other neighbours, the link closes a cycle.

        Others that are also elsewhere are being linked to twice; whoever does that will notice, and it is not believed.
        """
        if neighbour in self._behind and not brokers & self.all(without=neighbour):
            self._behind[neighbour] = brokers
        return brokers & ({self._name} | self._behind.keys() - {neighbour})

    def report(self, to: NodeId) -> Reach:
        """What to tell a neighbour."""
        return Reach(tuple(sorted(self.all(without=to))))

    def neighbours(self, but: NodeId | None = None) -> list[NodeId]:
        return [near for near in self._behind if near != but]
