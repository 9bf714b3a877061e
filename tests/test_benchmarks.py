"""The benchmarks run, on data that is what it claims to be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from benchmarks.columns import records
from benchmarks.documents import EQUALITY_RULES, MIXED_RULES, documents
from benchmarks.peers import DuckStock
from benchmarks.truth import Truth
from benchmarks.workloads import MIXES, Box, general, stock
from vestnik import Event, Filter

ROOT = Path(__file__).parent.parent


def has_equality(box: Box) -> bool:
    return any(constraint.operator in ("=", "IN") and not constraint.denied for constraint in box)


@pytest.mark.parametrize(("mix", "matches"), [("general", 850), ("selective", 90), ("range-only", 850)])
def test_matches_an_event_at_100_000_filters(mix: str, matches: int) -> None:
    workload = general(20_000, 200, mix)
    found = Truth(workload.events).counts(workload.filters).mean() * 5
    assert found == pytest.approx(matches, rel=0.25)  # 20,000 are a sample


def test_the_shape_of_general_filters() -> None:
    filters = general(5_000, 10).filters
    boxes = [box for plain in filters for box in plain.boxes]
    assert {sum(map(len, plain.boxes)) for plain in filters} == set(range(2, 9))
    assert mean(not has_equality(box) for box in boxes) == pytest.approx(MIXES["general"].free, abs=0.02)
    assert {constraint.operator for box in boxes for constraint in box} == {"=", "IN", "<", ">=", "BETWEEN", "LIKE"}


def test_equal_seeds_give_equal_data() -> None:
    assert general(100, 10, seed=5).filters == general(100, 10, seed=5).filters
    assert general(100, 10, seed=5).filters != general(100, 10, seed=6).filters
    assert documents(5) == documents(5)


@pytest.mark.parametrize("mix", MIXES)
def test_the_text_of_a_filter_means_what_its_plain_form_means(mix: str) -> None:
    workload = general(300, 40, mix)
    truth = Truth(workload.events)
    events = [Event(type="bench", source="bench", data=data) for data in records(workload.events)]
    for plain in workload.filters:
        parsed = Filter.parse(str(plain))
        assert [parsed.matches(event) for event in events] == truth.matches(plain).tolist(), plain


def test_duckdb_finds_the_true_matches() -> None:
    workload = stock(500, 200, symbols=10)
    true = int(Truth(workload.events).counts(workload.filters()).sum())
    peer = DuckStock(workload)
    assert peer.counts() == peer.pairs() == true


def test_documents_are_of_the_size_claimed_and_rules_find_some_but_not_all() -> None:
    lines = documents(1_000)
    assert mean(map(len, lines)) == pytest.approx(900, rel=0.03)
    assert (len(EQUALITY_RULES), len(MIXED_RULES)) == (5, 45)
    events = [Event(type="order", source="shop", data=json.loads(line)) for line in lines]
    for text in MIXED_RULES:
        rule = Filter.parse(text)
        assert 0 < np.mean([rule.matches(event) for event in events]) < 1, text


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("matching", {"stock-counts", "stock-pairs", "general", "range-only", "json", "single", "import"}),
        ("routing", {"simulation", "entries"}),
        ("journal", {"append", "read", "durable", "recovery", "register"}),
        ("service", {"content", "one-to-one", "subscriptions", "durable", "stopped-consumer"}),
    ],
)
def test_a_quick_run_of_everything(name: str, sections: set[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    assert {row["section"] for row in rows} == sections
