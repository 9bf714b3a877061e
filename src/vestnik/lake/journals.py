"""What a broker took, by position: from its data folder, whether it runs or not, or from the broker itself.

    with open_journal("data/b1") as journal:
        for taken in journal.read(after=checkpoint):
            ...

Both ways give the same. A folder is read on this machine, and costs its broker nothing; a broker is asked from
anywhere, gives what there is the right to, and is waited for where it is away.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, Self

from vestnik.errors import InvalidAddress, WrongType
from vestnik.model.filters import Filter
from vestnik.wire.leaves import EVERYTHING, opened
from vestnik.wire.messages import Page, Taken, Unread

LOG: Final = logging.getLogger(__name__)
BEGINNING: Final = 1
"""The first position of every journal in a data folder."""


class Journal(ABC):
    """The journal of one broker. Positions grow; one is never used for two events."""

    @property
    @abstractmethod
    def broker(self) -> str:
        """The name of the broker whose journal it is."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """Which journal of that broker it is, as a decimal number: a later journal has a greater one.

        Empty if that is not known.
        """

    @abstractmethod
    def beginning(self) -> int:
        """Return the first position that the journal ever had: what is missing from there to `first` was dropped.

        A broker without a data folder starts another journal each time, so it is the first position of this start.
        """

    @abstractmethod
    def first(self) -> int:
        """The first position that is kept now; the one behind `last` where there is none."""

    @abstractmethod
    def last(self) -> int:
        """The last position that no crash takes back, as of now; below `first` where there is none."""

    @abstractmethod
    def pages(
        self, after: int | None = None, upto: int | None = None, filter: Filter = EVERYTHING, most: int | None = None
    ) -> Iterator[Page]:
        """What was taken behind `after` and up to `upto`, packed, some thousand events at a time, at most `most`.

        `after` may be any position that was read up to; without it, it begins with the first that is kept. Without
        `upto` it ends with what is the last now. Pages say what could not be read, and go on behind it. One may be
        empty; the last is up to `upto` where that is reached.
        """

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(
        self,
        after: int | None = None,
        upto: int | None = None,
        filter: Filter | str | None = None,
        most: int | None = None,
        unread: Callable[[Unread], object] | None = None,
    ) -> Iterator[Taken]:
        """As `pages`, one by one. `unread` is told what cannot be read; without it, that is logged as a warning."""
        tell = unread or self._warn
        for page in self.pages(after, upto, as_wanted(filter), most):
            taken, missing = opened(page)
            for one in missing:
                tell(one)
            yield from taken

    def _warn(self, one: Unread) -> None:
        LOG.warning("%s: positions %s to %s cannot be read: %s", self.broker, one.first, one.last, one.reason)


def as_wanted(filter: Filter | str | None) -> Filter:
    """A filter, its text, or None for everything."""
    if filter is None:
        return EVERYTHING
    return Filter.parse(filter) if isinstance(filter, str) else filter


def is_address(text: str) -> bool:
    """Whether it says where a broker is: a URL, or HOST:PORT where there is no such folder."""
    return "://" in text or (text.rpartition(":")[2].isdecimal() and ":" in text and not Path(text).exists())


def located(at: str | PathLike[str]) -> str:
    """Where a journal is, whatever the folder one is in: an address as it is, a data folder by its whole path."""
    text = fspath(at)
    return text if is_address(text) else str(Path(text).absolute())


def open_journal(at: str | PathLike[str], **connection: Any) -> Journal:
    """The journal at a broker's data folder, or at its URL or HOST:PORT, for `with`.

    `connection` is what `vestnik.connect_sync` takes beside the URL, and `patience`: the seconds after which an answer
    of a broker is no longer waited for, but TimeoutError raised. InvalidJournal where a folder is none of a broker,
    Unreachable where no broker answers.
    """
    from vestnik.lake.brokers import BrokerJournal
    from vestnik.lake.folders import FolderJournal

    if isinstance(at, str) and is_address(at):
        return BrokerJournal(at, **connection)
    if not isinstance(at, str | PathLike):
        raise WrongType("a journal is at a data folder or at the URL of a broker", at)
    if connection:
        raise InvalidAddress(str(at), "it is a folder, and nobody is connected to")
    return FolderJournal(at)
