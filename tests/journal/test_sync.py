"""A sync covers everything that it promises to cover."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from journal.journals import contents, entries, expected, filled, segments
from vestnik.journal import Journal, Settings
from vestnik.journal.watermark import FILE

SETTINGS = Settings(segment_size=200)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and directories that are synced, as they are."""
    found: list[Path] = []

    def noting(sync: Callable[[int], None]) -> Callable[[int], None]:
        def note(file: int) -> None:
            found.append(Path(f"/proc/self/fd/{file}").readlink())
            sync(file)

        return note

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, noting(getattr(os, name)))
    return found


def test_every_file_that_grew_and_then_the_names(tmp_path: Path, synced: list[Path]) -> None:
    with filled(tmp_path, 3, SETTINGS) as journal:
        journal.sync()
        before = segments(tmp_path)[-1]
        synced.clear()
        for number in range(4, 20):
            journal.append(entries(number, number))
        assert synced == []
        journal.sync()
        assert synced == [path for path in segments(tmp_path) if path >= before] + [tmp_path, tmp_path / FILE]
        synced.clear()
        journal.append(entries(20, 20))
        journal.sync()
        assert synced == [segments(tmp_path)[-1]]


def test_a_segment_that_was_closed_during_a_sync_is_synced_again(
    tmp_path: Path, synced: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(tmp_path, 1, SETTINGS) as journal, monkeypatch.context() as patch:
        growing, sync = segments(tmp_path)[-1], os.fdatasync

        def append_first(file: int) -> None:
            patch.setattr(os, "fdatasync", sync)
            journal.append(entries(2, 3))
            journal.roll()
            journal.append(entries(4, 4))
            sync(file)

        patch.setattr(os, "fdatasync", append_first)
        assert journal.sync() == 1
        synced.clear()
        assert journal.sync() == 4
        assert synced == [growing, segments(tmp_path)[-1], tmp_path, tmp_path / FILE]


def test_a_closed_segment_gives_back_the_room_that_it_did_not_use(tmp_path: Path) -> None:
    with filled(tmp_path, 3, Settings(segment_size=100_000)) as journal:
        assert segments(tmp_path)[0].stat().st_size == 100_000
        size = journal.size
        journal.roll()
        journal.sync()
        assert segments(tmp_path)[0].stat().st_size == size


def test_what_is_new_is_named_durably(tmp_path: Path, synced: list[Path]) -> None:
    directory = tmp_path / "a" / "b"
    Journal.open(directory).close()
    assert {tmp_path, tmp_path / "a", directory, segments(directory)[0]} <= set(synced)


def test_what_is_found_at_opening_is_made_durable_before_it_counts_as_committed(
    tmp_path: Path, synced: list[Path]
) -> None:
    filled(tmp_path, 20, Settings(segment_size=200, fsync=False)).close()
    synced.clear()
    with Journal.open(tmp_path, SETTINGS) as journal:
        assert journal.committed == 20
        assert set(segments(tmp_path)) <= set(synced)


def test_a_rewritten_segment_is_durable_before_it_takes_the_place_of_the_other(
    tmp_path: Path, synced: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(tmp_path, 20, SETTINGS) as journal:
        journal.sync()
        rename = Path.rename

        def renamed(path: Path, target: Path) -> Path:
            assert path in synced
            return rename(path, target)

        monkeypatch.setattr(Path, "rename", renamed)
        synced.clear()
        assert journal.compact(lambda record: "one key").segments > 1
        assert synced[-1] == tmp_path
        assert contents(journal.read()).items() <= expected(1, 20).items()
