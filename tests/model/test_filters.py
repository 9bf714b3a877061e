"""The definition of filters, sentence by sentence, in examples."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from vestnik import ANY, Event, Filter, FilterError, FilterSyntaxError, FilterTooComplex


def parse(text: str) -> Filter:
    return Filter.parse(text)


def matches(text: str, data: dict[str, Any] | None = None, **envelope: Any) -> bool:
    return parse(text).matches(Event(envelope.pop("type", "t"), data, **envelope))


def same(one: str, other: str) -> bool:
    return parse(one) == parse(other) and parse(one).same_as(parse(other))


QUOTE = {"symbol": "ACME", "price": 12.5}
PATIENT: dict[str, Any] = {
    "patient": {"vitals": {"pulse": 130}, "ward": "3b"},
    "tags": ["new", "urgent"],
    "items": [{"kind": "cpu", "price": 200}, {"kind": "ram", "price": 50}, {"kind": "cpu", "price": 90}],
}


def test_the_three_filters_that_the_definition_begins_with() -> None:
    first = "type IS market.quote AND symbol IN ('ACME', 'INIT') AND price BETWEEN 10 AND 20"
    assert matches(first, QUOTE, type="market.quote.nyse")
    assert not matches(first, QUOTE, type="market.quotes")
    second = "subject GLOB '/exchange/*/tech/**' AND NOT (volume < 1000 OR halted = TRUE)"
    assert matches(second, {}, subject="/exchange/europe/tech/xxx")
    assert not matches(second, {"volume": 999}, subject="/exchange/europe/tech/xxx")
    assert not matches(second, {"volume": 1000, "halted": True}, subject="/exchange/europe/tech")
    third = (
        "patient.vitals.pulse > 120 AND EXISTS patient.ward AND ANY tags = 'urgent'"
        " AND ANY items (kind = 'cpu' AND price < 100)"
    )
    assert matches(third, PATIENT)
    assert not matches(third, PATIENT | {"items": PATIENT["items"][:2]})


# --- names ---


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("type = 't'", True),
        ("data.type = 'inner'", True),
        ("type = 'inner'", False),
        ("data.price = 1", True),
        ("price = 1", True),
        ('"price" = 1', True),
        ('"odd name" = 2', True),
        ('"a ""quoted"" name" = 3', True),
        ('deep."odd name".x = 4', True),
        ("data.data = 5", True),
        ('"AND" = 6', True),
        ('data."source" = 7', True),
        ("Type = 8", True),
        ("größe = 9", True),
        ('"" = 10', True),
    ],
)
def test_names_and_paths(text: str, verdict: bool) -> None:
    data = {"type": "inner", "price": 1, "odd name": 2, 'a "quoted" name': 3, "deep": {"odd name": {"x": 4}}}
    data |= {"data": 5, "AND": 6, "source": 7, "Type": 8, "größe": 9, "": 10}
    assert matches(text, data) is verdict


def test_paths_go_through_maps_not_lists() -> None:
    assert matches("a.b = 1", {"a": {"b": 1}})
    assert not matches("a.b = 1", {"a": [{"b": 1}]}) and not matches("EXISTS a.b", {"a": [{"b": 1}]})
    assert not matches('a."0" = 1', {"a": [1]})


ENVELOPE = {
    "source": "s",
    "id": "i",
    "subject": "/x",
    "time": 5,
    "priority": 7,
    "not_before": 6,
    "expires": 9,
    "seq": 3,
}


@pytest.mark.parametrize(
    "text",
    [
        "id = 'i'",
        "source = 's'",
        "subject = '/x'",
        "time = 5",
        "priority = 7",
        "seq = 3",
        "not_before = 6",
        "expires = 9",
    ],
)
def test_the_envelope(text: str) -> None:
    assert matches(text, None, **ENVELOPE)
    assert not matches(text, ENVELOPE)


# --- literals ---


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"), ("''", ""), (r"'\n'", r"\n"), ("'é\U0001f600'", "é\U0001f600"), ("'\0'", "\0"),
        ("0", 0), ("-0", 0), ("-1", -1), ("1.5", 1.5), ("1e2", 100), ("1E+2", 100), ("15e-1", 1.5), ("0.1", 0.1),
        ("1.0", 1),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)), ("1e300", 1e300), ("1e-400", 0),
        ("TRUE", True), ("false", False), ("Null", None), ("TIMESTAMP '1970-01-01T00:00:01Z'", 1_000_000),
        ("timestamp '1970-01-01T01:00:00.5+01:00'", 500_000),
    ],
)  # fmt: skip
def test_literals(literal: str, value: Any) -> None:
    assert matches(f"a = {literal}", {"a": value})
    assert not matches(f"a = {literal}", {"a": [value]})


def test_times_are_microseconds_since_1970() -> None:
    assert matches("time = TIMESTAMP '2024-05-01T12:30:00Z'", time="2024-05-01T12:30:00Z")
    assert matches("time = 1714566600000000", time="2024-05-01T12:30:00Z")


def test_numbers_compare_by_exact_value() -> None:
    assert not matches("a = 9007199254740993", {"a": 2**53}) and not matches("a = 9007199254740993", {"a": 2.0**53})
    assert matches("a = 9007199254740992.0", {"a": 2**53}) and not matches("a = 9007199254740992.0", {"a": 2**53 + 1})
    assert matches("a > 9007199254740992", {"a": 2**53 + 1}) and matches("a < 1e19", {"a": 2**63 - 1})
    assert matches("a = 1", {"a": 1.0}) and matches("a = 1.0", {"a": 1}) and matches("a = -0.0", {"a": 0})
    assert not matches("a = 0.1", {"a": 0.1 + 2**-56})


def test_booleans_are_not_numbers() -> None:
    assert (
        not matches("a = 1", {"a": True}) and not matches("a = TRUE", {"a": 1}) and not matches("a >= 0", {"a": True})
    )


def test_strings_compare_by_code_point() -> None:
    assert matches("a < 'a'", {"a": "Z"}) and matches("a > '\ue000'", {"a": "\U00010000"})
    assert matches("a > 'a'", {"a": "a\0"}) and matches("a < 'é'", {"a": "z"})


# --- comparisons: true only if there, of the right kind, and in the set ---

VALUES: dict[str, Any] = {"nil": None, "yes": True, "one": 1, "x": "x", "many": [1], "inner": {"a": 1}}


@pytest.mark.parametrize(
    ("test", "true_of"),
    [
        ("= 1", "one"),
        ("= 'x'", "x"),
        ("= NULL", "nil"),
        ("= TRUE", "yes"),
        ("< 2", "one"),
        ("<= 0", ""),
        ("> ''", "x"),
        (">= 'x'", "x"),
        ("BETWEEN 1 AND 2", "one"),
        ("BETWEEN 2 AND 1", ""),
        ("BETWEEN 'a' AND 'x'", "x"),
        ("IN (1, 'x', NULL)", "one x nil"),
        ("LIKE '_'", "x"),
        ("GLOB '*'", "x"),
        ("MATCHES '.'", "x"),
        ("!= 1", "nil yes x many inner"),
        ("!= NULL", "yes one x many inner"),
        ("NOT BETWEEN 1 AND 2", "nil yes x many inner"),
        ("NOT BETWEEN 2 AND 1", "nil yes one x many inner"),
        ("NOT IN (1, 'x')", "nil yes many inner"),
        ("NOT LIKE 'x'", "nil yes one many inner"),
        ("NOT GLOB 'y'", "nil yes one x many inner"),
        ("NOT MATCHES 'x|y'", "nil yes one many inner"),
        ("IS NULL", "nil"),
        ("IS BOOLEAN", "yes"),
        ("IS NUMBER", "one"),
        ("IS STRING", "x"),
        ("IS LIST", "many"),
        ("IS MAP", "inner"),
        ("IS NOT NULL", "yes one x many inner"),
        ("IS NOT STRING", "nil yes one many inner"),
    ],
)
def test_what_each_comparison_is_true_of(test: str, true_of: str) -> None:
    assert [name for name in VALUES if matches(f"{name} {test}", VALUES)] == [n for n in VALUES if n in true_of.split()]
    assert not matches(f"missing {test}", VALUES)
    assert matches(f"NOT missing {test}", VALUES)
    assert matches("NOT (" + " OR ".join(f"{name} {test}" for name in VALUES) + ")", VALUES) is (true_of == "")


def test_exists() -> None:
    assert all(matches(f"EXISTS {name}", VALUES) for name in VALUES)
    assert not matches("EXISTS missing", VALUES) and matches("NOT EXISTS missing", VALUES)
    assert not matches("EXISTS a", {"b": 1}) and matches("EXISTS a", {"a": None})


@pytest.mark.parametrize(
    ("test", "text", "verdict"),
    [
        ("LIKE 'a%'", "a", True),
        ("LIKE 'a%'", "ab\n", True),
        ("LIKE 'a%'", "ba", False),
        ("LIKE 'a_c'", "abc", True),
        ("LIKE 'a_c'", "a\U0001f600c", True),
        ("LIKE 'a_c'", "ac", False),
        (r"LIKE 'a\%'", r"a\bc", True),
        (r"LIKE 'a\%'", "a%", False),
        (r"LIKE 'a\%' ESCAPE '\'", "a%", True),
        (r"LIKE 'a\%' ESCAPE '\'", "ab", False),
        ("LIKE 'a!_!!%' ESCAPE '!'", "a_!x", True),
        ("LIKE '%%' ESCAPE '%'", "%", True),
        ("GLOB '/a/*'", "/a/b", True),
        ("GLOB '/a/*'", "/a/", True),
        ("GLOB '/a/*'", "/a/b/c", False),
        ("GLOB '/a/**'", "/a/b/c", True),
        ("GLOB '/a/**'", "/a", True),
        ("GLOB '/a/**'", "/ab", False),
        ("GLOB '/a/**/z'", "/a/z", True),
        ("GLOB '/a/**/z'", "/a/b/c/z", True),
        ("GLOB '**/z'", "z", True),
        ("GLOB '**/z'", "/y/z", True),
        ("GLOB '/a*/z'", "/abc/z", True),
        ("GLOB '/a*/z'", "/a/b/z", False),
        ("GLOB '/[a]?'", "/[a]?", True),
        ("MATCHES 'ab'", "xab", False),
        ("MATCHES 'a.b'", "a\nb", True),
        ("MATCHES '(?i)ab+'", "aBB", True),
        ("MATCHES '[a-c]{2}'", "ab", True),
    ],
)
def test_patterns(test: str, text: str, verdict: bool) -> None:
    assert matches(f"a {test}", {"a": text}) is verdict
    assert matches(f"a NOT {test}", {"a": text}) is not verdict


def test_type_is_the_type_or_a_descendant() -> None:
    assert matches("type IS market", type="market") and matches("type IS market", type="market.quote.nyse")
    assert not matches("type IS market", type="markets") and not matches("type IS market.quote", type="market")
    assert matches("type IS 'x y.z'", type="x y.z.a") and matches('type IS "is"', type="is")
    assert matches("NOT type IS market", type="news")


# --- lists ---


@pytest.mark.parametrize(
    ("text", "value", "verdict"),
    [
        ("ANY x = 1", [1, 2], True),
        ("ANY x = 1", [2, "1", True], False),
        ("ANY x = 1", [], False),
        ("ANY x = 1", 1, False),
        ("ANY x = 1", {"a": 1}, False),
        ("ANY x != 1", [1, 2], True),
        ("ANY x IS NULL", [None], True),
        ("ANY x IS NOT MAP", [{}], False),
        ("ALL x = 1", [1, 1.0], True),
        ("ALL x = 1", [1, 2], False),
        ("ALL x = 1", [], True),
        ("ALL x = 1", None, False),
        ("NOT ANY x = 1", 1, True),
        ("NOT ANY x = 1", [], True),
        ("NOT ALL x = 1", 1, True),
        ("NOT ALL x = 1", [], False),
        ("ANY x (a = 1 AND b = 2)", [{"a": 1}, {"b": 2}], False),
        ("ANY x (a = 1 AND b = 2)", [{"a": 1, "b": 2}], True),
        ("ANY x (a = 1) AND ANY x (b = 2)", [{"a": 1}, {"b": 2}], True),
        ("ANY x (NOT a = 1)", [1], False),
        ("ANY x (NOT a = 1)", [{}], True),
        ("ANY x (TRUE)", [1, [], None], False),
        ("ALL x (a = 1)", [{"a": 1}, 1], False),
        ("ALL x (a = 1)", [], True),
        ("ANY x (type = 'q' AND source.y = 1)", [{"type": "q", "source": {"y": 1}}], True),
        ("ANY x (@ > 1 AND @ < 5)", [0, 9], False),
        ("ANY x (@ > 1 AND @ < 5)", [3], True),
        ("ANY x > 1 AND ANY x < 5", [0, 9], True),
        ("ALL x (@ = 1 OR a = 1)", [1, {"a": 1}], True),
        ("ANY x (ANY @ = 1)", [[2], [1]], True),
        ("ANY x (ANY y = 1 AND z = 2)", [{"y": [0, 1], "z": 2}], True),
        ("ANY x (ALL y (@ > 0))", [{"y": [0, 1]}, {"y": []}], True),
    ],
)
def test_any_and_all(text: str, value: Any, verdict: bool) -> None:
    assert matches(text, {"x": value}) is verdict
    assert not matches("ANY x = 1") and not matches("ALL x = 1") and matches("NOT ANY x = 1")


# --- NOT, AND, OR ---


def test_prefix_not_is_complement() -> None:
    assert matches("NOT price = 10", {}) and not matches("price != 10", {})
    assert matches("NOT price = 10", {"price": "10"}) and matches("price != 10", {"price": "10"})


def test_or_binds_less_than_and_less_than_not() -> None:
    assert same("a = 1 OR b = 1 AND c = 1", "a = 1 OR (b = 1 AND c = 1)")
    assert same("NOT a = 1 AND b = 1", "(NOT (a = 1)) AND b = 1")
    assert same("a BETWEEN 1 AND 2 AND b = 1", "(a BETWEEN 1 AND 2) AND (b = 1)")
    assert same("nOt ExIsTs a oR trUe", "TRUE")


def test_true_and_false() -> None:
    assert parse("TRUE") == Filter.all() and parse("FALSE") == Filter.none()
    assert matches("TRUE") and not matches("FALSE")


# --- the algebra ---


def test_one_set_for_each_path() -> None:
    assert parse("x BETWEEN 5 AND 8").covers(parse("x BETWEEN 4 AND 7 AND x BETWEEN 6 AND 9"))
    assert parse("x = 1 AND x = 2") == Filter.none() == parse("x > 1 AND x < 'a'")


def test_paths_that_extend_one_another_are_not_independent() -> None:
    assert parse("EXISTS a").covers(parse("a.b = 2")) and parse("a IS MAP").covers(parse("EXISTS a.b"))
    assert not parse("a = 1").overlaps(parse("a.b = 2")) and not parse("NOT EXISTS a").overlaps(parse("EXISTS a.b.c"))
    assert parse("NOT EXISTS a.b").covers(parse("a = 1")) and same("a.b = 2 AND EXISTS a", "a.b = 2")
    assert not parse("EXISTS a.b").covers(parse("a IS MAP"))


def test_an_envelope_attribute_has_its_own_universe() -> None:
    for name in ("type", "source", "id", "priority"):
        assert parse(f"EXISTS {name}") == Filter.all()
    assert parse("type IS STRING") == Filter.all() and parse("type = 1") == Filter.none() == parse("type = ''")
    assert parse("EXISTS subject") != Filter.all() and parse("subject IS NULL") == Filter.none()
    assert same("priority > 3.5 AND priority < 5", "priority = 4") and same("priority >= 0", "TRUE")
    assert parse("priority = 1.5 OR priority > 9 OR seq < 1 OR time = 0.5") == Filter.none()
    assert same("subject IS STRING", "EXISTS subject") and same("time IS NUMBER", "EXISTS time")
    assert same("priority != 0 AND priority != 9", "priority BETWEEN 1 AND 8")


def test_numbers_are_dense_in_data_and_whole_in_the_envelope() -> None:
    assert parse("a > 1 AND a < 2") != Filter.none() and parse("seq > 1 AND seq < 2") == Filter.none()
    assert same("seq > 1", "seq >= 2") and not same("a > 1", "a >= 2")


def test_lists_overlap_and_cover() -> None:
    assert not parse("ALL x < 5").overlaps(parse("ANY x > 7")) and parse("ALL x < 5").overlaps(parse("ANY x > 3"))
    assert parse("ANY x > 1").covers(parse("ANY x > 2")) and not parse("ANY x > 2").covers(parse("ANY x > 1"))
    assert parse("ANY x < 5").covers(parse("ANY x > 3 AND ALL x < 5")) and parse("ALL x < 9").covers(parse("ALL x < 5"))
    assert not parse("ANY x < 5").covers(parse("ALL x < 5")) and parse("x IS LIST").covers(parse("ALL x (FALSE)"))
    assert parse("ALL x = 1").covers(parse("ALL x (FALSE)")) and same("ALL x (FALSE)", "ALL x = 1 AND ALL x = 2")
    assert same("ANY x = 1 OR ANY x = 2", "ANY x IN (1, 2)") and same("ALL x = 1 AND ALL x < 5", "ALL x = 1")
    assert parse("ANY x != 1 OR ALL x = 0").same_as(parse("ANY x != 1 OR ALL x != 1"))
    assert same("ALL x = 1 OR ANY x != 1", "x IS LIST")


def test_unions_cover_together() -> None:
    assert parse("x < 5 OR x > 3").covers(parse("x IS NUMBER")) and parse("x < 5 OR NOT x < 5").covers(Filter.all())
    assert parse("a = 1 OR b = 1").covers(parse("a = 1 AND c = 1"))
    halves = parse("a < 5 AND b < 5 OR a >= 5 AND b < 5 OR b >= 5 AND a < 5 OR a >= 5 AND b >= 5")
    assert halves.covers(parse("a IS NUMBER AND b IS NUMBER")) and not halves.covers(parse("a IS NUMBER"))


def test_regular_sets_relate_exactly() -> None:
    assert parse("s LIKE 'a%'").covers(parse("s LIKE 'ab%'")) and parse("s GLOB '/a/**'").covers(
        parse("s GLOB '/a/*/c'")
    )
    assert parse("s MATCHES '(a|b)*'").covers(parse("s MATCHES 'a*b*'"))
    assert not parse("s LIKE '%a'").overlaps(parse("s MATCHES '.*b'")) and same("s LIKE 'a%'", "s MATCHES 'a.*'")
    assert same("s MATCHES 'a|b'", "s IN ('a', 'b')") and same("s LIKE 'a%'", "s >= 'a' AND s < 'b'")
    assert same("s MATCHES '(?i)x'", "s IN ('x', 'X')") and same("s GLOB '**'", "s IS STRING")


def test_equal_means_same_and_for_single_boxes_same_means_equal() -> None:
    assert same("a IN (2, 1)", "a = 1 OR a = 2") and hash(parse("a IN (2, 1)")) == hash(parse("a = 1 OR a = 2"))
    assert same("a != 1", "EXISTS a AND NOT a = 1") and parse("a = 1") != parse("a = 2")
    assert parse("a = 1") != "a = 1"


def test_merge() -> None:
    assert parse("a = 1 AND b = 1").merge(parse("a = 2 AND b = 1")) == parse("a IN (1, 2) AND b = 1")
    assert parse("a > 0").merge(parse("a = 5")) == parse("a > 0") == parse("a > 0").merge(parse("a > 0"))
    assert parse("a = 1 AND b = 1").merge(parse("a = 2 AND b = 2")) is None
    assert parse("a = 1").merge(Filter.none()) == parse("a = 1") == Filter.none().merge(parse("a = 1"))
    assert Filter.none().merge(Filter.none()) == Filter.none()
    assert parse("a IS NUMBER AND NOT a.b = 1").merge(parse("a IS MAP AND NOT a.b = 1")) is not None
    assert parse("EXISTS a AND EXISTS a.b").merge(parse("EXISTS a AND NOT EXISTS a.b")) == parse("EXISTS a")


def test_hull() -> None:
    one, other = parse("a = 1 AND b = 1"), parse("a = 2 AND b = 2")
    hull = one.hull(other)
    assert hull == parse("a IN (1, 2) AND b IN (1, 2)") and hull.unwanted == 0.5
    wanted, unwanted = Event("t", {"a": 1, "b": 1}), Event("t", {"a": 1, "b": 2})
    assert one.hull(other, sample=[wanted, wanted, wanted, unwanted]).unwanted == 0.25
    assert one.hull(other, sample=[]).unwanted == 0 and one.hull(Filter.none()) == one
    assert Filter.none().hull(Filter.none()) == Filter.none()


@pytest.mark.parametrize(
    ("one", "other", "unwanted"),
    [
        ("tags = 'a' AND p < 10", "tags = 'b' AND p < 20", 1 / 3),
        ("ANY tags = 'a' AND p < 10", "ANY tags = 'b' AND p < 20", 1 / 3),
        ("ANY x = 1 AND ANY x = 2 AND p = 1", "ANY x = 3 AND p = 2", 1 / 2),
        ("ALL x < 5 AND p = 1", "ALL x < 9 AND p = 2", 1 / 4),
        ("ANY x (a = 1 AND b.c < 5) AND p = 1", "ANY x (a = 2) AND p = 2", 1 / 2),
        ("ANY x (ANY @ = 1) AND p = 1", "ANY x (ANY @ = 2) AND p = 2", 1 / 2),
        ("OVERLAPS(x, 'a = 1')", "OVERLAPS(x, 'a = 2')", 1 / 4),
        ("OVERLAPS(x, 'a = 1') AND p = 1", "OVERLAPS(x, 'a = 1') AND p = 2", 0),
        ("OVERLAPS(x, 'a = 1')", "NOT OVERLAPS(x, 'a = 1')", 0),
        ("(a = 1 OR a IS MAP) AND (a.b = 5 OR NOT EXISTS a.b)", "a IS MAP AND (a.b = 7 OR NOT EXISTS a.b)", 0),
    ],
)
def test_how_much_a_hull_is_estimated_to_let_in(one: str, other: str, unwanted: float) -> None:
    assert parse(one).hull(parse(other)).unwanted == parse(other).hull(parse(one)).unwanted == unwanted


def test_explain() -> None:
    wanted = parse("price > 10 AND symbol = 'ACME' AND EXISTS volume")
    found = wanted.explain(Event("t", {"price": 12, "symbol": "INIT"}))
    assert not found and not found.matches
    verdicts = {verdict.path: (verdict.constraint, verdict.holds) for box in found.boxes for verdict in box}
    assert verdicts == {
        "price": ("price > 10", True),
        "symbol": ("symbol = 'ACME'", False),
        "volume": ("EXISTS volume", False),
    }
    assert [verdict.constraint for verdict in found.failed] == ["symbol = 'ACME'", "EXISTS volume"]
    assert "nothing there" in str(found) and "saw 'INIT'" in str(found)
    near = parse("a = 1 AND b = 1 AND c = 1 OR d = 1").explain(Event("t", {"a": 1}))
    assert [verdict.constraint for verdict in near.failed] == ["d = 1"]
    assert parse("a = 1").explain(Event("t", {"a": 1})).failed == () == Filter.none().explain(Event("t")).failed
    assert Filter.all().explain(Event("t")).matches


def test_what_it_would_take_to_match() -> None:
    found = parse("(x = 1 OR x IS STRING) AND y > 5").explain(Event("t", {"x": 5, "y": 1}))
    assert str(found).splitlines()[-1] == "it would match if: (x = 1 OR x IS STRING) AND y > 5"


def test_templates() -> None:
    wanted = Filter.template("flight", "PR", ANY)
    assert wanted.matches(Event.tuple("flight", "PR", 101)) and wanted.matches(Event.tuple("flight", "PR", None))
    assert not wanted.matches(Event.tuple("flight", "LH", 101)) and not wanted.matches(Event.tuple("flight", "PR"))
    assert not wanted.matches(Event.tuple("flight", "PR", 101, 1))
    typed = Filter.template(str, int, bool, list, dict, type(None), 1.5)
    assert typed.matches(Event.tuple("a", 2.5, True, [], {}, None, 1.5))
    assert not typed.matches(Event.tuple("a", True, True, [], {}, None, 1.5))
    odd: Any
    for odd in ([], float("nan"), 2**63, object):
        with pytest.raises(FilterError, match="position 1"):
            Filter.template(1, odd)


def test_a_filter_is_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        parse("a = 1")._region = None  # type: ignore[assignment]


# --- text ---


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a=1 and b='x'", "a = 1 AND b = 'x'"),
        ("a in (2,1) OR a = 3", "a IN (1, 2, 3)"),
        ("a >= 1 AND a <= 2", "a BETWEEN 1 AND 2"),
        ("NOT (a < 1 OR NOT a IS NUMBER)", "a >= 1"),
        ("NOT EXISTS a", "NOT EXISTS a"),
        ("a != 1", "a != 1"),
        ("NOT a = 1", "NOT a = 1"),
        ("data.type = 1", "data.type = 1"),
        ('"in".x = 1', '"in".x = 1'),
        ("type IS market.quote", "type IS market.quote"),
        ("type IS 'x y'", "type IS 'x y'"),
        ("a LIKE 'x%'", "a LIKE 'x%'"),
        ("a >= '%' AND a < '&'", r"a LIKE '\%%' ESCAPE '\'"),
        ("a LIKE '%x%' AND NOT a LIKE '%y%'", "a LIKE '%x%' AND NOT a LIKE '%y%'"),
        ("time > TIMESTAMP '2024-05-01T12:30:00Z'", "time >= TIMESTAMP '2024-05-01T12:30:00.000001Z'"),
        ("priority BETWEEN 2 AND 3 OR priority >= 6", "priority BETWEEN 2 AND 3 OR priority >= 6"),
        ("a = 1 OR a IS MAP OR NOT EXISTS a.b", "(a = 1 OR a IS MAP) OR NOT EXISTS a.b"),
        ("(a = 1 OR NOT EXISTS a) OR b = 1", "(a = 1 OR NOT EXISTS a) OR b = 1"),
        ("ANY a (@ = 1)", "ANY a = 1"),
        ("a = 'it''s'", "a = 'it''s'"),
        ("a = 9007199254740993 OR a = 1e300", "a IN (9007199254740993, 1e+300)"),
    ],
)
def test_what_is_printed(text: str, printed: str) -> None:
    assert str(parse(text)) == printed
    assert parse(printed) == parse(text) and repr(parse(text)) == f"Filter.parse({printed!r})"


# --- errors ---


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "a path, NOT, EXISTS, ANY, ALL, TRUE, FALSE or ("),
        ("   ", 1, "a path, NOT, EXISTS, ANY, ALL, TRUE, FALSE or ("),
        ("a", 2, "a comparison (of a boolean: = TRUE)"),
        ("a = ", 4, "a value"),
        ("a = b", 5, "a value (strings go in single quotes; two paths cannot be compared)"),
        ("a = 1 b = 2", 7, "AND, OR or the end of the filter"),
        ("(a = 1", 7, "AND, OR or )"),
        ("a = 'x", 5, "a closing '"),
        ('"x = 1', 1, 'a closing "'),
        ("a = 01", 5, "a number as in JSON"),
        ("a = .5", 5, "a value"),
        ("a = +5", 5, "a number as in JSON"),
        ("a = 1.", 5, "a number as in JSON"),
        ("a = 9223372036854775808", 5, "an integer that fits 64 bits"),
        ("a = -9223372036854775809", 5, "an integer that fits 64 bits"),
        ("a = 1e309", 5, "a number that fits a double"),
        ("a ; 1", 3, "a name, a value or an operator"),
        ("source.x = 1", 1, "source alone, or data.source.x for the data attribute"),
        ("a = 1 AND type.x = 1", 11, "type alone, or data.type.x for the data attribute"),
        ("data = 1", 1, "data.NAME, an attribute of the data"),
        ("a. = 1", 4, 'a name (put "..." around odd or reserved ones)'),
        ("a.in = 1", 3, 'a name (put "..." around odd or reserved ones)'),
        ("@ = 1", 1, "a path (@ is an element, inside ANY or ALL)"),
        ("a < TRUE", 5, "a number or a string"),
        ("a > NULL", 5, "a number or a string"),
        ("a BETWEEN 1 AND 'x'", 17, "a number, as the lower end is"),
        ("a BETWEEN 'x' AND 1", 19, "a string, as the lower end is"),
        ("a BETWEEN 1 OR 2", 13, "AND"),
        ("a NOT = 1", 7, "BETWEEN, IN, LIKE, GLOB or MATCHES"),
        ("a IN 1", 6, "("),
        ("a IN (1 2)", 9, ", or )"),
        ("a IN ()", 7, "a value"),
        ("a LIKE 1", 8, "a pattern in single quotes"),
        ("a LIKE 'x' ESCAPE 'ab'", 19, "one character in single quotes"),
        ("a LIKE 'x' ESCAPE ''", 19, "one character in single quotes"),
        ("a LIKE '!x' ESCAPE '!'", 8, "a LIKE pattern (only %, _ and ! may follow the escape !, at character 2)"),
        ("a LIKE '%%%' ESCAPE '%'", 8, "a LIKE pattern (nothing follows the escape %, at character 3)"),
        ("a GLOB '/a**'", 8, "a GLOB pattern (** must be a whole level, at character 3)"),
        ("a MATCHES '(a'", 11, "a MATCHES pattern (this ( is never closed, at character 1)"),
        (r"a MATCHES 'a\b'", 11, "a MATCHES pattern (word boundaries are not supported, at character 2)"),
        ("a IS x", 6, "NULL, BOOLEAN, NUMBER, STRING, LIST or MAP (only the envelope's type IS a type name)"),
        ("type IS NOT x", 13, "NULL, BOOLEAN, NUMBER, STRING, LIST or MAP (only the envelope's type IS a type name)"),
        ("type IS ''", 9, "a type name"),
        ("type IS 1", 9, "a type name, NULL, BOOLEAN, NUMBER, STRING, LIST or MAP"),
        ("time > TIMESTAMP 5", 18, "a time in single quotes"),
        ("ANY = 1", 5, "a path"),
        ("ANY x (y = 1", 13, "AND, OR or )"),
        ("a = '\ud800'", 5, "text without lone surrogates"),
    ],
)  # fmt: skip
def test_what_is_wrong_where_and_what_was_expected(text: str, column: int, expected: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.text, error.column, error.expected) == (text, column, expected)


def test_the_message_shows_the_place() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse("a = 1 AND\n\tb = AND c = 3")
    assert str(caught.value) == "column 16: expected a value\n   b = AND c = 3\n       ^"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.column, str(again)) == (16, str(caught.value))


def test_the_message_of_a_long_line_shows_the_part_around_the_place() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(" AND ".join(["a = 1"] * 30) + " AND ; " + "b = 2")
    _, line, caret = str(caught.value).split("\n")
    assert len(line) <= 102 and line[caret.index("^")] == ";"


def test_a_bad_time_is_said() -> None:
    with pytest.raises(FilterSyntaxError, match=r"column 18: expected an RFC 3339 time \(not an RFC 3339 time"):
        parse("time > TIMESTAMP '2024-05-01'")


def test_too_complex_names_the_limit() -> None:
    with pytest.raises(FilterTooComplex, match="more than 64 comparisons") as caught:
        parse(" OR ".join(["a = 1"] * 65))
    assert (caught.value.limit, caught.value.allowed) == ("comparisons", 64)
    assert pickle.loads(pickle.dumps(caught.value)).limit == "comparisons"


def test_a_filter_from_another_process_is_equal_and_found_in_a_dict() -> None:
    """Strings have other hashes there."""
    text = "a = 'x' AND b LIKE '%y%' AND ANY c (d = 'z')"
    code = f"""
import pickle, sys
from vestnik import Filter
sys.stdout.buffer.write(pickle.dumps(Filter.parse({text!r})))
"""
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            timeout=60,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert {pickle.loads(done.stdout): 1}[Filter.parse(text)] == 1
