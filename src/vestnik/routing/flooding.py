"""Flooding: nothing is told, every event goes everywhere."""

from __future__ import annotations

from vestnik.routing.reductions import Nothing, Reduction
from vestnik.wire.messages import NodeId


class Flooding:
    name = "flooding"
    tagged = False
    hides = False

    def reduction(self, neighbour: NodeId) -> Reduction:
        return Nothing()

    def floods(self, neighbour: NodeId) -> bool:
        return True
