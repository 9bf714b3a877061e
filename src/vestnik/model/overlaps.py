"""The constraint kind `OVERLAPS(path, 'filter')`: the value at path is a filter that overlaps the given one.

With it one subscribes to subscriptions. The value is a filter as text or in plain data; anything else does not match.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

from vestnik.errors import FilterError
from vestnik.model.filters import Filter
from vestnik.model.kinds import ConstraintKind, Literals
from vestnik.model.values import MAP, STRING, ValueSet


class Overlaps(ConstraintKind):
    """See the module."""

    name: ClassVar[str] = "OVERLAPS"
    domain: ClassVar[ValueSet] = STRING.union(MAP)

    def check(self, *literals: Any) -> None:
        if len(literals) != 1 or not isinstance(literals[0], str):
            raise ValueError("one filter in single quotes")
        try:
            parsed(literals[0])
        except FilterError as error:
            reason, *_ = str(error).splitlines()
            raise ValueError(f"a filter in single quotes ({reason})") from None

    def matches(self, value: Any, *literals: Any) -> bool:
        try:
            found = parsed(value) if isinstance(value, str) else Filter.from_dict(value)
        except FilterError:
            return False
        return parsed(literals[0]).overlaps(found)

    def covers(self, wide: Literals, narrow: Literals) -> bool:
        return parsed(wide[0]).covers(parsed(narrow[0]))

    def overlaps(self, one: Literals, other: Literals) -> bool:
        return bool(parsed(one[0]).region) and bool(parsed(other[0]).region)


@lru_cache(maxsize=1024)
def parsed(text: Any) -> Filter:
    """As Filter.parse; what is asked about again and again is read once."""
    return Filter.parse(text)
