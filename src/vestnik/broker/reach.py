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
        """A neighbour says who is on its side; those of them that are somewhere else, too, are in a cycle."""
        twice = brokers & self.all(without=neighbour)
        if neighbour in self._behind and not twice:
            self._behind[neighbour] = brokers
        return twice

    def reports(self, but: NodeId | None = None) -> list[tuple[NodeId, Reach]]:
        """What to tell each neighbour but one."""
        return [(near, Reach(tuple(sorted(self.all(without=near))))) for near in self._behind if near != but]
