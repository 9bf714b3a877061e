"""Virtual time."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik.sim.kernel import SELDOM, Kernel


@given(st.lists(st.integers(0, 5)))
def test_actions_come_by_time_and_then_in_the_order_in_which_they_were_asked_for(times: list[int]) -> None:
    kernel = Kernel()
    seen: list[tuple[int, int]] = []
    for number, time in enumerate(times):
        kernel.at(time, seen.append, (time, number))
    kernel.run(5)
    assert seen == sorted(seen) and len(seen) == len(times)


def test_the_clock_is_at_each_action_and_at_the_end() -> None:
    kernel = Kernel()
    seen: list[float] = []
    kernel.at(2.0, lambda _: seen.append(kernel.now))
    kernel.at(7.0, lambda _: seen.append(kernel.now))
    kernel.run(5.0)
    assert (seen, kernel.now) == ([2.0], 5.0)
    kernel.at(1.0, lambda _: seen.append(kernel.now))
    kernel.run(6.0)
    assert seen == [2.0, 5.0], "what is late happens now: time does not run backwards"


def test_settling_waits_for_actions_and_not_for_timers() -> None:
    kernel = Kernel()
    rung: list[float] = []

    def ring(_: object) -> None:
        rung.append(kernel.now)
        kernel.wake(kernel.now + 1, ring)

    kernel.wake(1.0, ring)
    kernel.at(2.5, lambda _: None)
    assert kernel.settle() and (rung, kernel.now) == ([1.0, 2.0], 2.5)
    assert kernel.settle() and kernel.now == 2.5


def test_settling_ends_at_a_time() -> None:
    kernel = Kernel()

    def again(_: object) -> None:
        kernel.at(kernel.now + 1, again)

    kernel.at(0.0, again)
    assert not kernel.settle(10.0)
    assert kernel.now == 10.0


@pytest.mark.parametrize("act", [lambda kernel: kernel.run(1.0), Kernel.settle], ids=["run", "settle"])
def test_the_collector_is_left_as_it_was(act: Callable[[Kernel], object]) -> None:
    before = gc.get_threshold()
    kernel = Kernel()
    seen: list[int] = []
    kernel.at(1.0, lambda _: seen.append(gc.get_threshold()[0]))
    act(kernel)
    kernel.at(1.0, seen.remove, "not there")
    with pytest.raises(ValueError, match="not in list"):
        act(kernel)
    assert seen == [SELDOM]
    assert gc.get_threshold() == before
