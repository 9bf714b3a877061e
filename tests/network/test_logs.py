"""The log of a broker: of `vestnik serve` on standard error, and by loggers in a program that embeds one."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import vestnik
from network.processes import serving
from network.security import access_file
from network.worlds import PATIENCE, broker, client, logged, quote, taken, until
from vestnik import Event
from vestnik.errors import NotAccepted, TooManyOpenFiles, TurnedAway, VestnikError
from vestnik.journal import Journal
from vestnik.logs import Throttle
from vestnik.server.limits import Limits
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import read_address
from vestnik.wire.frames import VERSION, frame
from vestnik.wire.messages import Goodbye, Hello, Message

FAKE = "2026-01-01T00:00:00.000Z INFO    listening on evil:1 event=broker.listening"
"""A line that a stranger may try to put into the log."""


def ended(running: subprocess.Popen[str]) -> str:
    """End a broker; return the rest of its log."""
    running.terminate()
    assert running.wait(20) == 0
    assert running.stderr is not None
    return running.stderr.read()


@contextmanager
def killed(running: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Kill a broker at the end of a test that has not ended it."""
    with running:
        try:
            yield running
        finally:
            running.kill()


def records(log: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in log.splitlines()]
    assert all({"time", "level", "event", "message"} <= one.keys() for one in found)
    return found


def of(found: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [one for one in found if one["event"] == event]


async def say(address: str, *messages: Message) -> None:
    """Send messages to a broker, and wait until it has ended the connection."""
    reader, writer = await asyncio.open_connection(*read_address(address))
    writer.write(b"".join(map(frame, messages)))
    async with asyncio.timeout(20):
        await reader.read()
    writer.close()


async def test_the_log_of_a_broker_as_json(tmp_path: Path) -> None:
    """A line is an object, from the first on; who comes and goes, what is refused, and the end are in it."""
    settings = tmp_path / "broker.toml"
    settings.write_text('lease = 30\nlog_format = "json"\n', encoding="utf-8")
    access = access_file(tmp_path, '[desk]\ntokens = ["{desk}"]\nsubscribe = "price > 0"\n', desk="a-secret-token")
    options = ["--config", str(settings), "--access", str(access), "--data", str(tmp_path / "data")]
    whole = tmp_path / "log"
    with whole.open("wb") as log:
        command = [sys.executable, "-c", "from vestnik.cli import main; main()", "serve", "--listen", "127.0.0.1:0"]
        environment = {"VESTNIK_NAME": "b7", "PYTHONPATH": ":".join(sys.path)}
        with killed(
            subprocess.Popen([*command, *options], stderr=log, stdout=subprocess.PIPE, env=environment)
        ) as running:
            await until(lambda: "broker.listening" in whole.read_text(encoding="utf-8"))
            address = of(records(whole.read_text(encoding="utf-8")), "broker.listening")[0]["address"]
            async with vestnik.connect(address, name="c", token="a-secret-token") as bus:
                for _ in range(20):
                    with pytest.raises(NotAccepted):
                        await bus.publish(quote(1))
            for _ in range(5):
                with pytest.raises(TurnedAway):
                    await vestnik.connect(address, token="another-secret")
            running.terminate()
            assert await asyncio.to_thread(running.wait, 20) == 0
            assert running.stdout is not None and running.stdout.read() == b"", "standard output is for data"
    text = whole.read_text(encoding="utf-8")
    assert "secret" not in text
    found = records(text)

    told = {
        name: (value, one["origin"]) for one in of(found, "settings") for name, value in dict(one["settings"]).items()
    }
    assert set(told) == set(Settings.__struct_fields__)
    assert told["listen"] == ("127.0.0.1:0", "flag") and told["name"] == ("b7", "environment VESTNIK_NAME")
    assert told["lease"] == (30, f"file {settings}") and told["routing"] == ("merging", "default")
    assert told["limits"][0]["connections"] == 10_000 and told["log_format"] == ("json", f"file {settings}")

    assert [one["records"] for one in of(found, "journal.recovered")] == [0, 0]
    (joined,), (left,) = of(found, "client.joined"), of(found, "client.left")
    assert joined["client"] == "desk/c" == left["client"] and joined["peer"] == left["peer"]
    assert (left["code"], left["reason"]) == ("bye", "c is leaving")
    refused = of(found, "request.refused")
    assert [one["count"] for one in refused] == [1, 19], "the first at once, the others as one"
    assert refused[1]["client"] == "desk/c" and "no right to publish" in refused[1]["reason"]
    turned_away = of(found, "connection.refused")
    assert [(one["code"], one["count"]) for one in turned_away] == [("token", 1), ("token", 4)]
    (requested,), (began,), (over,) = (of(found, f"shutdown.{what}") for what in ("requested", "began", "ended"))
    assert (requested["signal"], began["clients"], over["taken"]) == ("SIGTERM", 0, 0) and over["seconds"] < 20


async def test_links_come_and_go() -> None:
    with (
        serving("--name", "b1", "--log-format", "json") as (one, address),
        serving("--name", "b2", "--join", address, "--log-format", "json") as (two, other),
    ):
        async with vestnik.connect(address) as bus:
            while not (await bus.inspect("status"))["neighbours"]:
                await asyncio.sleep(0.01)
        assert other
        found, rest = records(ended(two)), records(ended(one))
    assert [link["neighbour"] for link in of(found, "link.up")] == ["b1"]
    assert [(link["neighbour"], link["code"]) for link in of(found, "link.down")] == [("b1", "shutdown")]
    assert [link["level"] for link in of(found, "link.down")] == ["info"], "nothing is wrong"
    assert [(link["neighbour"], link["code"]) for link in of(rest, "link.down")] == [("b2", "shutdown")]


async def test_a_link_that_breaks_is_a_warning() -> None:
    with (
        serving("--name", "b1") as (one, address),
        serving("--name", "b2", "--join", address, "--log-format", "json") as (two, other),
    ):
        async with vestnik.connect(other) as bus:
            while not (await bus.inspect("status"))["neighbours"]:
                await asyncio.sleep(0.01)
            one.kill()
            while (await bus.inspect("status"))["neighbours"]:
                await asyncio.sleep(0.01)
        found = records(ended(two))
    assert [(link["neighbour"], link["level"]) for link in of(found, "link.down")] == [("b1", "warning")]


@pytest.mark.parametrize(("level", "expected"), [("warning", ["request.refused"]), ("error", [])])
async def test_what_is_below_the_level_is_not_logged(level: str, expected: list[str], tmp_path: Path) -> None:
    port = 0
    async with broker() as b:  # a port that is free now
        port = read_address(b.address).port
    log = tmp_path / "log"
    command = [sys.executable, "-c", "from vestnik.cli import main; main()", "serve", "--log-format", "json"]
    command += ["--listen", f"127.0.0.1:{port}", "--log-level", level]
    with log.open("wb") as file, killed(subprocess.Popen(command, stderr=file)) as running:
        async with vestnik.connect(f"127.0.0.1:{port}") as bus:
            with pytest.raises(NotAccepted):
                await bus.inspect("nothing")
        running.terminate()
        assert await asyncio.to_thread(running.wait, 20) == 0
    assert [one["event"] for one in records(log.read_text(encoding="utf-8"))] == expected


async def test_what_a_stranger_says_is_never_a_line_of_its_own() -> None:
    with serving() as (running, address):
        goodbye = Goodbye(f"x\n{FAKE}", f'a" b\n{FAKE}\x1b[2J\u202e\u2028')
        await say(address, Hello(VERSION, f"c {FAKE}", False), goodbye)
        log = ended(running)
    lines = log.splitlines()
    assert not [line for line in lines if line.startswith(FAKE)] and "\x1b" not in log and "\u202e" not in log
    (left,) = [line for line in lines if "event=client.left" in line]
    assert f'reason="a\\" b\\n{FAKE}\\x1b[2J\\u202e\\u2028"' in left


async def test_a_log_that_nobody_reads_stops_nothing() -> None:
    """A pipe holds 64 KiB; here are more than that."""
    with serving("--log-level", "debug") as (running, address):
        for number in range(500):
            await say(address, Hello(VERSION, f"{number:0100}", False), Goodbye("bye", "x" * 200))
        running.terminate()
        assert await asyncio.to_thread(running.wait, 20) == 0


async def test_what_retention_drops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.server.store.RETAIN_EVERY", 0.05)
    caplog.set_level(logging.INFO, "vestnik")
    async with broker(data=tmp_path, retain_count=80) as b, client(b) as c:
        for price in range(200):
            await c.publish(quote(price))
        await until(lambda: bool(logged(caplog, "retention.dropped")))
        first = logged(caplog, "retention.dropped")[0]
        assert "'first': 1, 'last': " in first and "'events': " in first and "'bytes': " in first


async def test_what_a_compaction_drops_and_what_keeps_it_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.server.store.RETAIN_EVERY", 0.05)
    caplog.set_level(logging.INFO, "vestnik")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with broker(data=tmp_path, retain_size=8 << 20, retain_latest_by="symbol") as b, client(b) as c:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "compact", refuse)
            for start in range(0, 4000, 500):
                ticks = range(start, start + 500)
                await c.publish_many([Event("t", {"symbol": "a", "price": n, "text": "x" * 1_000}) for n in ticks])
            await until(lambda: bool(logged(caplog, "retention.failed")))
        assert "'reason': '[Errno 28] No space left on device'" in logged(caplog, "retention.failed")[0]
        assert logged(caplog, "retention.compacted") == []
        await c.publish(Event("t", {"symbol": "a", "price": 4000}))
        await until(lambda: bool(logged(caplog, "retention.compacted")))
        (first, *_) = logged(caplog, "retention.compacted")
        assert "'segments': " in first and "'events': " in first and "'bytes': " in first


async def test_a_compaction_that_lacks_descriptors_is_put_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again, also if nothing is published meanwhile."""
    monkeypatch.setattr("vestnik.server.store.RETAIN_EVERY", 0.05)
    caplog.set_level(logging.INFO, "vestnik")
    compact, refused = Journal.compact, list[int]()

    def refuse(journal: Journal, *arguments: Any) -> Any:
        if not refused or refused[-1] < 4000:
            refused.append(journal.last)
            raise TooManyOpenFiles(tmp_path, "segments cannot be written")
        return compact(journal, *arguments)

    monkeypatch.setattr(Journal, "compact", refuse)
    async with broker(data=tmp_path, retain_size=8 << 20, retain_latest_by="symbol") as b, client(b) as c:
        for start in range(0, 4000, 500):
            ticks = range(start, start + 500)
            await c.publish_many([Event("t", {"symbol": "a", "price": n, "text": "x" * 1_000}) for n in ticks])
        await until(lambda: bool(logged(caplog, "retention.compacted")))
    put_off = logged(caplog, "retention.failed")
    assert len(put_off) == len(refused) > 0 and all("a compaction is put off" in one for one in put_off)


async def test_retention_that_fails_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with broker(data=tmp_path) as b, client(b) as c:
        await c.publish(quote(1))
    monkeypatch.setattr(Journal, "trim", refuse)
    async with Broker(b.settings) as again, client(again) as c:
        await c.publish(quote(2))
        assert [event.data["price"] for event in await c.fetch("price > 0")] == [1, 2]
    assert "Input/output error" in logged(caplog, "retention.failed")[0]


async def test_a_disk_that_fails_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with broker(data=tmp_path) as b, client(b) as c:
        monkeypatch.setattr(os, "pwrite", refuse)
        for price in range(3):
            with pytest.raises(NotAccepted, match="No space left on device"):
                await c.publish(quote(price))
        monkeypatch.undo()
    (told,) = logged(caplog, "store.failed")
    assert "No space left on device" in told


async def test_a_disk_that_is_not_waited_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    goes_on, sync = threading.Event(), os.fdatasync

    def wait(descriptor: int) -> None:
        goes_on.wait(PATIENCE)
        sync(descriptor)

    caplog.set_level(logging.INFO, "vestnik")
    try:
        async with broker(data=tmp_path) as b, client(b) as c:
            await c.publish(quote(1))
            monkeypatch.setattr(os, "fdatasync", wait)
            publishing = asyncio.ensure_future(c.publish(quote(2)))
            await until(lambda: b.host.engine.storing > 0)
            b.leave_within(0.0)
        with pytest.raises(VestnikError):
            await publishing
    finally:
        goes_on.set()
    (told,) = logged(caplog, "store.abandoned")
    assert f"'folder': {tmp_path!r}" in told and len(logged(caplog, "shutdown.ended")) == 1


async def test_a_consumer_that_lags_and_loses_something_and_catches_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log is in memory, and full before the consumer reads on."""
    monkeypatch.setattr("vestnik.server.lagging.MOMENT", 0.05)
    caplog.set_level(logging.INFO, "vestnik")
    async with broker() as b, client(b, "feed") as feed, client(b, "slow") as slow:
        subscription = await slow.subscribe("price > 0", name="s")
        tail, end = b.host.core.recovery.tail, b.host._ends["slow"]
        await feed.publish(quote(1))
        assert await taken(subscription, 1) == [1]
        b.host.full(end)
        await until(lambda: bool(logged(caplog, "consumer.lagging")))
        tail.room = tail._size * 5 // 2  # for two events
        first = tail.routed
        await feed.publish_many([quote(price) for price in range(2, 7)])
        b.host.drained(end)
        notification = await subscription.get(10)
        assert notification.event.data["price"] == 5 and notification.gap is not None
        await until(lambda: bool(logged(caplog, "consumer.caught_up")))
    fields = {_event(record): record.__dict__["fields"] for record in caplog.records if "consumer" in _event(record)}
    assert fields["consumer.lagging"] == {"consumer": "slow"}
    lost = fields["consumer.lost"]
    assert (lost["client"], lost["subscription"], lost["first"], lost["end"]) == ("slow", "s", first, first + 3)
    assert lost["log"] == str(b.host.core.origin) and "no data folder" in lost["reason"]
    assert fields["consumer.caught_up"]["consumer"] == "slow"


async def test_a_consumer_that_lags_and_catches_up_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.server.lagging.MOMENT", 0.05)
    caplog.set_level(logging.INFO, "vestnik")
    async with broker() as b, client(b, "feed") as feed, client(b, "slow") as slow:
        subscription = await slow.subscribe("price > 0", queue=2)
        b.host.full(b.host._ends["slow"])
        await until(lambda: bool(logged(caplog, "consumer.lagging")))
        await feed.publish_many([quote(price) for price in range(1, 101)])
        b.host.drained(b.host._ends["slow"])
        assert await taken(subscription, 100) == list(range(1, 101))
        await until(lambda: bool(logged(caplog, "consumer.caught_up")))
    assert logged(caplog, "consumer.lost") == []


async def test_a_buffer_that_is_full_for_a_moment_is_no_lag(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.server.lagging.MOMENT", 0.05)
    caplog.set_level(logging.INFO, "vestnik")
    async with broker() as b, client(b, "fast"):
        b.host.full(b.host._ends["fast"])
        b.host.drained(b.host._ends["fast"])
        await until(lambda: not b.host._notices._lagging._since)
    assert logged(caplog, "consumer.lagging") == [] == logged(caplog, "consumer.caught_up")


def _event(record: logging.LogRecord) -> str:
    return str(record.__dict__.get("event", ""))


async def test_a_flood_is_one_record_in_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.logs.INTERVAL", 0.05)
    told: list[dict[str, Any]] = []
    throttle = Throttle(asyncio.get_running_loop(), told.append)
    for number in range(100):
        throttle.take("a", number=number)
    throttle.take("b", number=0)
    assert told == [{"count": 1, "number": 0}, {"count": 1, "number": 0}]
    await until(lambda: len(told) > 2)
    assert told[2:] == [{"count": 99, "number": 99}]
    throttle.take("a", number=1)
    throttle.close()
    assert sum(one["count"] for one in told) == 102


async def test_requests_that_are_refused_again_and_again_are_one_record(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as b, client(b, "c") as c:
        for _ in range(10):
            with pytest.raises(NotAccepted):
                await c.inspect("nothing")
    first, others = logged(caplog, "request.refused")
    assert "'count': 1," in first and "'count': 9," in others and "'client': 'c'" in others


async def test_who_leaves_by_itself_was_not_refused(caplog: pytest.LogCaptureFixture) -> None:
    """A broker inside a program asks how this one routes, and leaves again, before it links."""
    caplog.set_level(logging.INFO, "vestnik")
    async with broker() as b:
        async with vestnik.LocalBus(join=b.address):
            pass
        for number in range(10):
            await say(b.address, Goodbye(f"code {number}", FAKE))
        assert len(b.host._notices._connections._timers) == 0, "strangers choose no kinds of refusals"
    assert logged(caplog, "connection.refused") == []


async def test_bytes_that_are_no_message_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as b:
        for _ in range(10):
            reader, writer = await asyncio.open_connection(*read_address(b.address))
            writer.write(b"\xff" * 100)
            await asyncio.wait_for(reader.read(), 20)
            writer.close()
    first, others = logged(caplog, "connection.refused")
    assert "'code': 'frame'" in first and "'count': 1" in first and "'count': 9" in others


PROGRAM = """
import asyncio, logging, sys, vestnik
if sys.argv[1:]:
    logging.basicConfig(level=logging.INFO)
async def main():
    async with vestnik.LocalBus(name="c") as bus:
        try:
            await bus.inspect("nothing")
        except vestnik.VestnikError:
            pass
asyncio.run(main())
"""


@pytest.mark.parametrize("configured", [True, False])
def test_a_program_that_embeds_a_broker_decides_what_is_printed(configured: bool) -> None:
    command = [sys.executable, "-c", PROGRAM, *(["yes"] if configured else [])]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=60)
    assert ("INFO:vestnik.server.notices:client connected" in done.stderr) == configured
    assert ("WARNING:vestnik.server.notices:request refused" in done.stderr) == configured
    assert configured or done.stderr == ""


async def test_a_connection_beyond_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    async with broker(limits=Limits(connections=1)) as b, client(b):
        await say(b.address, Hello(VERSION, "one more", False))
    (told,) = logged(caplog, "connection.refused")
    assert "'code': 'busy'" in told and "limit connections" in told
