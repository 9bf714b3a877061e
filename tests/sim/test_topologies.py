"""Topologies are what they are called."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik.sim.topologies import Topology, balanced_tree, line, paper, random_graph, random_tree, star


@pytest.mark.parametrize(
    ("topology", "nodes", "diameter"),
    [(line(1), 1, 0), (line(5), 5, 4), (star(5), 5, 2), (balanced_tree(4, 3), 40, 6), (random_tree(50, 1), 50, None)],
)
def test_trees(topology: Topology, nodes: int, diameter: int | None) -> None:
    assert topology.is_tree and len(topology.nodes) == nodes
    assert diameter is None or topology.diameter == diameter
    assert [node for node, parent in topology.parents.items() if parent is None] == [topology.root]


def test_the_paper_has_107_brokers() -> None:
    topology = paper()
    assert (len(topology.nodes), len(topology.edges), len(topology.access)) == (107, 106, 67)
    at = [sum(one == router for one, other in topology.edges if other in topology.access) for router in topology.nodes]
    assert sorted(at) == [0] * 67 + [1] * 13 + [2] * 27
    far = topology.distances(topology.root)
    assert max(far.values()) == 4 and topology.root not in topology.access
    ways = [far[broker] for broker in topology.access]
    assert sum(ways) / len(ways) == pytest.approx(250 / 67)


@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 99))
def test_random_graphs(size: int, more: int, seed: int) -> None:
    more = min(more, (size - 1) * (size - 2) // 2)
    graph = random_graph(size, more, seed)
    assert len(graph.edges) == size - 1 + more and graph == random_graph(size, more, seed)
    assert graph.diameter == max(max(graph.distances(node).values()) for node in graph.nodes)


def test_a_graph_can_have_all_edges_and_no_more() -> None:
    assert len(set(random_graph(9, 28, 1).edges)) == 36
    with pytest.raises(ValueError, match="room for 28 more edges, not for 29"):
        random_graph(9, 29, 1)


def test_every_free_pair_is_as_likely() -> None:
    seen = Counter(random_graph(4, 1, seed).edges[3] for seed in range(3_000))
    expected = dict.fromkeys(combinations(("b0", "b1", "b2", "b3"), 2), 0.0)
    for seed in range(3_000):
        for pair in set(expected) - set(random_tree(4, seed).edges):
            expected[pair] += 1 / 3
    assert {pair: seen[pair] for pair in expected} == pytest.approx(expected, abs=110)


def test_a_large_graph_takes_no_longer_than_its_edges() -> None:
    assert len(random_graph(50_000, 50_000, 1).edges) == 99_999


@pytest.mark.parametrize(
    ("nodes", "edges", "reason"),
    [
        ((), (), "at least one node"),
        (("a", "b"), (), "reached"),
        (("a",), (("a", "b"),), "no node b"),
        (("a",), (("a", "a"),), "two nodes"),
        (("a", "b"), (("a", "b"), ("b", "a")), "at most one edge"),
    ],
)
def test_what_is_no_topology(nodes: tuple[str, ...], edges: tuple[tuple[str, str], ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Topology(nodes, edges)
