"""What a journal is told when it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from vestnik.errors import InvalidSetting

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Settings:
    """InvalidSetting, with the name and the reason, where a value means nothing.

    A segment is closed when it has `segment_size` bytes. The oldest segments are dropped when all together would have
    more than `retain_size` bytes or `retain_count` records, or when all in them is older than `retain_age`
    microseconds. Without `fsync`, what is
    committed survives a crash of the process but not of the machine.
    """

    segment_size: int = 16 * MIB
    retain_size: int = GIB
    retain_count: int | None = None
    retain_age: int | None = None
    fsync: bool = True

    def __post_init__(self) -> None:
        for name in ("segment_size", "retain_size", "retain_count", "retain_age"):
            _check_positive(name, getattr(self, name), name in ("retain_count", "retain_age"))
        _check_least("retain_size", self.retain_size, 2 * self.segment_size, "twice segment_size")
        if not isinstance(self.fsync, bool):
            raise InvalidSetting("fsync", f"it is true or false, not {self.fsync!r}")

    @property
    def segment_count(self) -> int | None:
        """How many records close a segment: few enough that dropping whole segments keeps near to `retain_count`."""
        return None if self.retain_count is None else max(1, self.retain_count // 8)

    @property
    def segment_age(self) -> int | None:
        """How old the first record of a segment may become before it is closed."""
        return None if self.retain_age is None else max(1, self.retain_age // 8)


def _check_positive(name: str, value: object, is_optional: bool) -> None:
    if value is None and is_optional:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise InvalidSetting(name, f"it is a whole number above 0, not {value!r}")


def _check_least(name: str, value: int, least: int, what: str) -> None:
    if value < least:
        raise InvalidSetting(name, f"it is at least {what}, {least:,}, not {value:,}")
