"""The journal of a broker that runs, as it tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vestnik.client.sync import connect_sync
from vestnik.errors import WrongValue
from vestnik.lake.journals import BEGINNING, Journal
from vestnik.model.filters import Filter
from vestnik.wire.leaves import EVERYTHING
from vestnik.wire.messages import Page, Reviewed


class BrokerJournal(Journal):
    """Of one broker: where another answers at the same address, WrongValue. While none answers, it is waited for.

    With `patience`, not longer than so many seconds: then TimeoutError. `connection` is what `connect_sync` takes.
    NotAccepted where there is no right to the past.
    """

    def __init__(self, url: str, *, patience: float | None = None, **connection: Any) -> None:
        self._url = url
        self._patience = patience
        self._bus = connect_sync(url, **connection).__enter__()
        self._name = self._identity = ""
        try:
            self._name = self._ends().broker
        except BaseException:
            self._bus.close()
            raise

    def __repr__(self) -> str:
        return f"<BrokerJournal of {self._name} at {self._url}>"

    @property
    def broker(self) -> str:
        return self._name

    @property
    def identity(self) -> str:
        """As it was said with the last answer."""
        return self._identity

    def beginning(self) -> int:
        """Return the first position ever. A broker without a data folder starts each time with one of its own.

        That is also the identity of its journal.
        """
        ends = self._ends()
        return BEGINNING if self._bus.is_durable else int(ends.journal or ends.first)

    def first(self) -> int:
        return self._ends().first

    def last(self) -> int:
        return self._ends().last

    def _ends(self) -> Reviewed:
        return self._review(Filter.all(), -1, 0, 1)

    def _review(self, wanted: Filter, after: int, upto: int, most: int) -> Reviewed:
        found = self._bus.review(wanted, after=after, upto=upto, most=most, timeout=self._patience)
        if self._name not in ("", found.broker):
            raise WrongValue(f"the broker at {self._url} is {self._name}", found.broker)
        self._identity = found.journal
        return found

    def pages(
        self, after: int | None = None, upto: int | None = None, filter: Filter = EVERYTHING, most: int | None = None
    ) -> Iterator[Page]:
        seen, left = -1 if after is None else after, most
        while upto is None or seen < upto:
            found = self._review(filter, seen, upto or 0, left or 0)
            page = found.page
            upto = found.last if upto is None else upto
            yield page
            seen = page.after
            if left is not None and (left := left - len(page.positions)) <= 0:
                return
            if seen >= found.last:
                return

    def close(self) -> None:
        self._bus.close()
