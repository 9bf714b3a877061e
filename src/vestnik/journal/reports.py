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
    """What was found when a journal was opened: how many records up to which position, and what is missing."""

    records: int
    last: int
    cut: Cut | None = None
    lost: tuple[Lost, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was cut off and nothing is lost."""
        return self.cut is None and not self.lost

    def __str__(self) -> str:
        found = f"{self.records:,} records, up to position {self.last:,}"
        return "\n".join([found, *map(str, self.lost), *([str(self.cut)] if self.cut else [])])
