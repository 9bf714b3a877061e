"""Hierarchical routing, as in JEDI: only the parent is told, and every event goes up to it."""

from __future__ import annotations

from vestnik.routing.reductions import Nothing, Reduction, Strategy
from vestnik.wire.messages import NodeId


class Hierarchical:
    """Varies any strategy. The root has no parent. Advertisements go as in `inner`: who is below must know of them."""

    def __init__(self, inner: Strategy, parent: NodeId | None) -> None:
        self.inner = inner
        self._parent = parent

    @property
    def name(self) -> str:
        return f"hierarchical {self.inner.name}"

    @property
    def tagged(self) -> bool:
        return self.inner.tagged

    @property
    def hides(self) -> bool:
        return self.inner.hides

    def reduction(self, neighbour: NodeId) -> Reduction:
        return self.inner.reduction(neighbour) if neighbour == self._parent else Nothing()

    def floods(self, neighbour: NodeId) -> bool:
        return neighbour == self._parent or self.inner.floods(neighbour)
