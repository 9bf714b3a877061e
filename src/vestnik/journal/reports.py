"""What a journal has to say about records that are no longer there, as values with sentences for people."""

from __future__ import annotations

from dataclasses import dataclass, field


def span(first: int, last: int) -> str:
    return f"position {first:,}" if first == last else f"positions {first:,} to {last:,}"


@dataclass(frozen=True)
class Lost:
    """What was at the positions `first` to `last` cannot be read, and `reason`."""

    first: int
    last: int
    reason: str

    def __str__(self) -> str:
        return f"{span(self.first, self.last)} cannot be read: {self.reason}"


@dataclass(frozen=True)
class Cut:
    """A write was not finished: `size` bytes after position `after` were no whole record and were cut off `file`."""

    file: str
    size: int
    after: int

    def __str__(self) -> str:
        return f"{self.size:,} bytes of an unfinished write after position {self.after:,} were cut off {self.file}"


@dataclass(frozen=True)
class Dropped:
    """Retention has dropped the positions `first` to `last`: a number of `records`, with `size` bytes."""

    first: int
    last: int
    records: int = field(default=0, compare=False)
    size: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{span(self.first, self.last)} were dropped"


@dataclass(frozen=True)
class Recovery:
    """What was found when a journal was opened: how many records up to which position, and what is missing.

    The indexes with the names `rebuilt` were missing or damaged; they were written again. If the reservation was
    missing or damaged, `unreserved` is the position with which the journal continues, beyond all that were used.
    """

    records: int
    last: int
    cut: Cut | None = None
    lost: tuple[Lost, ...] = ()
    rebuilt: tuple[str, ...] = ()
    unreserved: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was cut off, nothing is lost, and the reservation was there."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """What is lost, what was cut off, and what was wrong with the reservation, in sentences."""
        found = [*map(str, self.lost), *([str(self.cut)] if self.cut else [])]
        if self.unreserved:
            found.append(f"the reserved end was missing or damaged; positions continue at {self.unreserved:,}")
        return found

    def __str__(self) -> str:
        found = [f"{self.records:,} records, up to position {self.last:,}", *self.problems]
        if self.rebuilt:
            found.append(f"indexes that were missing or damaged were written again: {', '.join(self.rebuilt)}")
        return "\n".join(found)
