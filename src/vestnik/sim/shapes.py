"""Topologies as they are asked for in a scenario."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from vestnik.sim import topologies
from vestnik.sim.topologies import Topology

MOST_BROKERS = 100_000


class Line(Struct, frozen=True, tag="line", tag_field="kind", forbid_unknown_fields=True):
    brokers: int

    def __post_init__(self) -> None:
        check_size(self.brokers)

    def build(self, seed: int) -> Topology:
        return topologies.line(self.brokers)


class Star(Struct, frozen=True, tag="star", tag_field="kind", forbid_unknown_fields=True):
    brokers: int

    def __post_init__(self) -> None:
        check_size(self.brokers)

    def build(self, seed: int) -> Topology:
        return topologies.star(self.brokers)


class Tree(Struct, frozen=True, tag="tree", tag_field="kind", forbid_unknown_fields=True):
    levels: int
    fanout: int

    def __post_init__(self) -> None:
        if not (1 <= self.levels <= 30 and 1 <= self.fanout <= MOST_BROKERS):
            raise ValueError("a tree has 1 to 30 levels and a fanout from 1")
        check_size(sum(self.fanout**level for level in range(self.levels)))

    def build(self, seed: int) -> Topology:
        return topologies.balanced_tree(self.levels, self.fanout)


class Paper(Struct, frozen=True, tag="paper", tag_field="kind", forbid_unknown_fields=True):
    """The 107 brokers of the routing experiments."""

    def build(self, seed: int) -> Topology:
        return topologies.paper()


class RandomTree(Struct, frozen=True, tag="random-tree", tag_field="kind", forbid_unknown_fields=True):
    brokers: int

    def __post_init__(self) -> None:
        check_size(self.brokers)

    def build(self, seed: int) -> Topology:
        return topologies.random_tree(self.brokers, seed)


class RandomGraph(Struct, frozen=True, tag="random-graph", tag_field="kind", forbid_unknown_fields=True):
    """A random tree with some more links."""

    brokers: int
    more_links: int

    def __post_init__(self) -> None:
        check_size(self.brokers)
        room = (self.brokers - 1) * (self.brokers - 2) // 2
        if not 0 <= self.more_links <= room:
            raise ValueError(f"there is room for 0 to {room} more links, not for {self.more_links}")

    def build(self, seed: int) -> Topology:
        return topologies.random_graph(self.brokers, self.more_links, seed)


Shape: TypeAlias = Line | Star | Tree | Paper | RandomTree | RandomGraph


def check_size(brokers: int) -> None:
    if not 1 <= brokers <= MOST_BROKERS:
        raise ValueError(f"there are 1 to {MOST_BROKERS:,} brokers, not {brokers:,}")
