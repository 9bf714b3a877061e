"""Conditions of a Spark query as a filter of the brokers, where both mean exactly the same.

Spark's comparison with null is never true, as that with something missing is here. Strings compare by code point in
both. What is negated stays with Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.datasource import Filter as Condition

from vestnik.errors import FilterTooComplex
from vestnik.model.filters import Filter
from vestnik.model.times import to_micros

TEXTS: Final = frozenset({"source", "id", "type", "subject"})
NUMBERS: Final = frozenset({"priority", "seq"})
INSTANTS: Final = frozenset({"time", "not_before", "expires"})
MOST_VALUES: Final = 100
"""Of an IN that brokers are asked for."""

_SIGNS: Final[dict[type[Condition], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def pushed(conditions: Iterable[Condition]) -> tuple[Filter, list[Condition]]:
    """The filter that says what some of the conditions say, no more than brokers take, and the others."""
    found = Filter.all()
    left: list[Condition] = []
    for condition in conditions:
        text = text_of(condition)
        try:
            found = found if text is None else Filter.parse(str(found & Filter.parse(text)))
        except FilterTooComplex:
            text = None
        if text is None:
            left.append(condition)
    return found, left


def text_of(condition: Condition) -> str | None:
    """The condition in the filter language; None where there is none that means the same."""
    attribute: Sequence[str] = getattr(condition, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in TEXTS | NUMBERS | INSTANTS:
        return None
    column = attribute[0]
    match condition:
        case IsNotNull():
            return f"EXISTS {column}"
        case IsNull():
            return f"NOT EXISTS {column}"
        case In(value=values):
            literals = [_literal(column, value) for value in values if value is not None]
            known = [literal for literal in literals if literal is not None]
            is_whole = 0 < len(known) == len(literals) <= MOST_VALUES
            return f"{column} IN ({', '.join(known)})" if is_whole else None
        case StringStartsWith(value=prefix) if column in TEXTS:
            escaped = "".join(f"!{letter}" if letter in "!%_" else letter for letter in prefix)
            return f"{column} LIKE {_quoted(escaped + '%')} ESCAPE '!'"
    sign, literal = _SIGNS.get(type(condition)), _literal(column, getattr(condition, "value", None))
    return f"{column} {sign} {literal}" if sign and literal is not None else None


def _literal(column: str, value: Any) -> str | None:
    if column in TEXTS:
        return _quoted(value) if isinstance(value, str) else None
    if column in INSTANTS:
        is_instant = isinstance(value, datetime) and value.tzinfo is not None
        return str(to_micros(value)) if is_instant else None
    return str(value) if type(value) is int else None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
