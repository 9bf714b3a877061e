"""Filters: what a client wants to know, and how filters relate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from vestnik.model import plain
from vestnik.model.events import Event
from vestnik.model.meaning import region_of, type_and_descendants
from vestnik.model.parser import OUTSIDE, Limits, parse
from vestnik.model.printer import region_text
from vestnik.model.regions import Region
from vestnik.model.spaces import EVENT
from vestnik.model.strings import EVERY_STRING
from vestnik.model.values import ValueSet
from vestnik.model.work import MAKING, bounded, within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vestnik.model.explain import Explanation
    from vestnik.model.hull import Hull
    from vestnik.model.typed import TypedEvent

Value = TypeVar("Value")


class Filter:
    """A set of events, immutable, in normal form.

    `f == g` and `hash` go by normal form: equal filters match the same events, and filters of one box that
    match the same events are equal. `f.same_as(g)` decides it for all filters. `f & g`, `f | g` and `~f` raise
    FilterTooComplex where they take too much work.
    """

    __slots__ = ("_example", "_hash", "_region")

    _region: Region
    _hash: int
    _example: Event | None

    def __init__(self, region: Region) -> None:
        if not isinstance(region, Region):
            raise TypeError(f"a Filter is made of text by Filter.parse, not of {type(region).__name__} directly")
        object.__setattr__(self, "_region", region)
        object.__setattr__(self, "_hash", hash(region))

    @staticmethod
    def parse(text: str, *, limits: Limits | None = OUTSIDE) -> Filter:
        """The filter that `text` describes; `limits=None` reads text of our own, of any size and cost."""
        if limits is None:
            return Filter(region_of(parse(_given(text, str), None), EVENT, None))
        with bounded(limits.steps):
            return Filter(region_of(parse(_given(text, str), limits), EVENT, limits.boxes))

    @staticmethod
    def all() -> Filter:
        """The filter that every event matches."""
        return Filter(Region.everything(EVENT))

    @staticmethod
    def none() -> Filter:
        """The filter that no event matches."""
        return Filter(Region.nothing(EVENT))

    @staticmethod
    def of(event_class: type[TypedEvent], where: str | None = None) -> Filter:
        """The events of a typed class and its descendants, and of those the ones that `where` matches."""
        name = event_class.event_type
        strings = type_and_descendants(name) if name else EVERY_STRING
        found = Filter(Region.at(EVENT, ("type",), ValueSet(strings=strings)))
        return found if where is None else found & Filter.parse(where)

    @staticmethod
    def template(*positions: Any) -> Filter:
        """The tuples that agree with `positions`: a value, a Python type, or ANY; see `templates`."""
        from vestnik.model.templates import template_region

        return Filter(template_region(positions))

    @staticmethod
    def from_dict(data: dict[str, Any], *, limits: Limits | None = OUTSIDE) -> Filter:
        """The filter that `to_dict` gave `data` for; `limits` are those of `parse`, as far as they are about boxes."""
        if limits is None:
            return Filter(plain.read_region(EVENT, data, None))
        with bounded(limits.steps):
            return Filter(plain.read_region(EVENT, data, limits.boxes))

    def to_dict(self) -> dict[str, Any]:
        """Plain data (maps, lists, strings, numbers) that travels as JSON or msgpack."""
        return plain.write_region(self._region)

    @property
    def region(self) -> Region:
        """The boxes, for the parts of the package that index or route by them."""
        return self._region

    def matches(self, event: Event) -> bool:
        """Whether `event` is one that this filter wants."""
        return self._region.contains(_given(event, Event))

    def example(self) -> Event | None:
        """An event that this filter matches, always the same; None where there is none, or none is found.

        Only constraints of added kinds may have events of which none is found.
        """
        try:
            return self._example
        except AttributeError:
            from vestnik.model.examples import example

            object.__setattr__(self, "_example", example(self._region))
            return self._example

    def covers(self, other: Filter) -> bool:
        """Whether every event that `other` matches is matched by this filter.

        Exact for boxes, and for unions within a bound on work; beyond it, and where added kinds do not say
        enough, it errs towards no.
        """
        narrow = _given(other, Filter)._region
        return within(lambda: self._region.includes(narrow), otherwise=False)

    def overlaps(self, other: Filter) -> bool:
        """Whether some event is matched by both; errs towards yes where `covers` errs towards no."""
        region = _given(other, Filter)._region
        return within(lambda: self._region.overlaps(region), otherwise=True)

    def same_as(self, other: Filter) -> bool:
        """Whether both match the same events, by mutual cover."""
        return self == other or (self.covers(other) and other.covers(self))

    def merge(self, other: Filter) -> Filter | None:
        """A filter for exactly the events of both, with fewer boxes than the two together, or None.

        Of a filter and one that matches nothing it is the filter.
        """
        region = _given(other, Filter)._region
        if not (self._region and region):
            return self if self._region else other
        joined = within(lambda: self._region.union(region).without_redundant(), otherwise=None)
        if joined is None or len(joined.boxes) >= len(self._region.boxes) + len(region.boxes):
            return None
        return Filter(joined)

    def hull(self, other: Filter, *, sample: Iterable[Event] | None = None) -> Hull:
        """One box that covers both, with the share of unwanted events that it lets in; see `hull`."""
        from vestnik.model.hull import hull

        return hull(self, _given(other, Filter), sample)

    def explain(self, event: Event) -> Explanation:
        """Every constraint with the value it saw and its verdict; for a near miss, what failed."""
        from vestnik.model.explain import explain

        return explain(self, _given(event, Event))

    def __and__(self, other: Filter) -> Filter:
        if not isinstance(other, Filter):
            return NotImplemented
        with bounded(MAKING):
            return Filter(self._region.intersection(other._region))

    def __or__(self, other: Filter) -> Filter:
        if not isinstance(other, Filter):
            return NotImplemented
        with bounded(MAKING):
            return Filter(self._region.union(other._region))

    def __invert__(self) -> Filter:
        with bounded(MAKING):
            return Filter(self._region.complement())

    def __bool__(self) -> NoReturn:
        raise TypeError("a Filter is neither true nor false: combine filters with &, | and ~")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self._region == other._region

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return region_text(self._region)

    def __repr__(self) -> str:
        return f"Filter.parse({region_text(self._region)!r})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Filter is immutable: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._region,)


def _given(value: Value, kind: type[Value]) -> Value:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, not {type(value).__name__}")
    return value
