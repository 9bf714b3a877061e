"""How brokers are linked."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import isqrt
from random import Random
from typing import TypeAlias

from vestnik.wire.messages import NodeId

Edge: TypeAlias = tuple[NodeId, NodeId]


@dataclass(frozen=True)
class Topology:
    """A connected graph of brokers. The first is the root; clients are at those of `access`, by default at all."""

    nodes: tuple[NodeId, ...]
    edges: tuple[Edge, ...]
    access: tuple[NodeId, ...] = ()

    def __post_init__(self) -> None:
        known = set(self.nodes)
        if len(known) < len(self.nodes) or not self.nodes:
            raise ValueError("a topology has at least one node, and each once")
        ends = {node for edge in self.edges for node in edge}
        if not (ends | set(self.access)) <= known:
            raise ValueError(f"there is no node {min((ends | set(self.access)) - known)}")
        if any(one == other for one, other in self.edges):
            raise ValueError("an edge links two nodes")
        if len({frozenset(edge) for edge in self.edges}) < len(self.edges):
            raise ValueError("two nodes have at most one edge")
        if not self.access:
            object.__setattr__(self, "access", self.nodes)
        if len(self.distances(self.root)) < len(known):
            raise ValueError("every node must be reached from every other")

    @property
    def root(self) -> NodeId:
        return self.nodes[0]

    @property
    def is_tree(self) -> bool:
        return len(self.edges) == len(self.nodes) - 1

    @cached_property
    def neighbours(self) -> dict[NodeId, tuple[NodeId, ...]]:
        found: dict[NodeId, list[NodeId]] = {node: [] for node in self.nodes}
        for one, other in self.edges:
            found[one].append(other)
            found[other].append(one)
        return {node: tuple(others) for node, others in found.items()}

    @cached_property
    def parents(self) -> dict[NodeId, NodeId | None]:
        """The next node on the way to the root; None for the root itself."""
        far = self.distances(self.root)
        found: dict[NodeId, NodeId | None] = {}
        for node in self.nodes:
            found[node] = next((other for other in self.neighbours[node] if far[other] < far[node]), None)
        return found

    @cached_property
    def diameter(self) -> int:
        """The longest of the shortest ways between two nodes."""
        if not self.is_tree:
            return max(max(self.distances(node).values()) for node in self.nodes)
        far = self.distances(self.root)
        return max(self.distances(max(far, key=far.__getitem__)).values())

    def distances(self, start: NodeId) -> dict[NodeId, int]:
        """How many links lead from `start` to each node."""
        found = {start: 0}
        todo = deque([start])
        while todo:
            node = todo.popleft()
            for other in self.neighbours[node]:
                if other not in found:
                    found[other] = found[node] + 1
                    todo.append(other)
        return found


def line(size: int) -> Topology:
    return _below([number - 1 for number in range(1, size)])


def star(size: int) -> Topology:
    """All others around the root."""
    return _below([0] * (size - 1))


def balanced_tree(levels: int, fanout: int) -> Topology:
    """Each node above the last level has `fanout` below it."""
    above = sum(fanout**level for level in range(levels - 1))
    return _below([number for number in range(above) for _ in range(fanout)])


def random_tree(size: int, seed: int) -> Topology:
    """Each node is below a uniform one of those before it."""
    rng = Random(seed)
    return _below([rng.randrange(number) for number in range(1, size)])


def random_graph(size: int, more_edges: int, seed: int) -> Topology:
    """A random tree, and `more_edges` between uniform pairs of nodes that have none."""
    tree = random_tree(size, seed)
    pairs, linked = size * (size - 1) // 2, len(tree.edges)
    if more_edges > pairs - linked:
        raise ValueError(f"there is room for {pairs - linked} more edges, not for {more_edges}")
    drawn = (_pair(number) for number in Random(f"{seed} edges").sample(range(pairs), linked + more_edges))
    known = set(tree.edges)
    more = (edge for edge in drawn if edge not in known)
    return Topology(tree.nodes, (*tree.edges, *islice(more, more_edges)))


def _pair(number: int) -> Edge:
    """Pairs of nodes are numbered by the later node, then by the earlier one."""
    later = (1 + isqrt(1 + 8 * number)) // 2
    return f"b{number - later * (later - 1) // 2}", f"b{later}"


def paper() -> Topology:
    """The 107 brokers of the routing experiments, with 106 links.

    40 routers on four levels with three below each, and 67 local brokers below them, where clients are: one at each
    router that has routers below it, two at each that has none. The root is a router.
    """
    routers = balanced_tree(4, 3)
    inner = {parent for parent in routers.parents.values() if parent is not None}
    nodes = tuple(node.replace("b", "r") for node in routers.nodes)
    edges = [(one.replace("b", "r"), other.replace("b", "r")) for one, other in routers.edges]
    homes = [node.replace("b", "r") for node in routers.nodes for _ in range(1 if node in inner else 2)]
    locals_ = tuple(f"l{number}" for number in range(len(homes)))
    return Topology((*nodes, *locals_), (*edges, *zip(homes, locals_, strict=True)), locals_)


def _below(parents: list[int]) -> Topology:
    """Node 0 and for each parent one more node, linked to it."""
    nodes = tuple(f"b{number}" for number in range(len(parents) + 1))
    return Topology(nodes, tuple((nodes[parent], nodes[child]) for child, parent in enumerate(parents, 1)))
