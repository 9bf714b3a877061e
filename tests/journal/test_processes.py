"""Real processes: killed, out of room, under a disk that fails, and two at one directory."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from journal.journals import contents, expected, failing_to_sync, python
from vestnik.errors import JournalLocked
from vestnik.journal import Entry, Journal, Settings
from vestnik.journal.reservation import reserved_in

SETTINGS = "Settings(segment_size=20_000, retain_size=1 << 30)"
START = """
import sys
sys.path.insert(0, "..")
from journal.journals import entries
from vestnik.errors import JournalFailed
from vestnik.journal import GroupCommit, Journal, Settings
"""

APPEND_AND_SYNC = f"""
{START}
journal = Journal.open(sys.argv[1], {SETTINGS})
while True:
    for _ in range(5):
        journal.append(entries(journal.next, journal.next + 6))
    print(journal.sync())
"""

APPEND_AND_WAIT = f"""
{START}
import asyncio
journal = Journal.open(sys.argv[1], {SETTINGS})
async def publish(commit):
    while True:
        position = journal.append(entries(journal.next, journal.next + 2))
        await commit.committed(position)
        print(position)
async def main():
    commit = GroupCommit(journal)
    await asyncio.gather(*(publish(commit) for _ in range(16)))
asyncio.run(main())
"""

FILL = f"""
{START}
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
journal = Journal.open(sys.argv[1])
try:
    while True:
        journal.append(entries(journal.next, journal.next + 6))
        journal.sync()
except JournalFailed as failure:
    print(journal.committed)
    print(failure)
"""

FAIL_LATER = f"""
{START}
journal = Journal.open(sys.argv[1])
journal.append(entries(1, 5))
print(journal.sync())
journal.append(entries(6, 9))
try:
    journal.sync()
except JournalFailed as failure:
    print(journal.committed)
    print(failure)
"""

HOLD = f"""
{START}
journal = Journal.open(sys.argv[1])
print("open")
sys.stdin.read()
"""


def printed(process: subprocess.Popen[str], lines: int) -> list[str]:
    """The next lines that the process prints."""
    assert process.stdout
    return [process.stdout.readline().strip() for _ in range(lines)]


def end(process: subprocess.Popen[str]) -> list[str]:
    """What the process still prints until it ends."""
    assert process.stdin and process.stdout
    with process, process.stdin, process.stdout as out:
        process.stdin.close()
        return out.read().splitlines()


@pytest.mark.parametrize("script", [APPEND_AND_SYNC, APPEND_AND_WAIT], ids=["sync", "group commit"])
def test_what_was_committed_survives_kill_9(tmp_path: Path, script: str) -> None:
    before: dict[int, Entry] = {}
    for lives in range(1, 6):
        process = python(script, tmp_path)
        reported = printed(process, 10 * lives)
        process.send_signal(signal.SIGKILL)
        committed = max(map(int, reported + end(process)))
        reserved = reserved_in(tmp_path)
        assert reserved is not None
        with Journal.open(tmp_path, Settings(segment_size=20_000)) as journal:
            assert journal.recovery.lost == ()
            assert journal.last >= committed
            found = contents(journal.read())
            assert found == before | expected(min(found.keys() - before.keys()), journal.last)
            assert journal.next == reserved > journal.last, "a killed process may have used all that it had reserved"
            before = found


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    committed, failure = end(python(FILL, tmp_path))
    assert "could not write" in failure and "File too large" in failure
    with Journal.open(tmp_path) as journal:
        assert journal.recovery.is_clean
        assert int(committed) == journal.last > 0
        assert contents(journal.read()) == expected(1, int(committed))


def test_a_disk_that_fails_to_sync(tmp_path: Path) -> None:
    synced, committed, failure = end(python(failing_to_sync(4) + FAIL_LATER, tmp_path / "journal"))
    assert (synced, committed) == ("5", "5")
    assert "could not sync" in failure and "Input/output error" in failure
    with Journal.open(tmp_path / "journal") as journal:
        assert contents(journal.read(until=5)) == expected(1, 5)


def test_a_directory_belongs_to_one_process(tmp_path: Path) -> None:
    process = python(HOLD, tmp_path)
    assert printed(process, 1) == ["open"]
    with pytest.raises(JournalLocked) as caught:
        Journal.open(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path} is in use by process {process.pid}; ")
    end(process)
    with Journal.open(tmp_path), pytest.raises(JournalLocked):
        Journal.open(tmp_path)
