"""Constraint kinds added from outside: a circle on the earth, one that says nothing of itself, and OVERLAPS."""

from __future__ import annotations

import json
import pickle
from itertools import product
from math import asin, cos, pi, radians, sin, sqrt
from typing import Any, ClassVar

import pytest

from vestnik import Event, Filter, FilterSyntaxError, UnknownKind
from vestnik.model import kinds
from vestnik.model.kinds import ConstraintKind, Literals, known_kinds, register_kind
from vestnik.model.values import MAP, NUMBER, ValueSet

EARTH = 6371.0


def distance(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Kilometres along a great circle."""
    a, b = radians(lat), radians(other_lat)
    h = sin((b - a) / 2) ** 2 + cos(a) * cos(b) * sin(radians(other_lon - lon) / 2) ** 2
    return 2 * EARTH * asin(sqrt(min(1.0, h)))


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Within(ConstraintKind):
    """`WITHIN(place, lat, lon, km)`: place is a map with lat and lon, no further than km from a point."""

    name: ClassVar[str] = "WITHIN"
    domain: ClassVar[ValueSet] = MAP

    def check(self, *literals: Any) -> None:
        if len(literals) != 3 or not all(map(is_number, literals)) or literals[2] < 0:
            raise ValueError("a latitude, a longitude and a radius in km")

    def matches(self, value: Any, *literals: Any) -> bool:
        lat, lon = value.get("lat"), value.get("lon")
        return is_number(lat) and is_number(lon) and distance(lat, lon, *literals[:2]) <= literals[2]

    def covers(self, wide: Literals, narrow: Literals) -> bool:
        (*a, r), (*b, s) = wide, narrow
        return r >= pi * EARTH or distance(*a, *b) + s <= r  # type: ignore[operator, arg-type]

    def overlaps(self, one: Literals, other: Literals) -> bool:
        (*a, r), (*b, s) = one, other
        return distance(*a, *b) <= r + s  # type: ignore[operator, arg-type]


class Odd(ConstraintKind):
    """A kind that decides values and knows nothing else of itself; it takes any literals and does not look at them."""

    name: ClassVar[str] = "ODD"
    domain: ClassVar[ValueSet] = NUMBER

    def matches(self, value: Any, *literals: Any) -> bool:
        return bool(value % 2 == 1)


@pytest.fixture(autouse=True)
def added_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_registered", dict(kinds._registered))
    register_kind(Within())
    register_kind(Odd())


BERLIN = "WITHIN(place, 52.5, 13.4, 100)"
BERLIN_WIDE = "WITHIN(place, 52.5, 13.4, 250)"
POTSDAM = "WITHIN(place, 52.4, 13.06, 20)"
PARIS = "WITHIN(place, 48.86, 2.35, 100)"
TOWNS = {
    "Berlin": (52.52, 13.4),
    "Potsdam": (52.4, 13.06),
    "Leipzig": (51.34, 12.37),
    "Paris": (48.86, 2.35),
    "Versailles": (48.8, 2.13),
}


def parse(text: str) -> Filter:
    return Filter.parse(text)


def at(town: str, **more: Any) -> Event:
    lat, lon = TOWNS[town]
    return Event("seen", {"place": {"lat": lat, "lon": lon}, **more})


PLACES: list[Any] = [None, 1, "x", [], {}, {"lat": 1}, {"lat": "52.5", "lon": 13.4}, {"lat": True, "lon": True}]
EVENTS = [Event("seen"), *(at(town) for town in TOWNS), *(Event("seen", {"place": place}) for place in PLACES)]
FILTERS = [
    BERLIN,
    BERLIN_WIDE,
    POTSDAM,
    PARIS,
    f"NOT {BERLIN}",
    f"NOT {BERLIN_WIDE}",
    f"{BERLIN} AND {POTSDAM}",
    f"{BERLIN} AND {PARIS}",
    f"{BERLIN} AND NOT {POTSDAM}",
    f"{BERLIN} OR {PARIS}",
    f"NOT {BERLIN} AND place IS MAP",
    "EXISTS place",
    "place IS MAP",
    "place = 1",
    f"place.lat > 50 AND {BERLIN_WIDE}",
    f"NOT ({BERLIN} OR {PARIS})",
    "NOT EXISTS place",
    f"place = 1 AND NOT {PARIS}",
]


def test_a_circle_matches_the_places_in_it() -> None:
    found = {town for town in TOWNS if parse(BERLIN).matches(at(town))}
    assert found == {"Berlin", "Potsdam"}
    assert {town for town in TOWNS if parse(f"NOT {BERLIN}").matches(at(town))} == set(TOWNS) - found


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_place_is_nowhere(place: Any) -> None:
    event = Event("seen", {"place": place})
    assert not parse(BERLIN).matches(event)
    assert parse(f"NOT {BERLIN}").matches(event)


def test_circles_relate_as_the_kind_says() -> None:
    assert parse(BERLIN_WIDE).covers(parse(BERLIN)) and not parse(BERLIN).covers(parse(BERLIN_WIDE))
    assert parse(BERLIN).covers(parse(POTSDAM)) and parse(BERLIN).overlaps(parse(POTSDAM))
    assert not parse(BERLIN).overlaps(parse(PARIS))
    assert parse(f"NOT {PARIS}").covers(parse(BERLIN))
    assert parse(f"NOT {POTSDAM}").covers(parse(f"NOT {BERLIN}"))
    assert not parse(f"NOT {BERLIN}").overlaps(parse(POTSDAM))
    assert parse(f"NOT {BERLIN}").overlaps(parse(BERLIN_WIDE))


def test_a_circle_is_on_a_map() -> None:
    assert parse("place IS MAP").covers(parse(BERLIN)) and parse("EXISTS place").covers(parse(BERLIN))
    assert not parse("place = 1").overlaps(parse(BERLIN)) and not parse("NOT EXISTS place").overlaps(parse(BERLIN))
    assert parse(f"NOT {BERLIN}").covers(parse("place = 1"))
    assert parse(f"place = 1 AND NOT {BERLIN}") == parse("place = 1")


def test_a_box_keeps_what_is_not_implied() -> None:
    assert parse(f"{BERLIN} AND {BERLIN_WIDE}") == parse(BERLIN) == parse(f"{BERLIN} AND {BERLIN}")
    assert parse(f"{BERLIN} AND {PARIS}") == Filter.none()
    assert parse(f"{BERLIN} AND NOT {PARIS}") == parse(BERLIN)
    assert parse(f"{POTSDAM} AND NOT {BERLIN}") == Filter.none()
    assert parse(f"NOT {POTSDAM} AND NOT {BERLIN}") == parse(f"NOT {BERLIN}")
    assert parse(f"{BERLIN} OR {BERLIN_WIDE}") == parse(BERLIN_WIDE)
    assert parse(f"{BERLIN} OR NOT {BERLIN}").same_as(Filter.all())


@pytest.mark.parametrize(("one", "other"), list(product(FILTERS, FILTERS)))
def test_answers_are_on_the_safe_side(one: str, other: str) -> None:
    f, g = parse(one), parse(other)
    in_f, in_g = [f.matches(e) for e in EVENTS], [g.matches(e) for e in EVENTS]
    assert not f.covers(g) or all(a or not b for a, b in zip(in_f, in_g, strict=True))
    assert f.overlaps(g) or not any(a and b for a, b in zip(in_f, in_g, strict=True))
    assert [(f & g).matches(e) for e in EVENTS] == [a and b for a, b in zip(in_f, in_g, strict=True)]
    assert [(f | g).matches(e) for e in EVENTS] == [a or b for a, b in zip(in_f, in_g, strict=True)]
    assert [(~f).matches(e) for e in EVENTS] == [not a for a in in_f]
    merged = f.merge(g)
    assert merged is None or [merged.matches(e) for e in EVENTS] == [a or b for a, b in zip(in_f, in_g, strict=True)]
    hull = f.hull(g)
    assert hull.covers(f) and hull.covers(g)


@pytest.mark.parametrize("text", FILTERS)
def test_every_form_of_a_filter_comes_back(text: str) -> None:
    wanted = parse(text)
    assert Filter.parse(str(wanted), limits=None) == wanted
    assert Filter.from_dict(json.loads(json.dumps(wanted.to_dict()))) == wanted
    again = pickle.loads(pickle.dumps(wanted))
    assert again == wanted and hash(again) == hash(wanted)
    for event in EVENTS:
        explanation = wanted.explain(event)
        assert explanation.matches is wanted.matches(event)
        assert bool(explanation.failed) is (bool(wanted.region) and not explanation.matches)


def test_merging_boxes_with_circles() -> None:
    here = parse(f"{BERLIN} AND kind = 'taxi'").merge(parse(f"{BERLIN} AND kind = 'bus'"))
    assert here == parse(f"{BERLIN} AND kind IN ('bus', 'taxi')")
    assert parse(BERLIN).merge(parse(BERLIN_WIDE)) == parse(BERLIN_WIDE)
    assert parse(BERLIN).merge(parse(PARIS)) is None


def test_the_text_of_a_circle() -> None:
    assert str(parse("within(place, 52.50, 13.4, 1e2) AND a = 1")) == "a = 1 AND WITHIN(place, 52.5, 13.4, 100)"
    assert str(parse(f"NOT {BERLIN}")) == f"NOT {BERLIN}"


def test_circles_in_the_elements_of_lists() -> None:
    stops = parse("ANY stops (WITHIN(@, 52.5, 13.4, 100) AND minutes > 5)")
    lat, lon = TOWNS["Berlin"]
    assert stops.matches(Event("trip", {"stops": [{"lat": lat, "lon": lon, "minutes": 6}]}))
    assert not stops.matches(Event("trip", {"stops": [{"lat": lat, "lon": lon, "minutes": 5}, {"minutes": 6}]}))
    assert parse("ANY stops (WITHIN(@, 52.5, 13.4, 250))").covers(stops)
    assert Filter.parse(str(stops), limits=None) == stops


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("WITHIN(place, 1, 2)", 1, "WITHIN with a latitude, a longitude and a radius in km"),
        ("a = 1 OR WITHIN(place, 1, 2, -3)", 10, "WITHIN with a latitude, a longitude and a radius in km"),
        ("NEAR(place, 1)", 1, "a known constraint kind (ODD, OVERLAPS, WITHIN), or ANY or ALL before a list"),
        ("WITHIN(1, 2)", 8, "a path"),
        ("WITHIN(place 1)", 14, ", or )"),
        ("WITHIN(place, here)", 15, "a value (strings go in single quotes; two paths cannot be compared)"),
        ("OVERLAPS(sub, 1)", 1, "OVERLAPS with one filter in single quotes"),
    ],
)
def test_what_is_wrong_is_said(text: str, column: int, expected: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert (caught.value.column, caught.value.expected) == (column, expected)


def test_a_path_may_have_the_name_of_a_kind() -> None:
    assert parse("within = 1").matches(Event("t", {"within": 1}))


def test_the_domain_of_a_kind_goes_without_saying() -> None:
    found = parse(f"{BERLIN} AND kind = 'taxi' OR kind = 'bus' AND fare < 5 AND seats > 1").explain(Event("seen"))
    assert [verdict.constraint for verdict in found.failed] == ["kind = 'taxi'", BERLIN]
    both = f"{BERLIN} AND OVERLAPS(place, 'TRUE')"
    assert str(parse(both)) == "OVERLAPS(place, 'TRUE') AND WITHIN(place, 52.5, 13.4, 100)"


# --- a kind that knows nothing of itself ---


def test_a_kind_that_says_nothing_is_on_the_safe_side() -> None:
    odd, odd_too = parse("ODD(n)"), parse("ODD(n, 'x')")
    assert [n for n in range(4) if odd.matches(Event("t", {"n": n}))] == [1, 3]
    assert odd.covers(odd) and odd.same_as(parse("ODD(n)"))
    assert not odd.covers(odd_too)
    assert odd.overlaps(odd_too) and odd.overlaps(parse("NOT ODD(n, 'x')"))
    assert not odd.overlaps(parse("NOT ODD(n)")) and not odd.overlaps(parse("n = 'x'"))
    assert parse("n IS NUMBER").covers(odd)


def test_literals_of_all_kinds_live_side_by_side() -> None:
    literals = ["NULL", "TRUE", "FALSE", "1", "0", "'1'", "1.5", "''"]
    wanted = parse(" AND ".join(f"{'NOT ' * (i % 2)}ODD(n, {literal})" for i, literal in enumerate(literals)))
    assert Filter.parse(str(wanted), limits=None) == wanted == Filter.from_dict(wanted.to_dict())
    assert wanted.explain(Event("t", {"n": 1})).failed
    assert parse("ODD(n, 1)") == parse("ODD(n, 1.0)") != parse("ODD(n, TRUE)")
    assert parse("ODD(n, 1)").overlaps(parse("NOT ODD(n, TRUE)"))


def test_kinds_are_registered_once_under_a_name_in_capitals() -> None:
    assert {"OVERLAPS", "WITHIN", "ODD"} <= known_kinds()
    register_kind(Within())

    class Impostor(Odd):
        name: ClassVar[str] = "WITHIN"

    with pytest.raises(ValueError, match="registered already, by Within"):
        register_kind(Impostor())
    for name in ("within", "WITH IN", "", "1X", "LIKE", "TRUE"):
        with pytest.raises(ValueError, match="identifier in capitals and no keyword"):
            register_kind(type("Named", (Odd,), {"name": name})())


def test_a_class_that_is_run_again_is_registered_again() -> None:
    def run() -> ConstraintKind:
        class Even(Odd):
            name: ClassVar[str] = "EVEN"

            def matches(self, value: Any, *literals: Any) -> bool:
                return not super().matches(value, *literals)

        return Even()

    first, second = run(), run()
    assert type(first) is not type(second)
    register_kind(first)
    register_kind(second)
    assert parse("EVEN(n)").matches(Event("t", {"n": 2}))


def test_a_kind_must_say_what_it_matches() -> None:
    with pytest.raises(TypeError, match="matches"):
        type("Silent", (ConstraintKind,), {"name": "SILENT"})()


def test_a_kind_that_is_not_known_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = parse(BERLIN)
    data, other = wanted.to_dict(), parse(PARIS)
    monkeypatch.delitem(kinds._registered, "WITHIN")
    for ask in (
        lambda: Filter.from_dict(data),
        lambda: wanted.matches(at("Berlin")),
        lambda: wanted.covers(other),
        lambda: wanted & other,
    ):
        with pytest.raises(UnknownKind, match=r"^the constraint kind WITHIN is not known here") as caught:
            ask()
        assert caught.value.name == pickle.loads(pickle.dumps(caught.value)).name == "WITHIN"


# --- OVERLAPS ---


def subscription(wanted: object) -> Event:
    return Event("subscribed", {"filter": wanted})


@pytest.mark.parametrize(
    ("wanted", "verdict"),
    [
        ("a = 1", True),
        ("a > 0", True),
        ("TRUE", True),
        ("b = 1", True),
        ("a = 2", False),
        ("FALSE", False),
        ("no filter", False),
        ("", False),
        (1, False),
        (None, False),
        (["a = 1"], False),
        ({}, False),
        ({"boxes": []}, False),
        (Filter.parse("a = 1").to_dict(), True),
        (Filter.parse("a = 2").to_dict(), False),
    ],
)
def test_overlaps_finds_the_filters_that_overlap(wanted: object, verdict: bool) -> None:
    assert parse("OVERLAPS(filter, 'a = 1')").matches(subscription(wanted)) is verdict
    assert parse("NOT OVERLAPS(filter, 'a = 1')").matches(subscription(wanted)) is not verdict


def test_overlaps_needs_something_there() -> None:
    assert not parse("OVERLAPS(filter, 'TRUE')").matches(Event("subscribed"))
    assert not parse("OVERLAPS(filter, 'FALSE')").matches(subscription("TRUE"))


def test_overlaps_relates_as_its_filters_do() -> None:
    wide, narrow = parse("OVERLAPS(filter, 'a > 0')"), parse("OVERLAPS(filter, 'a = 1')")
    assert wide.covers(narrow) and not narrow.covers(wide)
    assert parse("OVERLAPS(filter, 'a = 2')").overlaps(narrow)
    assert not parse("OVERLAPS(filter, 'FALSE')").overlaps(narrow)
    assert parse("filter IS STRING OR filter IS MAP").covers(wide)


def test_overlaps_quotes_its_filter() -> None:
    wanted = parse("OVERLAPS(filter, 'name = ''it''''s''')")
    assert wanted.matches(subscription("name = 'it''s'")) and not wanted.matches(subscription("name = 'its'"))
    assert Filter.parse(str(wanted)) == wanted


def test_what_is_wrong_in_the_quoted_filter_is_said() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse("OVERLAPS(filter, 'a =')")
    assert caught.value.expected == "OVERLAPS with a filter in single quotes (column 4: expected a value)"


def test_overlaps_does_not_read_a_filter_of_too_many_boxes() -> None:
    boxes = [{"sets": [[["data", f"a{i}"], {"flags": 2}], [["data", "b"], {"flags": 2}]]} for i in range(257)]
    wanted = parse("OVERLAPS(filter, 'TRUE')")
    assert wanted.matches(subscription({"boxes": boxes[:256]}))
    assert not wanted.matches(subscription({"boxes": boxes}))
