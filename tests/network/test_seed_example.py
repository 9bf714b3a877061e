"""A consumer, a producer, a history of ten and a factory, each a process of its own; brokers, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from network.programs import World, in_order

ORDERS = [
    ("factory", "history", "consumer"),
    ("consumer", "factory", "history"),
    ("history", "consumer", "factory"),
]


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_any_order_of_starting(world: World, order: tuple[str, ...]) -> None:
    """The producer runs while there are consumers; who comes later begins with the last ten."""
    _, one = world.broker("b1")
    linked, two = world.broker("b2", "--join", one)
    linked.until("linked with")
    where = {"factory": one, "history": two, "consumer": two}
    running = {name: world.program(name, where[name]) for name in order}
    factory, first = running["factory"], running["consumer"]
    assert factory.line() == "starting the service"
    running["history"].until("keeping")
    past, live = first.numbers(15)
    assert in_order(past + live)
    second = world.program("consumer", one)
    past, live = second.numbers(15)
    assert len(past) == 10 and in_order(past + live), "nothing is missing, nothing comes twice"
    first.interrupt()
    second.interrupt()
    assert factory.line() == "stopping the service"
    again = world.program("consumer", one)
    assert factory.line() == "starting the service"
    past, live = again.numbers(15)
    assert len(past) == 10 and in_order(past + live), "it goes on where it was"


def test_a_subscriber_vanishes_without_a_word(world: World) -> None:
    """Its lease runs out, and with it the reason to produce."""
    _, one = world.broker("b1", "--lease", "1", "--heartbeat", "0.3", "--sweep", "0.2")
    linked, two = world.broker("b2", "--join", one, "--lease", "1", "--heartbeat", "0.3", "--sweep", "0.2")
    linked.until("linked with")
    factory, consumer = world.program("factory", one), world.program("consumer", two)
    assert factory.line() == "starting the service"
    consumer.numbers(3)
    consumer.kill()
    assert factory.line() == "stopping the service"


def test_the_broker_of_the_subscriber_is_killed(world: World) -> None:
    _, one = world.broker("b1")
    two, where = world.broker("b2", "--join", one)
    two.until("linked with")
    factory, consumer = world.program("factory", one), world.program("consumer", where)
    assert factory.line() == "starting the service"
    consumer.numbers(3)
    two.kill()
    assert factory.line() == "stopping the service"
    world.broker("b2", "--join", one, listen=where)
    assert factory.line() == "starting the service", "the consumer is back by itself"


def test_the_history_outlives_the_broker_that_took_the_events(world: World) -> None:
    broker, where = world.broker("b1")
    world.program("history", where).until("keeping")
    producer, consumer = world.program("producer", where), world.program("consumer", where)
    consumer.numbers(15)
    producer.interrupt()
    consumer.interrupt()
    broker.kill()
    again, _ = world.broker("b2", listen=where)
    again.until("linked with")
    late = world.program("consumer", where)
    past, live = late.numbers(10)
    assert in_order(past) and not live
