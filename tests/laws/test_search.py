"""A page that is searched for has what a page has for which every event is unpacked and matched."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import Case, cases
from strategies_events import fewer
from vestnik import Filter
from vestnik.journal import Journal, Lost, Settings
from vestnik.recovery import pages
from vestnik.server.logview import JournalView
from vestnik.wire.origins import ReadTerms, Slice
from vestnik.wire.packing import TAKEN, pack_taken
from vestnik.wire.replays import Replay

SMALL = Settings(segment_size=400, retain_size=1_000_000, fsync=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journals")


def read(journal: Journal, filters: tuple[Filter, ...], pick: Replay | None = None) -> list[Slice]:
    """All pages, with a small bound on what one passes over."""
    start, end, found, lost = 1, journal.last + 1, list[Slice](), list[Lost]()
    if pick is not None:
        return [pages.read_page(JournalView(journal, lost), ReadTerms(end, filters, 10, None, pick), end)]
    while start < end:
        found.append(pages.read_page(JournalView(journal, lost), ReadTerms(start, filters, 3), end))
        assert found[-1].upto > start, "each page goes on"
        start = found[-1].upto
    return found


@fewer
@given(cases(trees=2, events=12), st.sampled_from([1, 1_000, 1 << 26]))
def test_a_search_finds_what_reading_finds(folder: Path, case: Case, bound: int) -> None:
    place = folder / str(len(list(folder.iterdir())))
    filters = tuple(case.filters)
    with Journal.open(place, SMALL) as journal, pytest.MonkeyPatch.context() as patched:
        for offset, event in enumerate(case.events, 1):
            waiting = event.replace(stream=None, seq=None)
            stored = waiting if offset % 5 == 0 else waiting.stamped("b", offset)
            journal.append([(TAKEN, offset, pack_taken("c", stored))])
        journal.sync()
        patched.setattr(pages, "SIFTED", 0)
        patched.setattr(pages, "PASSED", bound)
        searched = [one for page in read(journal, filters) for one in page.placed()]
        picked = [read(journal, filters, Replay(last=last))[0].placed() for last in (1, 3)]
        patched.setattr(pages, "sieve_of", lambda filters: None)
        assert searched == [one for page in read(journal, filters) for one in page.placed()]
        assert picked == [read(journal, filters, Replay(last=last))[0].placed() for last in (1, 3)]
