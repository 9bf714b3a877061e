"""Since when nothing has happened."""

from __future__ import annotations

from vestnik.broker.effects import LinkUp
from vestnik.observe.calm import AGAIN, QUIET, STOPPED, Calm
from vestnik.observe.facts import GivenAgain, Said


def looked(calm: Calm, first: int, last: int) -> list[tuple[int, float]]:
    """Return at which looks, one a second, it is told since when nothing has happened."""
    found = [(second, calm.since(float(second))) for second in range(first, last + 1)]
    return [(second, since) for second, since in found if since is not None]


def test_it_is_told_after_a_while_and_again_and_anew_after_something_happened() -> None:
    calm = Calm()
    calm.disturbed(0.5)
    first, again = int(QUIET) + 1, int(QUIET + AGAIN) + 1
    assert looked(calm, 1, again) == [(first, 0.5), (again, 0.5)]
    calm.take([LinkUp("u")], again + 0.5)
    assert looked(calm, again + 1, again + first) == [(again + first, again + 0.5)]


def test_renewals_and_answers_of_nothing_do_not_count_and_pages_for_others_do() -> None:
    calm = Calm()
    calm.take([LinkUp("u")], 1.0)
    calm.take([Said("u", "AdminS"), GivenAgain("c", ((7, 3),), ())], 1.5)
    assert looked(calm, 2, int(QUIET) + 1) == [(int(QUIET) + 1, 1.0)]
    calm.take([Said("u", "PageRead")], QUIET + 1.5)
    assert looked(calm, int(QUIET) + 2, int(QUIET) + 3) == []


def test_a_process_that_was_stopped_was_not_quiet() -> None:
    calm = Calm()
    calm.disturbed(0.0)
    assert calm.since(1.0) is None
    assert calm.since(1.5 + STOPPED) is None, "what came meanwhile is not handled yet"
