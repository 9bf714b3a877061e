"""A process that has no descriptor left goes on writing and reading its journal."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from journal.journals import SMALL, contents, entries, entry, expected, filled, read_all, segments
from vestnik.errors import TooManyOpenFiles
from vestnik.journal import Journal, Observer, Register, Settings
from vestnik.journal.directory import RESERVED

OPEN = os.open


@contextmanager
def no_descriptor_left() -> Iterator[list[int]]:
    """Every descriptor that the process may have is open; those that are listed were opened for that."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path("/dev/null").open("rb") as null:
        taken = [os.dup(null.fileno())]
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 30, before[1]))
        try:
            with suppress(OSError):
                while True:
                    taken.append(os.dup(null.fileno()))
            yield taken
        finally:
            for file in taken:
                os.close(file)
            resource.setrlimit(resource.RLIMIT_NOFILE, before)


def refusing(error: int) -> object:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(error, os.strerror(error))

    return refuse


def test_segments_are_begun_read_and_compacted_without_a_free_descriptor(tmp_path: Path) -> None:
    with filled(tmp_path, 10) as journal:
        journal.sync()
        before = len(segments(tmp_path))
        with no_descriptor_left():
            for number in range(11, 61):
                journal.append([entry(number)])
                if number % 10 == 0:
                    journal.sync()
            assert contents(journal.read()) == expected(1, 60)
            assert journal.compact(lambda record: record.position % 2 or None).segments
            with pytest.raises(OSError, match="Too many open files"):
                OPEN("/dev/null", os.O_RDONLY)
        assert len(segments(tmp_path)) > before
        assert set(contents(journal.read())) >= set(range(2, 61, 2))
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean and journal.last == 60


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_a_segment_that_cannot_be_begun_yet_is_begun_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    with filled(tmp_path, 3) as journal:
        number = len(segments(tmp_path))
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refusing(error))
            appended = 3
            while segments(tmp_path)[-1].stat().st_size < 2 * SMALL.segment_size:
                journal.append([entry(appended := appended + 1)])
            with pytest.raises(TooManyOpenFiles, match=r"no descriptor .*ulimit -n") as caught:
                journal.append([entry(appended + 1)])
            assert caught.value.path.startswith(str(tmp_path))
            assert journal.sync() == journal.committed == appended
            assert len(segments(tmp_path)) == number
            assert not journal.roll()
        assert journal.append([entry(appended + 1)]) == appended + 1
        assert len(segments(tmp_path)) == number + 1
        journal.sync()
        assert contents(journal.read()) == expected(1, appended + 1)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean and contents(journal.read()) == expected(1, appended + 1)


def test_reading_without_a_descriptor_loses_nothing_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(tmp_path, 20) as journal:
        journal.sync()
        cursor = journal.read()
        observer = Observer(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refusing(errno.EMFILE))
            with pytest.raises(TooManyOpenFiles):
                list(cursor)
            with pytest.raises(TooManyOpenFiles):
                list(observer.read(0))
        assert read_all(cursor) == expected(1, 20) and cursor.lost == []
        assert [record.position for one in observer.read(0) for record in one.records] == list(range(1, 21))


def test_a_directory_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 20).close()
    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, refusing(errno.EMFILE))
    with pytest.raises(TooManyOpenFiles):
        Observer(tmp_path).last()
    with pytest.raises(TooManyOpenFiles):
        Journal.open(tmp_path, SMALL)
    monkeypatch.undo()
    with Journal.open(tmp_path, SMALL) as journal:
        assert contents(journal.read()) == expected(1, 20)


def test_a_register_is_written_anew_when_there_is_a_descriptor_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        register = Register.open(tmp_path, fsync=False)
        patch.setattr(os, "open", refusing(errno.EMFILE))
        for number in range(1_200):
            register[b"name"] = bytes([number % 256]) * 1_000
    register[b"name"] = b"the last"
    register.sync()
    assert len(segments(tmp_path)) == 1 and int(segments(tmp_path)[0].stem) > 1_000
    register.close()
    with_again = Register.open(tmp_path, fsync=False)
    assert dict(with_again) == {b"name": b"the last"}
    with_again.close()


def test_what_is_kept_in_reserve_comes_back_and_is_given_up_with_the_journal(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    journal = filled(tmp_path, 10, Settings(segment_size=200))
    journal.sync()
    held = descriptors()
    assert held - before >= RESERVED
    with no_descriptor_left():
        for number in range(11, 40):
            journal.append(entries(number, number))
            journal.sync()
    assert descriptors() == held
    journal.close()
    assert descriptors() == before
