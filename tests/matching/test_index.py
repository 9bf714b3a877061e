"""The index of filters for one event at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.matching import Matcher, naive
from vestnik.matching.single import direct, index, scan


@pytest.fixture(autouse=True, params=[(0, 0), (10_000, 0), (0, 10_000)], ids=["kernel", "plain", "direct"])
def _scan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test with the kernel, without, and with no scan at all."""
    plain, asked = request.param
    monkeypatch.setattr(index, "FEW_RECORDS", plain)
    monkeypatch.setattr(direct, "FEW_HEADS", asked)


def matching(texts: dict[str, str], data: dict[str, Any], **envelope: Any) -> set[str]:
    """The names of the filters that match an event, by the index, which agrees with the oracle."""
    filters = {name: Filter.parse(text) for name, text in texts.items()}
    matcher: Matcher[str] = Matcher()
    for name, wanted in filters.items():
        matcher.add(name, wanted)
    event = Event(type=envelope.pop("type", "t"), data=data, **envelope)
    found = matcher.match(event)
    assert found == naive.match(filters, event)
    return found


def test_what_it_is_for() -> None:
    matcher: Matcher[str] = Matcher()
    matcher.add("s1", Filter.parse("symbol = 'ACME' AND price BETWEEN 10 AND 20"))
    quote = Event("market.quote", {"symbol": "ACME", "price": 12.5})
    assert matcher.match(quote) == {"s1"}
    assert "s1" in matcher and len(matcher) == 1
    matcher.remove("s1")
    assert matcher.match(quote) == set()
    assert "s1" not in matcher and len(matcher) == 0


def test_an_id_that_is_there_is_replaced() -> None:
    matcher: Matcher[object] = Matcher()
    matcher.add(("any", "hashable"), Filter.parse("x = 1"))
    matcher.add(("any", "hashable"), Filter.parse("x = 2"))
    assert len(matcher) == 1
    assert matcher.match(Event("t", {"x": 1})) == set()
    assert matcher.match(Event("t", {"x": 2})) == {("any", "hashable")}


def test_an_unknown_id_is_an_error_and_changes_nothing() -> None:
    matcher: Matcher[str] = Matcher()
    matcher.add("a", Filter.all())
    with pytest.raises(KeyError):
        matcher.remove("b")
    assert matcher.match(Event("t")) == {"a"}


def test_booleans_are_not_numbers() -> None:
    texts = {"1": "x = 1", "true": "x = TRUE", "in": "x IN (1, TRUE)", "range": "x >= 0", "not": "x != 1"}
    assert matching(texts, {"x": 1}) == {"1", "in", "range"}
    assert matching(texts, {"x": 1.0}) == {"1", "in", "range"}
    assert matching(texts, {"x": True}) == {"true", "in", "not"}
    assert matching(texts, {"x": False}) == {"not"}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (2**53, {"=", "<=", "!="}),
        (float(2**53), {"=", "<=", "!="}),
        (2**53 + 1, {"+1", ">", "between"}),
        (2**53 + 2, {">", "between", "!="}),
    ],
)
def test_numbers_compare_exactly(value: float, found: set[str]) -> None:
    n = 2**53
    texts = {"=": f"x = {n}", "+1": f"x = {n + 1}", ">": f"x > {n}", "<=": f"x <= {n}", "!=": f"x != {n + 1}"}
    texts["between"] = f"x > {n} AND x < {n + 3}"
    assert matching(texts, {"x": value}) == found


@pytest.mark.parametrize("edge", [2**63 - 1, -(2**63), 2**53, -(2**53), 0, 1.5, 1e300, -5e-324])
def test_open_ends_are_exact_at_the_edges_of_integers_and_doubles(edge: float) -> None:
    texts = {"<": f"x < {edge!r}", ">": f"x > {edge!r}", "<=": f"x <= {edge!r}", ">=": f"x >= {edge!r}"}
    for value in (edge, float(edge), 2**63 - 1, -(2**63), float(2**63), 2**53 - 1, 2**53 + 1, -(2**63) + 1, 1e-320):
        matching(texts, {"x": value})


def test_what_is_of_another_kind_or_missing_fails_no_comparison() -> None:
    texts = {
        "number": "x < 5",
        "string": "x < 'b'",
        "like": "x LIKE '%a'",
        "has": "x LIKE '%a%'",
        "glob": "x GLOB '*/a'",
    }
    texts |= {f"not {name}": f"NOT ({text})" for name, text in texts.items()}
    texts |= {"absent": "NOT EXISTS x", "there": "x NOT LIKE '%a'"}
    for value in (3, "a", "/a", None, True, [1], {"y": 1}, 7, "c"):
        matching(texts, {"x": value})
    denials = {name for name in texts if name.startswith("not ")}
    assert matching(texts, {}) == {*denials, "absent"}


def test_unions_are_reported_once_and_constants_always_or_never() -> None:
    texts = {"union": "x = 1 OR y = 2 OR z > 3", "all": "TRUE", "none": "FALSE"}
    assert matching(texts, {"x": 1, "y": 2, "z": 4}) == {"union", "all"}
    assert matching(texts, {}) == {"all"}


def test_paths_lead_through_maps_and_the_envelope_is_not_data() -> None:
    texts = {
        "deep": "a.b.c = 1",
        "map": "a.b IS MAP",
        "shallow": "a = 1",
        "data": "data.type = 't'",
        "type": "type IS t",
    }
    assert matching(texts, {"a": {"b": {"c": 1}}}, type="t.u") == {"deep", "map", "type"}
    assert matching(texts, {"a": 1, "type": "t"}, type="u") == {"shallow", "data"}
    assert matching(texts, {"a": [{"b": {"c": 1}}]}, type="u") == set()


def test_elements_of_lists() -> None:
    texts = {
        "scalar": "ANY tags = 'urgent'",
        "either": "ANY tags IN ('urgent', 'late')",
        "map": "ANY items (kind = 'cpu' AND price < 100)",
        "two ways": "ANY items (kind = 'cpu' AND price < 100 OR kind = 'cpu' AND stock > 5)",
        "all": "ALL tags = 'urgent'",
    }
    assert matching(texts, {"tags": ["urgent"] * 3}) == {"scalar", "either", "all"}
    assert matching(texts, {"tags": ["late", 1, None, [], {}]}) == {"either"}
    assert matching(texts, {"items": [{"kind": "cpu", "price": 5}, {"kind": "cpu"}]}) == {"map", "two ways"}
    assert matching(texts, {"items": [{"kind": "cpu", "stock": 9}, 3], "tags": []}) == {"two ways", "all"}
    assert matching(texts, {"items": [{"kind": "cpu", "price": 500}], "tags": "urgent"}) == set()


def test_many_alike() -> None:
    matcher: Matcher[int] = Matcher()
    for number in range(3_000):
        matcher.add(
            number, Filter.parse(f"kind = 'a' AND x BETWEEN {number} AND {number + 10} AND name != 'n{number}'")
        )
    assert matcher.match(Event("t", {"kind": "a", "x": 1_000, "name": "n995"})) == {*range(990, 1_001)} - {995}
    for number in range(0, 3_000, 2):
        matcher.remove(number)
    assert matcher.match(Event("t", {"kind": "a", "x": 1_000, "name": "n995"})) == {991, 993, 997, 999}
    assert matcher.match(Event("t", {"kind": "b", "x": 1_000, "name": "n"})) == set()


def test_many_with_two_ways_to_the_same_element() -> None:
    matcher: Matcher[int] = Matcher()
    for n in range(200):
        matcher.add(n, Filter.parse(f"ANY items (kind = 'cpu' AND price < {n} OR kind = 'cpu' AND stock > {n})"))
    event = Event("t", {"items": [{"kind": "cpu", "price": 197, "stock": 1}]})
    assert matcher.match(event) == {0, 198, 199}
    for n in range(199):
        matcher.remove(n)
    assert matcher.match(event) == {199}


def test_strings_that_codes_do_not_tell_apart() -> None:
    long = [
        "market.quote",
        "market.quotes",
        "market.quote.eu",
        "market.trade",
        "market.",
        "market",
        "market.\0",
        "marketing",
    ]
    texts = {f"= {n}": f"x = '{text}' AND y > 0" for n, text in enumerate(long) if "\0" not in text}
    texts |= {f"< {n}": f"x < '{text}'" for n, text in enumerate(long) if "\0" not in text}
    texts |= {
        "!=": "x != 'market.quote'",
        "in": "x NOT IN ('market.quote', 'market.trade')",
        "y": "y = 1 AND x = 'market.quote'",
    }
    texts |= {"like": "x LIKE 'market.q%'", "ends": "x LIKE '%et.quote'", "not": "NOT x LIKE '%et.quotes'"}
    for text in long:
        matching(texts, {"x": text, "y": 1})
    matching(texts, {"y": 1})


def test_what_strings_contain() -> None:
    inner = ["a", "abcdefg", "abcdefgh", "é", "éé\U0001f600", "b" * 7]
    texts = {text: f"x LIKE '%{text}%'" for text in inner}
    texts |= {f"no {text}": f"x NOT LIKE '%{text}%'" for text in inner}
    texts |= {f"also {text}": f"NOT x LIKE '%{text}%' AND y = 1" for text in inner}
    for value in [
        "",
        "a",
        "xabcdefgh",
        "abcdefg",
        "abcdef",
        "é",
        "e\u0301",
        "ééé\U0001f600",
        "b" * 20,
        5,
        None,
        ["a"],
        "\0a",
    ]:
        matching(texts, {"x": value, "y": 1})
    matching(texts, {"y": 1})


def test_a_filter_that_is_none_leaves_the_old_one() -> None:
    matcher: Matcher[str] = Matcher()
    matcher.add("a", Filter.all())
    with pytest.raises(TypeError, match=r"Filter"):
        matcher.add("a", "x = 1")  # type: ignore[arg-type]
    assert matcher.match(Event("t")) == {"a"}


def test_what_is_no_event_is_refused() -> None:
    matcher: Matcher[str] = Matcher()
    with pytest.raises(TypeError, match="a Matcher matches an Event, not dict"):
        matcher.match({"x": 1})  # type: ignore[arg-type]


def test_the_filters_can_be_read_back() -> None:
    matcher: Matcher[str] = Matcher()
    matcher.add("a", Filter.all())
    matcher.add("b", Filter.none())
    assert {id: matcher[id] for id in matcher} == {"a": Filter.all(), "b": Filter.none()}
    with pytest.raises(KeyError):
        matcher["c"]


def test_an_index_that_is_emptied_and_filled_again() -> None:
    matcher: Matcher[int] = Matcher()
    for _ in range(3):
        for n in range(3_000):
            matcher.add(n, Filter.parse(f"x >= {n} AND y LIKE '%{n}%'"))
        assert matcher.match(Event("t", {"x": 12, "y": "0 to 12"})) == {0, 1, 2, 12}
        for n in range(3_000):
            matcher.remove(n)
        assert matcher.match(Event("t", {"x": 12, "y": "0 to 12"})) == set()


def test_without_numba_the_plain_scan_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vestnik.matching.single.kernel", None)
    assert scan._kernel.__wrapped__() is scan.plain_scan


def test_the_plain_scan_answers_until_the_kernel_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Callable[[], object]] = []
    monkeypatch.setattr(scan, "_kernel", cache(scan._kernel.__wrapped__))
    monkeypatch.setattr(scan, "_loading", [])
    monkeypatch.setattr(scan, "_begin", begun.append)
    monkeypatch.setattr(index, "FEW_RECORDS", 200)
    monkeypatch.setattr(direct, "FEW_HEADS", 0)
    matcher: Matcher[int] = Matcher()
    for n in range(300):
        matcher.add(n, Filter.parse(f"x >= {n} AND y LIKE '%{n}%'"))
    event = Event("t", {"x": 12, "y": "0 to 12"})
    assert matcher.match(event) == matcher.match(event) == {0, 1, 2, 12}
    assert len(begun) == 1 and matcher._scan is scan.plain_scan
    begun[0]()
    assert matcher.match(event) == {0, 1, 2, 12}
    assert matcher._scan is not scan.plain_scan


def test_the_base_install_is_enough() -> None:
    code = "import sys; from vestnik.matching import *; Matcher(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


def test_each_list_is_gone_through_once_for_all_names_in_its_elements() -> None:
    matcher: Matcher[int] = Matcher()
    for n in range(50):
        matcher.add(n, Filter.parse(f"ANY items (x{n} = {n})"))
        matcher.add(100 + n, Filter.parse(f"ANY deep.items (x{n} = {n}) AND a = 1"))
    elements = [{f"x{n}": n, "x3": 4, "x7": [7]} for n in (1, 5, 9)] + [3, [{"x2": 2}], None]
    event = Event("t", {"items": elements, "deep": {"items": elements[:1]}, "a": 1})
    assert matcher.match(event) == {1, 5, 9, 101} == naive.match({id: matcher[id] for id in matcher}, event)
    for id in list(matcher):
        matcher.remove(id)
    assert matcher.match(event) == set() and not matcher._paths._by_list


def test_what_a_list_asks_of_its_elements_counts_as_tests() -> None:
    matcher: Matcher[str] = Matcher()
    matcher.add("many", Filter.parse("ALL items (" + " OR ".join(f"x{n} > 1" for n in range(40)) + ")"))
    assert matcher.tests > 40
    matcher.remove("many")
    assert matcher.tests == 0
