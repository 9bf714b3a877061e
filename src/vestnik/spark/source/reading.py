"""Reading what brokers took, in stretches of positions, each by one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.datasource import Filter as Condition
from pyspark.sql.pandas.types import from_arrow_schema

from vestnik.errors import InvalidSetting, MissingEvents, NoBroker, Unreachable, WrongValue
from vestnik.lake.journals import Journal, is_address, open_journal
from vestnik.lake.rows import batch_of_page, quarantine_of
from vestnik.lake.schema import EVENTS, QUARANTINE
from vestnik.model.filters import Filter
from vestnik.spark.source.offsets import BEGINNING, EARLIEST, LATEST, check_brokers, stretches, wanted_of
from vestnik.spark.source.options import EVENTS_TABLE, Reading
from vestnik.spark.source.pushdown import pushed
from vestnik.wire.messages import Page

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def schema_of(options: Reading) -> StructType:
    return from_arrow_schema(EVENTS if options.content == EVENTS_TABLE else QUARANTINE, prefer_timestamp_ntz=False)


def check_schema(schema: StructType, options: Reading) -> None:
    """The schema is not for the reader to choose."""
    wanted = schema_of(options)
    if [(one.name, one.dataType) for one in schema] != [(one.name, one.dataType) for one in wanted]:
        raise WrongValue(f"the schema of vestnik is {wanted.simpleString()}", schema.simpleString(), "leave it out")


ANOTHER: Final = "another journal took its place"


class Source(NamedTuple):
    """A broker, where it is, and its journal."""

    url: str
    journal: Journal


def opened(url: str, options: Reading, *, timeout: float | None, patience: float | None = None) -> Journal:
    """The journal at `url`; a broker is waited for `timeout` seconds, and each of its answers `patience` seconds."""
    if not is_address(url):
        return open_journal(url)
    try:
        return open_journal(url, timeout=timeout, patience=patience, **options.connection)
    except NoBroker:
        raise
    except Unreachable as error:
        raise Unreachable(error.address, f"{error.reason}, for {timeout:g} seconds (the option timeout)") from None


def open_all(options: Reading, held: ExitStack, patience: float | None = None) -> dict[str, Source]:
    """The journals to read, by the names of their brokers."""
    found: dict[str, Source] = {}
    for url in options.urls:
        journal = held.enter_context(opened(url, options, timeout=options.timeout, patience=patience))
        if other := found.get(journal.broker):
            raise InvalidSetting("url", f"{other.url} and {url} are both the journal of {journal.broker}; name it once")
        found[journal.broker] = Source(url, journal)
    check_brokers("startingOffsets", options.starting, found)
    check_brokers("endingOffsets", options.ending, found)
    return found


def is_another(known: str, journal: Journal) -> bool:
    """Whether it is not the journal that is known, as far as both say which they are."""
    return bool(known and journal.identity) and known != journal.identity


def place(wanted: int | str, journal: Journal) -> int:
    """Return the position up to which all counts as read."""
    if wanted == BEGINNING:
        return journal.beginning() - 1
    if wanted == EARLIEST:
        return journal.first() - 1
    return journal.last() if wanted == LATEST else int(wanted)


class Stretch(InputPartition):
    """Positions of one journal, for one task."""

    def __init__(self, url: str, broker: str, journal: str, after: int, upto: int) -> None:
        self.url = url
        self.broker = broker
        self.journal = journal
        self.after = after
        self.upto = upto


def planned(source: Source, journal: str, ends: Iterable[tuple[int, int]]) -> list[InputPartition]:
    return [Stretch(source.url, source.journal.broker, journal, *each) for each in ends]


def read(part: Any, options: Reading, wanted: Filter, timeout: float | None) -> Iterator[pa.RecordBatch]:
    """The rows of a stretch, as the event table has them; MissingEvents where some are not to be had."""
    if not isinstance(part, Stretch):  # Spark's own, where there is nothing to read
        return
    with opened(part.url, options, timeout=timeout) as journal:
        if journal.broker != part.broker:
            raise WrongValue(f"the broker at {part.url} is {part.broker}", journal.broker)
        seen = part.after
        for page in journal.pages(part.after, part.upto, wanted):
            if is_another(part.journal, journal):
                if options.is_strict:
                    raise MissingEvents(part.broker, seen + 1, part.upto, ANOTHER)
                return
            _check(page, part, options)
            batch, bad = batch_of_page(page, part.broker)
            yield batch if options.content == EVENTS_TABLE else quarantine_of(bad, part.broker)
            seen = page.after
        if seen < part.upto and options.is_strict:
            raise MissingEvents(part.broker, seen + 1, part.upto, "the journal ends before them")


def _check(page: Page, part: Stretch, options: Reading) -> None:
    if options.is_strict and options.content == EVENTS_TABLE:
        for one in page.unread:
            raise MissingEvents(part.broker, one.first, one.last, one.reason)


class BatchReader(DataSourceReader):
    """What is there when it is asked, once."""

    def __init__(self, options: Reading) -> None:
        self._options = options
        self._filter = options.filter

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        found: list[InputPartition] = []
        with ExitStack() as held:
            for broker, source in open_all(options, held).items():
                after = place(wanted_of(options.starting, broker, BEGINNING), source.journal)
                upto = place(wanted_of(options.ending, broker, LATEST), source.journal)
                ends = stretches(after, upto, options.per_partition, source.journal.first())
                found += planned(source, source.journal.identity, ends)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(partition, self._options, self._filter, self._options.timeout)


class PushedReader(BatchReader):
    """As much as can be of what Spark filters by is left to the journals. Spark has to be set so, or refuses it."""

    def pushFilters(self, filters: list[Condition]) -> Iterable[Condition]:
        if self._options.content != EVENTS_TABLE:
            return filters
        narrowed, left = pushed(filters)
        self._filter = self._options.filter & narrowed
        return left
