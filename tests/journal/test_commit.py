"""Many wait for one sync, in a thread; the loop goes on."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Semaphore

import pytest

from journal.journals import entries
from vestnik.errors import JournalFailed
from vestnik.journal import GroupCommit, Journal, Register


class Disk:
    """A disk whose syncs take until they are `released`, or fail with `error`."""

    def __init__(self) -> None:
        self.begun = self.syncs = 0
        self.error: int | None = None
        self._permits = Semaphore(0)

    def release(self, syncs: int = 1) -> None:
        self._permits.release(syncs)

    def fdatasync(self, file: int) -> None:
        self.begun += 1
        self._permits.acquire()
        self.syncs += 1
        if self.error:
            raise OSError(self.error, os.strerror(self.error))


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.open(tmp_path)


@pytest.fixture
def disk(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "fdatasync", disk.fdatasync)
    return disk


def run(journal: Journal, disk: Disk, play: Callable[[GroupCommit], Awaitable[None]]) -> None:
    async def whole() -> None:
        commit = GroupCommit(journal)
        try:
            await play(commit)
        finally:
            disk.release(1_000)
            await commit.close()

    asyncio.run(whole())


def test_the_loop_goes_on_while_the_disk_is_slow_and_thousands_share_a_sync(journal: Journal, disk: Disk) -> None:
    async def play(commit: GroupCommit) -> None:
        first = asyncio.create_task(commit.committed(journal.append(entries(1, 1))))
        while not disk.begun:
            await asyncio.sleep(0)
        others = [asyncio.create_task(commit.committed(journal.append(entries(n, n)))) for n in range(2, 2_002)]
        for _ in range(100):
            await asyncio.sleep(0)
        assert not first.done() and journal.committed == 0 and disk.syncs == 0
        disk.release()
        await first
        assert journal.committed == 1 and not any(task.done() for task in others)
        disk.release()
        await asyncio.gather(*others)
        assert (journal.committed, disk.syncs) == (2_001, 2)

    run(journal, disk, play)


def test_all_who_are_ready_share_the_first_sync(journal: Journal, disk: Disk) -> None:
    async def publish(commit: GroupCommit, number: int) -> None:
        await commit.committed(journal.append(entries(number, number)))

    async def play(commit: GroupCommit) -> None:
        disk.release()
        await asyncio.gather(*(publish(commit, number) for number in range(1, 65)))
        assert disk.syncs == 1

    run(journal, disk, play)


def test_callbacks_come_in_order_and_one_that_raises_stops_no_other(journal: Journal, disk: Disk) -> None:
    called: list[int] = []
    raised: list[str] = []

    def callback(number: int) -> Callable[[object], None]:
        def call(failure: object) -> None:
            assert failure is None
            called.append(number)
            if number == 3:
                raise LookupError("not mine")

        return call

    async def play(commit: GroupCommit) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(str(context["exception"])))
        disk.release(10)
        for number in range(1, 7):
            commit.when_committed(journal.append(entries(number, number)), callback(number))
            await asyncio.sleep(0)
        await commit.committed(6)

    run(journal, disk, play)
    assert (called, raised) == ([1, 2, 3, 4, 5, 6], ["not mine"])


def test_what_is_durable_is_not_waited_for_and_what_is_not_appended_is_refused(journal: Journal, disk: Disk) -> None:
    async def play(commit: GroupCommit) -> None:
        journal.append(entries(1, 2))
        disk.release()
        await commit.committed(2)
        await commit.committed(1)
        assert disk.syncs == 1
        with pytest.raises(ValueError, match="position 3 is not appended yet; the last one is 2"):
            await commit.committed(3)

    run(journal, disk, play)


def test_what_is_durable_waits_its_turn(journal: Journal, disk: Disk) -> None:
    called: list[int] = []

    async def play(commit: GroupCommit) -> None:
        disk.release()
        await commit.committed(journal.append(entries(1, 1)))
        commit.when_committed(journal.append(entries(2, 2)), lambda _: called.append(2))
        commit.when_committed(1, lambda _: called.append(1))
        disk.release()
        await commit.committed(2)

    run(journal, disk, play)
    assert called == [2, 1]


def test_who_stops_waiting_disturbs_nobody(journal: Journal, disk: Disk) -> None:
    async def play(commit: GroupCommit) -> None:
        tasks = [asyncio.create_task(commit.committed(journal.append(entries(n, n)))) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        disk.release(2)
        await asyncio.gather(tasks[0], tasks[2])
        assert tasks[1].cancelled()

    run(journal, disk, play)


def test_a_failed_sync_fails_all_who_wait_and_all_who_come(journal: Journal, disk: Disk) -> None:
    async def play(commit: GroupCommit) -> None:
        disk.release()
        await commit.committed(journal.append(entries(1, 1)))
        disk.error = errno.EIO
        waiting = [asyncio.create_task(commit.committed(journal.append(entries(n, n)))) for n in (2, 3)]
        await asyncio.sleep(0)
        late = asyncio.create_task(commit.committed(journal.append(entries(4, 4))))
        disk.release()
        for failure in await asyncio.gather(*waiting, late, return_exceptions=True):
            assert isinstance(failure, JournalFailed)
        with pytest.raises(JournalFailed, match="could not sync"):
            journal.append(entries(5, 5))
        await commit.committed(1)
        assert disk.syncs == 2

    run(journal, disk, play)


def test_a_register_is_committed_alike(tmp_path: Path) -> None:
    async def play() -> None:
        register = Register.open(tmp_path)
        commit = GroupCommit(register)
        register[b"name"] = b"value"
        await commit.committed(register.last)
        assert register.committed == 1
        await commit.close()
        register.close()

    asyncio.run(play())
