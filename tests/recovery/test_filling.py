"""A gap at the start of a log is told, unless a history has those offsets."""

from __future__ import annotations

import pytest

from broker.worlds import ACME, Far, World, asked, ids, quote, sent_to
from vestnik.broker.effects import Effect, LinkDown
from vestnik.recovery.filling import without
from vestnik.wire.messages import Fetch, Fetched, Subscribe
from vestnik.wire.origins import Cover, Origin, OriginHere, PageRead, Slice, Span
from vestnik.wire.replays import Replay

H, X = Origin("h", 1), Origin("x", 1)
ALL = Replay(all=True)


def forgetful() -> tuple[World, Far]:
    """A world with a log that has dropped all but the last of five events, and a history."""
    world = World()
    far = world.meet(room=0)
    far.accept(*[quote(1, str(n), time=n) for n in range(1, 6)])
    world.handle("v", OriginHere(H, history=True))
    return world, far


def answered(world: World, effects: list[Effect], *covers: Cover) -> list[Effect]:
    """Let the history say that it has nothing that is wanted, and which parts of logs it has."""
    (read,) = [one for one in asked(effects) if one.origin == H]
    return effects + world.tell("v", PageRead(H, read.request, Slice(0, (), 1, covers=covers), 1))


def replayed(world: World, *covers: Cover) -> list[str]:
    return ids(answered(world, world.tell("c", Subscribe("s", ACME, afresh=7, replay=ALL)), *covers))


def test_a_history_that_has_nothing_of_a_log_fills_no_gap() -> None:
    world, _ = forgetful()
    assert replayed(world) == ["x/1 1-5", "5"]


@pytest.mark.parametrize(
    ("span", "told"),
    [(Span(1, 5), []), (Span(0, 99), []), (Span(3, 9), ["x/1 1-3"]), (Span(2, 3), ["x/1 1-2", "x/1 3-5"])],
)
def test_what_a_history_has_is_no_gap(span: Span, told: list[str]) -> None:
    world, _ = forgetful()
    assert replayed(world, Cover(X, span)) == [*told, "5"]


def test_another_log_of_the_same_broker_fills_nothing() -> None:
    world, _ = forgetful()
    assert replayed(world, Cover(Origin("x", 2), Span(0, 99))) == ["x/1 1-5", "5"]


def test_a_history_that_is_lost_has_filled_nothing() -> None:
    world, _ = forgetful()
    effects = world.tell("c", Subscribe("s", ACME, afresh=7, replay=ALL))
    (read,) = [one for one in asked(effects) if one.origin == H]
    copy = quote(1, "y", time=1).stamped("y", 1)
    page = Slice(0, (copy,), 2, None, "", (1,), 0, (1,), covers=(Cover(X, Span(0, 99)),))
    effects += world.tell("v", PageRead(H, read.request, page, 3))
    assert ids(effects) == ["y"]
    assert ids(world.tell("b", LinkDown("v"))) == ["x/1 1-5", "5"]


def test_a_history_that_has_less_than_before_fills_less() -> None:
    world, _ = forgetful()
    effects = world.tell("c", Subscribe("s", ACME, afresh=7, replay=ALL))
    (read,) = [one for one in asked(effects) if one.origin == H]
    copy = quote(1, "y", time=1).stamped("y", 1)
    page = Slice(0, (copy,), 2, None, "", (1,), 0, (1,), covers=(Cover(X, Span(2, 99)),))
    effects = world.tell("v", PageRead(H, read.request, page, 3))
    assert ids(effects) == ["x/1 1-2", "y"]
    (read,) = [one for one in asked(effects) if one.origin == H]
    page = Slice(2, (), 3, covers=(Cover(X, Span(4, 99)),))
    assert ids(world.tell("v", PageRead(H, read.request, page, 3))) == ["x/1 2-4", "5"]


def test_a_history_that_comes_later_is_not_waited_for() -> None:
    world = World()
    world.meet(room=0).accept(*[quote(1, str(n), time=n) for n in range(1, 6)])
    assert ids(world.tell("c", Subscribe("s", ACME, afresh=7, replay=ALL))) == ["x/1 1-5", "5"]


def test_a_log_that_is_read_after_the_histories_has_the_same_gap() -> None:
    world, far = forgetful()
    world.silent = {X}
    effects = answered(world, world.tell("c", Subscribe("s", ACME, afresh=7, replay=ALL)), Cover(X, Span(0, 3)))
    assert ids(effects) == []
    (read,) = [one for one in asked(effects) if one.origin == X]
    assert ids(world.tell("u", far.page(read))) == ["x/1 3-5", "5"]


@pytest.mark.parametrize(("covers", "missing"), [((), 1), ((Cover(X, Span(0, 5)),), 0)])
def test_a_fetch_says_what_no_history_has(covers: tuple[Cover, ...], missing: int) -> None:
    world, _ = forgetful()
    effects = answered(world, world.tell("c", Fetch(ACME, ALL, request=5)), *covers)
    *_, end = [one for one in sent_to(effects, "c") if isinstance(one, Fetched)]
    assert not end.more and len(end.lost) == missing and all(reason.startswith("x/1: ") for reason in end.lost)


def test_what_is_left_of_a_span() -> None:
    assert without(Span(1, 9), []) == [Span(1, 9)]
    assert without(Span(1, 9), [Span(5, 6), Span(2, 4), Span(3, 4)]) == [Span(1, 2), Span(4, 5), Span(6, 9)]
    assert without(Span(1, 9), [Span(0, 20)]) == [] and without(Span(3, 5), [Span(7, 8)]) == [Span(3, 5)]
    assert without(Span(3, 5), [Span(0, 2)]) == [Span(3, 5)]
