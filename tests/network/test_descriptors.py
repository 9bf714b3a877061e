"""A broker that has no descriptor left goes on storing and reading, and takes clients again later. A real process."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

import vestnik
from network.processes import VESTNIK, told
from network.test_durable import process
from network.worlds import PATIENCE, broker, client, quote, until
from vestnik import Event
from vestnik.errors import NotAccepted, TooManyOpenFiles
from vestnik.journal import Journal
from vestnik.transport.addresses import read_address

FEW = 64
"""Descriptors of the broker's process."""
WAITING = re.compile(r"(\{.*connection\.waiting.*\})")
LIMITED = ["sh", "-c", f'ulimit -n {FEW}; exec "$@"', "sh"]


def large(number: int) -> Event:
    return Event("t", {"n": number, "filling": "x" * 1_000_000}, source="s", id=str(number))


async def test_publishing_goes_on_over_the_end_of_a_segment_without_a_descriptor(tmp_path: Path) -> None:
    with (
        process("--listen", "127.0.0.1:0", "--data", str(tmp_path), before=LIMITED) as (running, address),
        ExitStack() as stack,
    ):
        async with vestnik.connect(address) as bus:
            at = read_address(address)
            for _ in range(FEW):
                stack.enter_context(socket.create_connection((at.host, at.port)))
            await until(lambda: len(list(Path(f"/proc/{running.pid}/fd").iterdir())) == FEW)
            for number in range(40):
                await bus.publish(large(number))
            found = await bus.fetch("n >= 0", limit=None)
            assert [event.data["n"] for event in found] == list(range(40))
            assert (await bus.inspect("history"))["events"] == 40
            assert len(list((tmp_path / "journal").glob("*.segment"))) > 2
            stack.close()
            async with vestnik.connect(address, timeout=30) as another:
                await another.publish(large(40))


async def test_connections_that_wait_for_a_descriptor_are_logged_and_accepted_later() -> None:
    with (
        process("--log-format", "json", before=LIMITED) as (running, address),
        ExitStack() as stack,
    ):
        at = read_address(address)
        for _ in range(FEW + 8):
            stack.enter_context(socket.create_connection((at.host, at.port), timeout=20))
        async with asyncio.timeout(PATIENCE):
            waiting = json.loads(await asyncio.to_thread(told, running.stderr, WAITING))
        assert waiting["address"] == address and waiting["level"] == "warning"
        assert waiting["reason"].startswith("Too many open files; raise the limit of the process (ulimit -n")
        stack.close()
        async with vestnik.connect(address, timeout=30) as bus:
            await bus.publish(quote(1))


@pytest.mark.parametrize("few", [10, 30, FEW - 1])
def test_a_broker_that_may_open_too_few_files_says_so_at_once(few: int) -> None:
    limited = ["sh", "-c", f'ulimit -n {few}; exec "$@"', "sh"]
    command = [*limited, str(VESTNIK), "serve", "--listen", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    need = "a broker needs 64, and one more for each connection: raise it, as by ulimit -n 1024"
    assert ended.stderr == f"vestnik: ulimit -n: the process may open {few} files; {need}\n"
    assert ended.returncode == 2


async def test_publishers_are_refused_without_a_descriptor_and_not_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next segment cannot be begun, and the reserve is in use: that is no failure of the disk."""

    def refuse(of: Journal, *_: object) -> int:
        raise TooManyOpenFiles(tmp_path, os.strerror(errno.EMFILE))

    async with broker(data=tmp_path) as b, client(b) as bus:
        await bus.publish(quote(1, source="s", id="1"))
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", refuse)
            with pytest.raises(NotAccepted, match=r"no descriptor is left .*ulimit -n"):
                async with asyncio.timeout(PATIENCE):
                    await bus.publish(quote(2, source="s", id="2"))
        assert b.failure == ""
        await bus.publish(quote(2, source="s", id="2"))
        assert [event.data["price"] for event in await bus.fetch("price > 0")] == [1, 2]


async def test_what_cannot_be_read_yet_is_waited_for_and_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker(data=tmp_path) as b, client(b) as bus:
        await bus.publish_many([quote(n, source="s", id=str(n)) for n in range(10)])
        refused = 0
        opens = os.open

        def refuse(*arguments: object, **options: object) -> int:
            nonlocal refused
            refused += 1
            if refused > 6:
                return opens(*arguments, **options)  # type: ignore[arg-type]
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        for ask in (lambda: bus.fetch("price >= 0"), lambda: bus.review()):
            refused = 0
            monkeypatch.setattr(os, "open", refuse)
            found = await ask()
            monkeypatch.undo()
            events = found if isinstance(found, list) else found.page.positions
            assert refused > 6 and len(events) == 10
        assert "not all of the past" not in caplog.text
