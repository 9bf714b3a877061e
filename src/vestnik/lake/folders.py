"""The journal in the data folder of a broker. Nothing in the folder is changed."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from vestnik.errors import InvalidJournal
from vestnik.journal import Observer
from vestnik.journal.folders import JOURNAL, name_in
from vestnik.journal.identity import identity_in
from vestnik.journal.segments import SUFFIX
from vestnik.lake.journals import BEGINNING, Journal
from vestnik.model.filters import Filter
from vestnik.wire.leaves import EVERYTHING, Leaf, opened
from vestnik.wire.messages import Page

NO_JOURNAL = "is no data folder of a broker: there is no journal in it; it is what vestnik serve --data names"

NO_FOLDER = "is no folder; a broker that runs is named by its URL, vestnik://HOST:PORT"

A_HISTORY = "is the folder of a history, which has copies and no journal; name the brokers that took the events"


def _why_not(folder: Path) -> str:
    if not folder.is_dir():
        return NO_FOLDER
    is_kept = folder.name != JOURNAL and next(folder.glob(f"*{SUFFIX}"), None) is not None
    return A_HISTORY if is_kept else NO_JOURNAL


class FolderJournal(Journal):
    """What is there when it is asked, while the broker writes, too."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self._folder = Path(folder)
        if not (self._folder / JOURNAL).is_dir():
            raise InvalidJournal(self._folder, _why_not(self._folder))
        self._observer = Observer(self._folder / JOURNAL)
        self._name = name_in(self._folder)

    def __repr__(self) -> str:
        return f"<FolderJournal {self._folder}>"

    @property
    def broker(self) -> str:
        self._name = self._name or name_in(self._folder) or self._named_by_events()
        return self._name

    @property
    def identity(self) -> str:
        return identity_in(self._folder / JOURNAL)

    def _named_by_events(self) -> str:
        for page in self.pages():
            for taken in opened(page)[0]:
                if taken.event.broker is not None:
                    return taken.event.broker
        raise InvalidJournal(self._folder, "does not say whose it is; it will when its broker was started once more")

    def beginning(self) -> int:
        return BEGINNING

    def first(self) -> int:
        return self._observer.first

    def last(self) -> int:
        return self._observer.last()

    def pages(
        self, after: int | None = None, upto: int | None = None, filter: Filter = EVERYTHING, most: int | None = None
    ) -> Iterator[Page]:
        observer, left = self._observer, most
        seen = observer.first - 1 if after is None else after
        leaf = Leaf(filter, left)
        for stretch in observer.read(seen, upto):
            if stretch.lost:
                seen = stretch.lost[-1].last
                leaf.miss(stretch.lost, observer.first, seen)
            records, put = stretch.records, leaf.put_all(stretch.records)
            while put < len(records):
                if not leaf.put(records[put]):
                    yield leaf.page(records[put - 1].position if put else seen)
                    if left is not None and (left := left - leaf.count) <= 0:
                        return
                    leaf = Leaf(filter, left)
                    leaf.put(records[put])
                    put += leaf.put_all(records[put + 1 :])
                put += 1
            seen = stretch.after
        yield leaf.page(seen)

    def close(self) -> None:
        """Nothing is held open."""
