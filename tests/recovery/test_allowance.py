"""Bytes in flight are bounded for all readers together, and every reader goes on."""

from __future__ import annotations

from broker.worlds import ACME, World, ids, quote
from vestnik import Event
from vestnik.recovery.allowance import WINDOW_SIZE, Allowance
from vestnik.recovery.limits import RecoveryLimits
from vestnik.wire.messages import NodeId, Position, Subscribe, Took, Unsubscribe
from vestnik.wire.packing import pack

MIB = 1024 * 1024


def test_a_reader_has_a_window_while_there_is_room_and_its_share_then() -> None:
    flight = Allowance(10 * MIB)
    for _ in range(20):
        flight.join(0)
    assert flight.room(0) == WINDOW_SIZE
    flight.change(10 * MIB)
    assert flight.room(0) == MIB // 2
    flight.leave(MIB)
    assert flight.room(0) == WINDOW_SIZE and flight.size == 9 * MIB


def test_the_share_of_very_many_readers_is_not_nothing() -> None:
    flight = Allowance(MIB)
    for _ in range(2 * MIB):
        flight.join(0)
    flight.change(MIB)
    assert flight.room(0) == 1, "so one event can be in flight"


def large(number: int) -> Event:
    event = quote(5, str(number))
    return event.replace(data={**event.data, "some": "x" * 100_000})


def in_flight(world: World) -> int:
    readers = [one.reader for client in world.broker.clients.values() for one in client.subscriptions.values()]
    return sum(len(pack(one.event)) for reader in readers for _, one in reader.after(0) if one.event is not None)


def crowd(world: World, size: int) -> list[NodeId]:
    clients = [f"c{number}" for number in range(size)]
    for client in clients:
        world.tell(client, Subscribe("s", ACME, window=1000, afresh=7))
    return clients


def test_all_readers_together_have_so_many_bytes_in_flight() -> None:
    world = World(limits=RecoveryLimits(in_flight=2 * MIB))
    crowd(world, 40)
    for number in range(30):
        world.publish("p", large(number))
    assert 2 * MIB <= in_flight(world) < 6.5 * MIB, "at most one event more for each reader, not 40 windows"


def test_readers_that_do_not_read_keep_nobody_from_reading() -> None:
    world = World(limits=RecoveryLimits(in_flight=2 * MIB))
    idle = crowd(world, 40)
    world.tell("d", Subscribe("s", ACME, window=1000, afresh=7))
    got: list[str] = []
    for number in range(30):
        got += ids(world.publish("p", large(number)), "d")
    while len(got) < 30:
        more = ids(world.tell("d", Took((Position("s", 7, len(got)),))), "d")
        assert more, "it goes on whenever it has taken"
        got += more
    assert got == [str(number) for number in range(30)]
    for client in idle:
        world.tell(client, Unsubscribe("s"))
    world.tell("d", Took((Position("s", 7, len(got)),)))
    assert world.broker.recovery.feeds.roster._allowance.size == 0, "nothing is counted for those that are gone"
