"""What is refused where a filter is made or asked, and how that is said."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik import Filter, FilterError, TypedEvent

WANTED = Filter.parse("a = 1")
ODD: Any = {"a": 1}


def test_a_filter_is_made_by_parse() -> None:
    text: Any = "price > 5"
    with pytest.raises(TypeError, match=r"Filter\.parse"):
        Filter(text)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: Filter.parse(ODD), "expected str, not dict"),
        (lambda: WANTED.matches(ODD), "expected Event, not dict"),
        (lambda: Filter.all().matches(ODD), "expected Event, not dict"),
        (lambda: WANTED.explain(ODD), "expected Event, not dict"),
        (lambda: WANTED.covers(ODD), "expected Filter, not dict"),
        (lambda: WANTED.overlaps(ODD), "expected Filter, not dict"),
        (lambda: WANTED.same_as(ODD), "expected Filter, not dict"),
        (lambda: WANTED.merge(ODD), "expected Filter, not dict"),
        (lambda: WANTED.hull(ODD), "expected Filter, not dict"),
        (lambda: WANTED & ODD, "unsupported operand"),
        (lambda: WANTED | ODD, "unsupported operand"),
        (lambda: bool(WANTED), "combine filters with &, | and ~"),
        (lambda: not WANTED, "combine filters with &, | and ~"),
    ],
)
def test_what_is_of_another_type_is_named(ask: Any, expected: str) -> None:
    with pytest.raises(TypeError) as caught:
        ask()
    assert expected in str(caught.value)


def test_the_base_of_typed_events_stands_for_all_of_them() -> None:
    assert Filter.of(TypedEvent) == Filter.all()
    assert Filter.of(TypedEvent, "a = 1") == WANTED


# --- plain data ---


def plain(values: Any, *more: Any, path: Any = ("data", "a"), **literals: Any) -> dict[str, Any]:
    return {"boxes": [{"sets": [[["data", "b"], {"flags": 2}], [path, values], *more], **literals}]}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "TypeError"),
        ({"boxes": "ab"}, "'ab' is no list"),
        ({"boxes": [{}]}, "box 0: KeyError: 'sets'"),
        (plain({"strings": "ab"}), "box 0: path data.a: 'ab' is no list"),
        (plain({"strings": ["\ud800"]}), r"box 0: path data.a: '\ud800' is no text"),
        (plain({"strings": {"verb": "LIKE", "text": "\ud800"}}), r"box 0: path data.a: '\ud800' is no text"),
        (plain({"strings": {"verb": "MATCHES", "text": "("}}), "box 0: path data.a: pattern '(' at position 0"),
        (plain({"numbers": [[2**63 + 1, 0]]}), "is no cut of the number line"),
        (plain({"numbers": [["x", 0]]}), "is no cut of the number line"),
        (plain({}, path="ab"), "box 0: 'ab' is no list"),
        (plain({}, path=["data", "\ud800"]), r"box 0: '\ud800' is no text"),
        (plain({}, path=["x"]), "box 0: ['x'] is no path"),
        (plain({}, [["data", "a"], {}]), "box 0: path data.a: it is there twice"),
        (plain({}, literals=[[["data", "c"], "OVERLAPS", "x", True]]), "box 0: 'x' is no list"),
        (plain({}, literals=[[["data", "c"], "OVERLAPS", ["\ud800"], True]]), "are no literals"),
        (plain({"lists": [{"some": [plain({"strings": "ab"}, path=["x"])]}]}), "path data.a: box 0: path x: 'ab' is"),
    ],
)
def test_what_is_wrong_with_plain_data_and_where(data: Any, reason: str) -> None:
    with pytest.raises(FilterError, match=r"^this is no filter in plain data: ") as caught:
        Filter.from_dict(data)
    assert reason in str(caught.value)


def test_plain_data_may_end_where_integers_end() -> None:
    for values in ({"numbers": [[0, 0], [2**63, 0]]}, {"numbers": [[2**63, 1]]}):
        found = Filter.from_dict(plain(values))
        assert Filter.parse(str(found)) == found == Filter.from_dict(found.to_dict())
    assert Filter.from_dict(Filter.parse("seq >= 5").to_dict()) == Filter.parse("seq >= 5")


def test_a_template_has_no_lone_surrogates() -> None:
    with pytest.raises(FilterError, match="position 1"):
        Filter.template("x", "\ud800")
