"""A disk that refuses stops the journal for good; what was committed is there afterwards."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from journal.journals import contents, entries, expected, filled, segments
from vestnik.errors import JournalFailed
from vestnik.journal import Journal, Settings

WRITE = os.pwrite


def refusing(error: int, call: Callable[..., int | None], allowed: int = 0) -> Callable[..., int | None]:
    """`call`, until it was called `allowed` times."""
    calls = 0

    def refuse(*arguments: object) -> int | None:
        nonlocal calls
        calls += 1
        if calls > allowed:
            raise OSError(error, os.strerror(error))
        return call(*arguments)

    return refuse


def half(file: int, data: bytes, at: int) -> int:
    """The disk takes half of what it is given."""
    return WRITE(file, bytes(data)[: len(data) // 2], at)


def test_a_failed_sync_is_never_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(tmp_path)
    journal.append(entries(1, 3))
    journal.sync()
    journal.append(entries(4, 5))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refusing(errno.EIO, os.fdatasync))
        with pytest.raises(JournalFailed) as caught:
            journal.sync()
    path = segments(tmp_path)[0]
    assert (caught.value.path, caught.value.action) == (str(path), "sync")
    assert str(caught.value).startswith(f"could not sync {path}: [Errno 5] Input/output error; ")
    for action in (journal.sync, lambda: journal.append(entries(6, 6)), lambda: journal.retain(0), journal.roll):
        with pytest.raises(JournalFailed, match="could not sync"):
            action()
    assert journal.committed == 3
    assert contents(journal.read()) == expected(1, 3)
    journal.close()
    with Journal.open(tmp_path) as journal:
        assert contents(journal.read()).items() >= expected(1, 3).items()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EFBIG])
@pytest.mark.parametrize("before", [os.pwrite, half], ids=["whole", "half"])
def test_a_failed_write_leaves_no_half_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, before: Callable[[int, bytes, int], int]
) -> None:
    journal = filled(tmp_path, 3, Settings())
    journal.sync()
    size = journal.size
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refusing(error, before, allowed=before is half))
        with pytest.raises(JournalFailed, match=r"could not write .*make room or repair the disk"):
            journal.append(entries(4, 9))
    assert segments(tmp_path)[0].stat().st_size == size
    with pytest.raises(JournalFailed):
        journal.append(entries(4, 9))
    with pytest.raises(JournalFailed):
        journal.sync()
    journal.close()
    with Journal.open(tmp_path) as journal:
        assert journal.recovery.is_clean
        assert contents(journal.read()) == expected(1, 3)


def test_where_nothing_can_be_undone_recovery_cuts_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = filled(tmp_path, 3, Settings())
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refusing(errno.ENOSPC, half, allowed=1))
        patch.setattr(os, "ftruncate", refusing(errno.EIO, os.pwrite))
        with pytest.raises(JournalFailed):
            journal.append(entries(4, 9))
        patch.setattr(os, "pwrite", WRITE)
        journal.close()
    with Journal.open(tmp_path) as journal:
        assert journal.recovery.cut and not journal.recovery.unreserved
        assert contents(journal.read()).items() >= expected(1, 3).items()
        assert set(contents(journal.read()).items()) <= set(expected(1, 9).items())


def test_a_segment_that_cannot_be_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = filled(tmp_path, 3, Settings())
    journal.sync()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refusing(errno.ENOSPC, os.pwrite))
        with pytest.raises(JournalFailed, match="could not create"):
            journal.roll()
    journal.close()
    with Journal.open(tmp_path) as journal:
        assert contents(journal.read()) == expected(1, 3)
        assert journal.append(entries(4, 4)) == 4


def test_a_disk_that_cannot_be_read_says_which_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path, 3, Settings()) as journal, monkeypatch.context() as patch:
        patch.setattr(os, "pread", refusing(errno.EIO, os.pwrite))
        with pytest.raises(JournalFailed, match=f"could not read {segments(tmp_path)[0]}"):
            list(journal.read())


def test_compaction_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path, 20) as journal:
        journal.sync()
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refusing(errno.ENOSPC, os.pwrite))
            with pytest.raises(OSError, match="No space left"):
                journal.compact(lambda record: "same")
        assert not list(tmp_path.glob("*.new"))
        journal.append(entries(21, 21))
        assert contents(journal.read()) == expected(1, 21)
