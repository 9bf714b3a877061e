"""What becomes of messages on their way."""

from __future__ import annotations

from random import Random
from statistics import mean

import pytest

from vestnik.sim.kernel import Kernel
from vestnik.sim.links import Channel, Constant, Delay, Exponential, Link, Uniform
from vestnik.wire.messages import Accepted, Message

SENT: list[Message] = [Accepted(number) for number in range(2_000)]


def arrivals(link: Link, *, close_at: float | None = None) -> tuple[list[Message], list[Message]]:
    """What arrives and what is lost of messages that are sent every 10 ms."""
    kernel = Kernel()
    arrived: list[Message] = []
    lost: list[Message] = []
    channel = Channel(kernel, link, Random(1), "a", "b", lambda m, _: arrived.append(m), lambda _, m: lost.append(m))
    for number, message in enumerate(SENT):
        kernel.at(number / 100, channel.send, message)
    if close_at is not None:
        kernel.at(close_at, lambda _: channel.close())
    kernel.settle()
    return arrived, lost


@pytest.mark.parametrize("delay", [Constant(0.3), Uniform(0.1, 0.9), Exponential(0.5)])
def test_fifo_links_keep_the_order(delay: Delay) -> None:
    assert arrivals(Link(delay)) == (SENT, [])


def test_other_links_do_not() -> None:
    arrived, lost = arrivals(Link(Uniform(0.1, 0.9), fifo=False))
    assert arrived != SENT and sorted(arrived, key=SENT.index) == SENT and lost == []


@pytest.mark.parametrize(
    ("delay", "average"), [(Constant(0.3), 0.3), (Uniform(0.1, 0.9), 0.5), (Exponential(0.5), 0.5)]
)
def test_delays_are_as_they_are_called(delay: Delay, average: float) -> None:
    sample = delay.sampler(Random(1))
    drawn = [sample() for _ in range(5_000)]
    assert mean(drawn) == pytest.approx(average, rel=0.05)
    assert delay.least <= min(drawn) and max(drawn) <= delay.most


def test_loss_and_duplication() -> None:
    arrived, lost = arrivals(Link(loss=0.1, duplication=0.2))
    assert len(lost) / len(SENT) == pytest.approx(0.1, abs=0.02)
    assert len(arrived) / (len(SENT) - len(lost)) == pytest.approx(1.2, abs=0.03)
    assert arrived == sorted(arrived, key=SENT.index), "a duplicate does not overtake"


def test_what_is_on_its_way_when_a_channel_closes_is_lost() -> None:
    arrived, lost = arrivals(Link(Constant(0.5)), close_at=10.0)
    assert arrived + lost == SENT
    assert len(arrived) == pytest.approx(950, abs=1)


@pytest.mark.parametrize(
    ("kind", "values"), [(Constant, (-1,)), (Uniform, (2, 1)), (Exponential, (0,)), (Link, (Constant(), 1))]
)
def test_there_are_no_impossible_links(kind: type, values: tuple[object, ...]) -> None:
    with pytest.raises(ValueError):
        kind(*values)
