"""What brokers write with `--trace` is right, and `vestnik check` reads it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

import vestnik
from network.test_durable import process
from network.worlds import ANYWHERE, broker, client, logged, quote, taken, until
from vestnik.errors import NotAccepted
from vestnik.server import dispatch as dispatch_module
from vestnik.server import host as host_module
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.trace.lives import read_lives, together
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Crashed,
    Detached,
    Dropped,
    Lost,
    Missing,
    Notified,
    Published,
    Rejected,
    Restarted,
    Settled,
    Subscribed,
    Unsubscribed,
)
from vestnik.transport.addresses import read_address
from vestnik.verify.due import SKEW, due
from vestnik.verify.histories import History
from vestnik.verify.quiet import agreements
from vestnik.verify.traces import check_trace
from vestnik.wire.messages import Goodbye

VESTNIK = Path(sys.executable).with_name("vestnik")


def read(*files: Path) -> list[AnyRecord]:
    return together([life for file in files for life in read_lives(file.read_bytes().splitlines(keepends=True))])


def kinds(records: list[AnyRecord], *wanted: type) -> list[str]:
    return [type(record).__name__ for record in records if isinstance(record, wanted)]


async def test_the_traces_of_two_brokers_are_right_as_one(tmp_path: Path) -> None:
    t1, t2 = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    settled: list[AnyRecord] = []
    async with (
        broker("b1", trace=t1) as b1,
        broker("b2", (b1,), trace=t2) as b2,
        client(b1, "p") as p,
        client(b2, "c") as c,
    ):
        one, two = await c.subscribe("price > 10"), await c.subscribe("price > 20")
        await until(lambda: len(b1.host.core.router.subscriptions) == 1)
        settled.append(Settled(time.time()))
        await p.publish_many([quote(price) for price in (5, 15, 25)])
        assert await taken(one, 2) == [15, 25] and await taken(two, 1) == [25]
        settled.append(Settled(time.time()))
        await one.change("price > 100")
        await two.unsubscribe()
        await until(lambda: "100" in str([entry.filter for entry, _ in b1.host.core.router.subscriptions]))
        settled.append(Settled(time.time()))
        await p.publish_many([quote(200), quote(50)])
        assert await taken(one, 1) == [200]
        settled.append(Settled(time.time()))
    records = sorted([*read(t1, t2), *settled], key=lambda record: record.at)
    assert check_trace(records) == []
    assert kinds(records, Published) == ["Published"] * 5
    assert [n.numbers for n in records if isinstance(n, Notified)] == [
        (("s1", 1),), (("s1", 2),), (("s2", 1),), (("s1", 3),)
    ]  # fmt: skip
    assert kinds(records, Subscribed, Unsubscribed)[:4] == ["Subscribed", "Subscribed", "Subscribed", "Unsubscribed"]
    assert sorted(kinds(records, Attached, Detached)) == ["Attached", "Attached", "Detached", "Detached"]
    without = [record for record in records if not isinstance(record, Notified)]
    assert [violation.rule for violation in check_trace(without)] == ["liveness"] * 4


@pytest.fixture
def soon_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let brokers look often whether anything happens."""
    monkeypatch.setattr("vestnik.server.measures.EVERY", 0.05)
    monkeypatch.setattr("vestnik.observe.calm.QUIET", 0.3)
    monkeypatch.setattr("vestnik.observe.calm.AGAIN", 0.3)


async def until_settled(*files: Path) -> None:
    """Wait until the brokers of some traces agree that all that is in them by now has settled."""
    now = time.time()

    def is_settled() -> bool:
        lives = [life for file in files for life in read_lives(file.read_bytes().splitlines(keepends=True))]
        records = sorted([record for life in lives for record in life.records], key=lambda record: record.at)
        return any(records[number].at > now for number in agreements(records))

    await until(is_settled)


def without(records: list[AnyRecord], *prices: int) -> list[AnyRecord]:
    return [record for record in records if not (isinstance(record, Notified) and record.event.data["price"] in prices)]


@pytest.mark.usefixtures("soon_quiet")
async def test_what_is_missing_is_found_without_being_told_that_all_has_settled(tmp_path: Path) -> None:
    t1, t2 = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    async with (
        broker("b1", trace=t1) as b1,
        broker("b2", (b1,), trace=t2) as b2,
        client(b1, "p") as p,
        client(b2, "c") as c,
    ):
        await until(lambda: len(b2.host.core.topology.brokers()) == 2)
        subscription = await c.subscribe("price > 10", name="s")
        await asyncio.sleep(SKEW / 1e6)
        await p.publish_many([quote(price) for price in (5, 15, 25)])
        assert await taken(subscription, 2) == [15, 25]
        await until_settled(t1, t2)
        await p.publish(quote(35))
        assert await taken(subscription, 1) == [35]
        await until_settled(t1, t2)
    records = read(t1, t2)
    assert check_trace(records, stored=True) == []
    for prices in ((15,), (25, 35)):
        missed = [one for one in check_trace(without(records, *prices), stored=True) if one.rule == "due"]
        assert [one.event.data["price"] for one in missed if one.event] == list(prices)
        assert {(one.client, one.subscription) for one in missed} == {("c", "s")}


@pytest.mark.usefixtures("soon_quiet")
async def test_what_is_missing_of_an_outage_is_found(tmp_path: Path) -> None:
    """The broker of the subscription is killed, and the event is published meanwhile. Its next life goes on."""
    t1, t2 = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    async with AsyncExitStack() as stack:
        b1 = await stack.enter_async_context(broker("b1", trace=t1, data=tmp_path / "1"))
        b2 = await Broker(Settings(name="b2", listen=ANYWHERE, join=(read_address(b1.address),), trace=t2)).__aenter__()
        p, c = [await stack.enter_async_context(client(b, name)) for b, name in ((b1, "p"), (b2, "c"))]
        await until(lambda: len(b2.host.core.topology.brokers()) == 2)
        subscription = await c.subscribe("price > 10", name="s", settled=True)
        await asyncio.sleep(SKEW / 1e6)
        await p.publish(quote(15))
        assert await taken(subscription, 1) == [15]
        await b2.__aexit__()
        await p.publish(quote(25))
        await stack.enter_async_context(broker("b2", (b1,), listen=read_address(b2.address), trace=t2))
        assert await taken(subscription, 1) == [25]
        await until_settled(t1, t2)
    records = read(t1, t2)
    restarts = [record.node for record in records if isinstance(record, Restarted)]
    assert sorted(restarts) == ["b1", "b2", "b2"]
    (again,) = {one.since for one in records if isinstance(one, Subscribed)}
    assert again is not None, "it is the same subscription in both lives"
    assert check_trace(records, stored=True) == []
    for price in (15, 25):
        missed = [one for one in check_trace(without(records, price), stored=True) if one.rule == "due"]
        assert [one.event.data["price"] for one in missed if one.event] == [price]


@pytest.mark.usefixtures("soon_quiet")
async def test_what_is_missing_of_a_replay_or_after_cursors_is_found(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    async with broker("b", trace=trace, data=tmp_path / "data") as b, client(b, "p") as p:
        await p.publish_many([quote(price) for price in (1, 2, 3)])
        (log,) = b.host.core.recovery.read_up_to()
        async with client(b, "r") as r, client(b, "c") as c:
            replayed = await r.subscribe("price > 1", name="s", replay=vestnik.Replay(all=True))
            resumed = await c.subscribe("price > 0", name="s", seen={str(log): 2})
            assert await taken(replayed, 2) == [2, 3] and await taken(resumed, 2) == [2, 3]
            await until_settled(trace)
    records = read(trace)
    assert [one.replayed for one in records if isinstance(one, Notified) and one.client == "r"] == [True, True]
    assert check_trace(records, stored=True) == []
    missed = [one for one in check_trace(without(records, 2, 1), stored=True) if one.rule == "due"]
    assert sorted((one.client, one.event.data["price"]) for one in missed if one.event) == [("c", 2), ("r", 2)]


@pytest.mark.usefixtures("soon_quiet")
async def test_a_gap_excuses_what_is_in_it(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    async with broker(trace=trace) as b, client(b, "p") as p, client(b, "c") as c:
        subscription = await c.subscribe("price > 0", name="s")
        await asyncio.sleep(SKEW / 1e6)
        await p.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        b.host.full(b.host._ends["c"])
        tail = b.host.core.recovery.tail
        tail.room = tail._size * 5 // 2  # for two events
        await p.publish_many([quote(price) for price in range(2, 7)])
        b.host.drained(b.host._ends["c"])
        assert await taken(subscription, 2) == [5, 6]
        await until_settled(trace)
    records = read(trace)
    assert not list(due(History(records)))
    untold = [record for record in records if not isinstance(record, Missing)]
    assert [one.event.data["price"] for one in due(History(untold)) if one.event] == [2, 3, 4]
    assert [one.event.data["price"] for one in due(History(without(records, 5))) if one.event] == [5]


async def test_what_goes_no_further_is_recorded(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    async with broker(trace=trace, advertisements=True) as b, client(b, "p") as p:
        await p.advertise("price > 0", name="a")
        await p.publish(quote(1, expires=1))
        with pytest.raises(NotAccepted):
            await p.publish(quote(-1))
    records = read(trace)
    assert kinds(records, Advertised, Published, Dropped, Rejected) == [
        "Advertised",
        "Published",
        "Dropped",
        "Rejected",
    ]
    assert check_trace(records, advertisements=True) == []


async def test_what_a_slow_client_is_sent_later_is_not_lost_in_the_trace(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    async with broker(trace=trace) as b, client(b, "p") as p, client(b, "c") as c:
        subscription = await c.subscribe("price > 0", name="s", queue=2)
        b.host.full(b.host._ends["c"])
        await p.publish_many([quote(price) for price in range(1, 7)])
        b.host.drained(b.host._ends["c"])
        assert await taken(subscription, 6) == [1, 2, 3, 4, 5, 6]
    records = read(trace)
    assert not kinds(records, Lost, Missing)
    assert [r.event.data["price"] for r in records if isinstance(r, Notified)] == [1, 2, 3, 4, 5, 6]
    assert check_trace(records) == []


async def test_what_the_log_has_no_more_is_missing_in_the_trace(tmp_path: Path) -> None:
    """The log is in memory, and full before the client reads on."""
    trace = tmp_path / "t.jsonl"
    async with broker(trace=trace) as b, client(b, "p") as p, client(b, "c") as c:
        subscription = await c.subscribe("price > 0", name="s")
        await p.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        b.host.full(b.host._ends["c"])
        tail = b.host.core.recovery.tail
        tail.room = tail._size * 5 // 2  # for two events
        await p.publish_many([quote(price) for price in range(2, 7)])
        b.host.drained(b.host._ends["c"])
        notification = await subscription.get(10)
        assert notification.event.data["price"] == 5 and notification.gap is not None
    records = read(trace)
    (missing,) = [r for r in records if isinstance(r, Missing)]
    assert (missing.client, missing.name) == ("c", "s") and "no data folder" in missing.reason
    assert check_trace(records) == []


async def test_a_broker_that_is_killed_goes_on_in_the_same_file(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    options = ["--data", str(tmp_path / "data"), "--trace", str(trace)]
    with process("--listen", "127.0.0.1:0", *options) as (running, address):
        async with vestnik.connect(address, name="c") as bus:
            subscription = await bus.subscribe("price > 0")
            await bus.publish(quote(1))
            assert await taken(subscription, 1) == [1]
            running.kill()
            await asyncio.to_thread(running.wait)
            with trace.open("ab") as file:
                file.write(b'{"op":"Published","at":1')  # as one who is killed leaves it
            with process("--listen", address, *options) as (again, _):
                await bus.publish(quote(2))
                assert await taken(subscription, 1) == [2]
                again.terminate()
                await asyncio.to_thread(again.wait)
    lives = list(read_lives(trace.read_bytes().splitlines(keepends=True)))
    assert [(life.node, life.is_whole) for life in lives] == [("b", False), ("b", True)]
    assert kinds(together(lives), Crashed, Unsubscribed) == ["Crashed", "Unsubscribed"] * 2
    done = subprocess.run([VESTNIK, "check", trace], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith("nothing is wrong: ")
    assert done.stderr.startswith(f"vestnik: {trace}: b was killed, and went on; ")


async def test_what_was_stored_and_not_recorded_is_recorded_by_the_next_life(tmp_path: Path) -> None:
    trace = tmp_path / "b.jsonl"
    async with broker(data=tmp_path, trace=trace) as b, client(b) as c:
        await c.publish_many([quote(price, source="s", id=str(price)) for price in (1, 2, 3)])
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(line for line in lines if b'"Published"' not in line or b'"id":"3"' not in line))
    assert len(kinds(read(trace), Published)) == 2
    async with broker(data=tmp_path, trace=trace):
        pass
    assert sorted(r.event.id for r in read(trace) if isinstance(r, Published)) == ["1", "2", "3"]


@pytest.mark.usefixtures("soon_quiet")
async def test_what_is_missing_is_found_also_if_the_next_life_recorded_that_it_was_stored(tmp_path: Path) -> None:
    """The broker was killed after it had stored an event and before it recorded that; its publisher repeats it."""
    trace = tmp_path / "b.jsonl"
    async with broker(data=tmp_path, trace=trace) as b, client(b, "p") as p:
        await p.publish_many([quote(price, source="s", id=str(price)) for price in (1, 2)])
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(line for line in lines if b'"Published"' not in line or b'"id":"2"' not in line))
    async with broker(data=tmp_path, trace=trace) as b, client(b, "c") as c:
        subscription = await c.subscribe("price > 0", name="s", replay=vestnik.Replay(all=True))
        assert await taken(subscription, 2) == [1, 2]
        await until_settled(trace)
    records = read(trace)
    assert check_trace(records, stored=True) == []
    missed = [one.event.data["price"] for one in due(History(without(records, 1, 2))) if one.event]
    assert missed == [1, 2]
    assert kinds(records, Restarted, Published) == ["Restarted", "Published"] * 2, "a log is named before its events"


@pytest.mark.parametrize("cause", ["much", "ping", "refusal", "goodbye", "time"])
async def test_what_a_client_is_sent_is_in_the_trace_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cause: str
) -> None:
    """Whatever makes it go out: what waits for the next flush goes with it."""
    trace = tmp_path / "b.jsonl"
    async with broker(trace=trace) as b, client(b, "p") as p, client(b, "c") as c:
        await c.subscribe("price > 0")
        host, dispatch = b.host, b.host.engine.dispatch
        end, is_recorded = host._ends["c"], list[bool]()
        flush = end.flush

        def noted() -> None:
            if end.unsent:
                is_recorded.append(b'"Notified"' in trace.read_bytes())
            flush()

        monkeypatch.setattr(end, "flush", noted)
        monkeypatch.setattr(dispatch, "_has_time", lambda: False)
        monkeypatch.setattr(dispatch_module, "FLUSH_EVERY", 3600.0)
        monkeypatch.setattr(dispatch, "_flushed_at", time.perf_counter())
        if cause == "much":
            monkeypatch.setattr(host_module, "MUCH_UNSENT", 0)
        await p.publish(quote(5), durable=False)
        await until(lambda: bool(end.unsent or is_recorded))
        assert is_recorded == ([True] if cause == "much" else [])
        match cause:
            case "ping":
                host._presence._beat()
            case "refusal":
                host._refuse(end, "silence", "nothing was heard")
            case "goodbye":
                host.received(end, [Goodbye("bye", "")])
            case "time":
                dispatch._flush_in_time()
        assert is_recorded == [True]


async def test_a_broker_goes_on_without_a_trace_that_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker("b", trace=tmp_path / "trace") as b, client(b) as c:
        assert b._trace is not None
        b._trace._file.close()
        b._trace._file = open("/dev/full", "ab")  # noqa: PTH123, SIM115  # the broker closes it
        subscription = await c.subscribe("TRUE")
        for n in range(3):
            await c.publish(quote(n))
        assert [(await subscription.get(timeout=5)).event.data["price"] for _ in range(3)] == [0, 1, 2]
    (told,) = logged(caplog, "trace.failed")
    assert "No space left on device" in told


async def test_what_a_client_answers_a_replay_with_need_not_have_been_published(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    async with broker(trace=trace) as b, client(b, "p") as p, client(b, "c") as c:
        await p.publish(quote(1))
        await p.replays("price > 0", lambda asked: [quote(0.5, time=1)])
        subscription = await c.subscribe("price > 0", replay=vestnik.Replay(all=True))
        assert await taken(subscription, 2) == [0.5, 1]
    records = read(trace)
    assert [record.answered for record in records if isinstance(record, Notified)] == [True, False]
    assert check_trace(records) == []
    believed = [replace(record, answered=False) if isinstance(record, Notified) else record for record in records]
    assert [violation.rule for violation in check_trace(believed)] == ["published"]
