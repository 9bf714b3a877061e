"""All interleavings of small worlds: nothing is wrong in any of them, and planted mistakes are found."""

from __future__ import annotations

import pytest

from sim.explore_mistakes import MISTAKES, Plant, tell_entries_after_fetches, world
from vestnik.sim.explore.search import Search
from vestnik.sim.explore.settings import Settings
from vestnik.sim.explore.world import State, World

SMALL = world("subscribe unsubscribe publish cut", 2, 1, subscribed=False)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(operations=2),
        Settings(operations=2, advertisements=True),
        Settings(operations=2, faults=0, brokers=3, subscriptions=1, strategy="merging"),
        Settings(operations=2, faults=0, subscribed=True),
        world("publish cut", 2, 1),
        world("subscribe publish cut", 3, 1, subscribed=False),
    ],
)
def test_nothing_is_wrong_in_any_order(settings: Settings) -> None:
    outcome = Search(World(settings)).run()
    assert outcome.wrong == "" and outcome.is_complete and outcome.quiescent > 1


def test_what_is_only_remembered_does_not_make_states_differ() -> None:
    """A cache or a counter in the form of a node multiplies the states, and a search does not end."""
    assert Search(World(world("publish cut", 2, 1))).run().states < 6_000


@pytest.mark.parametrize(("plant", "settings"), MISTAKES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_mistake_is_found(plant: Plant, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    outcome = Search(World(settings), is_deep=True).run()
    assert outcome.wrong and outcome.path


def test_the_way_to_a_mistake_is_short_and_always_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = MISTAKES[tell_entries_after_fetches]
    tell_entries_after_fetches(monkeypatch)
    first, second = [Search(World(settings)).run() for _ in range(2)]
    deep = Search(World(settings), is_deep=True).run()
    assert first == second and first.wrong
    assert len(first.path) <= len(deep.path)
    assert [line for line in first.path if "publish" in line.split()] != []


def test_a_reduced_search_comes_to_the_same_ends_through_the_same_states_of_nodes() -> None:
    world = World(SMALL)
    searches = [Search(world, is_reduced=is_reduced) for is_reduced in (True, False)]
    reduced, whole = [search.run() for search in searches]
    assert searches[0].quiescent == searches[1].quiescent
    assert reduced.states < whole.states / 2
    assert reduced.nodes == whole.nodes, "each node goes through the same states"


def test_states_that_differ_in_names_alone_go_on_alike() -> None:
    """Whichever of the states that are taken for equal is met first, what follows is the same."""
    world = World(SMALL)
    first: dict[int, State] = {}
    waiting, pairs = [world.begin()], 0
    while waiting:
        state = waiting.pop()
        for move in world.moves(state):
            after = world.after(state, move)
            known = first.setdefault(world.key(after), after)
            if known is after:
                waiting.append(after)
            elif known != after:
                pairs += 1
                assert _following(world, known) == _following(world, after)
    assert pairs > 100


def _following(world: World, state: State) -> list[tuple[str, int]]:
    return [(move.what, world.key(world.after(state, move))) for move in world.moves(state)]


def test_a_search_can_be_ended() -> None:
    outcome = Search(World(SMALL)).run(lambda search: search.states < 100)
    assert not outcome.is_complete and outcome.wrong == "" and 100 <= outcome.states < 200
