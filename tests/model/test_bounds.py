"""What one operation, question or reading may cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vestnik import Event, Filter, FilterTooComplex
from vestnik.model import boxes, work
from vestnik.model.parser import Limits


def pairs(count: int, one: str = "a", other: str = "b") -> Filter:
    return Filter.parse(" OR ".join(f"{one}{i} > {i} AND {other}{i} > {i}" for i in range(count)))


def patterns(letter: str) -> Filter:
    """Boxes whose string sets are each costly to meet with those of another letter."""
    alternatives = (f"s MATCHES '.*{letter}.{{6}}' AND s LIKE '%{i}%' AND {letter}{i} = 1" for i in range(8))
    return Filter.parse(" OR ".join(alternatives))


def test_operators_refuse_what_takes_too_much_work() -> None:
    few, many = pairs(8), pairs(20)
    assert (~few).matches(Event("t")) and not (~few).matches(Event("t", {"a0": 1, "b0": 1}))
    one, other = ~few, ~pairs(8, "c", "d")
    costly: list[Callable[[], Filter]] = [lambda: ~many, lambda: one & other, lambda: one | other]
    for operation in costly:
        with pytest.raises(FilterTooComplex, match="200,000 steps of box algebra"):
            operation()


def test_work_on_patterns_counts() -> None:
    one, other = patterns("x"), patterns("y")
    with pytest.raises(FilterTooComplex, match="200,000 steps of box algebra"):
        _ = ~one
    assert one.overlaps(other) and not one.covers(other)


def test_merge_is_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = []

    def spend(steps: float = 1) -> None:
        spent.append(steps)
        work.spend(steps)

    one, other = pairs(16), pairs(16, "a", "c")
    monkeypatch.setattr(boxes, "spend", spend)
    assert one.merge(other) is None
    assert 0.9 < sum(spent) / work.QUESTION < 1.1


def test_a_merge_keeps_what_it_has_when_work_runs_out() -> None:
    one, other = pairs(16), pairs(16, "a", "c") | Filter.parse("a0 > 5 AND b0 > 5")
    merged = one.merge(other)
    assert merged is not None and len(merged.region.boxes) == 32


def test_plain_data_has_the_limits_of_text() -> None:
    wanted = ~pairs(8) | Filter.parse("z = 1")
    data = wanted.to_dict()
    with pytest.raises(FilterTooComplex) as caught:
        Filter.from_dict(data)
    assert (caught.value.limit, caught.value.allowed) == ("boxes", 256)
    assert Filter.from_dict(data, limits=None) == wanted == Filter.from_dict(data, limits=Limits(boxes=257))
    elements = {"boxes": [{"sets": [[[f"a{i}"], {"flags": 2}], [["b"], {"flags": 2}]]} for i in range(600)]}
    within = {"boxes": [{"sets": [[["data", "x"], {"lists": [{"some": [elements]}]}]]}]}
    with pytest.raises(FilterTooComplex, match="200,000 steps of box algebra"):
        Filter.from_dict(within)
