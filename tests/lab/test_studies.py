"""Whole experiments, as small as they can be: rows, claims, figures, files and the page."""

from __future__ import annotations

import csv
from html.parser import HTMLParser
from pathlib import Path

import pytest

from vestnik.lab import compare, experiments, routing_study
from vestnik.lab.compare_run import Compared
from vestnik.lab.compare_run import Task as Comparison
from vestnik.lab.compare_run import measure as compare_one
from vestnik.lab.notebook import Notebook, Task, measure
from vestnik.lab.overlay import Routing
from vestnik.lab.parallel import Bench, Cores
from vestnik.lab.report import render
from vestnik.lab.results import Claim, Figure, Result, read, write
from vestnik.lab.routing import Setting
from vestnik.sim.topologies import paper

VERDICTS = {"holds", "holds in part", "does not hold"}
PNG = b"\x89PNG"


def silent(share: float) -> None:
    assert 0 < share <= 1


@pytest.fixture(scope="module")
def routing() -> Result:
    return routing_study.study(routing_study.Size([20, 50], 20, 2, 20, 1, 1), Bench(Cores(1), silent))


@pytest.fixture(scope="module")
def compared() -> Result:
    return compare.study(compare.Size(8, 4, 2, 20, 4), ["stock", "medical"], Bench(Cores(1), silent))


def test_every_claim_on_routing_is_judged(routing: Result) -> None:
    assert len(routing.claims) == 17
    assert {claim.verdict for claim in routing.claims} == VERDICTS
    verdicts = {claim.claim: claim.verdict for claim in routing.claims}
    assert [v for c, v in verdicts.items() if "help covering and merging most" in c] == ["does not hold"]
    assert [v for c, v in verdicts.items() if "approach 212,000" in c] == ["holds"]
    assert [v for c, v in verdicts.items() if "expected exactly" in c] == ["holds"]
    assert [v for c, v in verdicts.items() if "2 (|V| - 1) = 212" in c] == ["holds in part"]


def test_the_summary_has_what_is_exact_beside_what_is_measured(routing: Result) -> None:
    rows = routing.tables["routing-summary"]
    everywhere = 3  # simple, and identity on intervals, have one load less without advertisements
    assert len(rows) == 2 * 2 * (4 * 2 + 5) - everywhere  # loads; forms; strategies, without advertisements and with
    for row in rows:
        assert row["entries"] == pytest.approx(row["exact_entries"], rel=0.25)


def test_cells_are_judged_all_at_once(routing: Result) -> None:
    rows = routing.tables["routing-cells"]
    assert len(rows) == 3 * len(routing.tables["routing-summary"])
    assert all(row["agrees"] and 0 < row["p"] <= 1 for row in rows)


def test_what_was_measured_before_is_judged_too(tmp_path: Path) -> None:
    """More loads and seeds of one strategy than of the others."""
    more = Task(Setting(strategy="identity", advertisements=True, form="interval"), [20, 30], 3, 1)
    list(measure([more], Notebook(tmp_path), Bench(Cores(1), silent)))
    found = routing_study.study(routing_study.Size([20], 20, 2, 20, 1, 1), Bench(Cores(1), silent, tmp_path))
    kind = "identity", True, "interval"
    rows = found.tables["routing"]
    identity = [row for row in rows if (row["strategy"], row["advertisements"], row["form"]) == kind]
    assert sorted({(row["subscriptions"], row["seed"]) for row in identity}) == [(20, 1), (20, 2), (20, 3), (30, 3)]
    assert len(found.claims) == 17
    routing_study.draw(found, tmp_path)


def test_the_files_of_an_experiment(routing: Result, tmp_path: Path) -> None:
    written = write(routing, tmp_path, routing_study.draw)
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    for number in (16, 17, 18):
        assert (tmp_path / f"figure-{number}.png").read_bytes().startswith(PNG)
    with (tmp_path / "routing.csv").open(encoding="utf-8") as file:
        assert [int(row["entries"]) for row in csv.DictReader(file)] == [
            r["entries"] for r in routing.tables["routing"]
        ]
    assert list(read(tmp_path)) == [routing]
    assert "Verdict: holds" in (tmp_path / "routing.txt").read_text(encoding="utf-8")


def test_all_strategies_deliver_the_same_and_filters_nothing_in_vain(compared: Result) -> None:
    rows = compared.tables["compare"]
    assert len(rows) == 40
    for workload in ("stock", "medical"):
        of_workload = [row for row in rows if row["workload"] == workload]
        assert len({(row["notifications"], row["delay_median"], row["delay_95"]) for row in of_workload}) == 1
    for row in rows:
        inner = row["strategy"].split()
        if "flooding" not in inner and "hierarchical" not in inner:
            assert row["useless"] == 0
        if row["strategy"] == "flooding":
            assert (row["entries"], row["messages_per_change"], row["messages_per_publication"]) == (0, 0, 7)
            assert row["break_even"] is row["complexity"] is row["withdrawn"] is None
            assert (row["messages"], row["bytes"]) == (row["events_sent"], row["event_bytes"])
        assert row["useless"] >= 0


def test_every_claim_on_the_comparison_is_judged(compared: Result) -> None:
    verdicts = {claim.claim: claim.verdict for claim in compared.claims}
    assert len(verdicts) == 6
    assert set(verdicts.values()) <= VERDICTS
    assert verdicts["every strategy delivers the same"] == verdicts["events take the same time under every strategy"]
    assert all("stock: " in claim.measured and "medical: " in claim.measured for claim in compared.claims)


def test_where_flooding_breaks_even() -> None:
    size = compare.Size(8, 4, 2, 20, 4)
    simple = compare_one(Comparison("stock", Routing("simple"), size))
    flooding = compare_one(Comparison("stock", Routing("flooding"), size))
    _, row = compare.with_break_even([flooding, simple])
    assert isinstance(row, Compared)
    assert row.messages_per_change == 7  # of 8 brokers all others are told
    assert row.break_even == pytest.approx((7 - row.messages_per_publication) / 7)


class Page(HTMLParser):
    """The tags of a page, and where its pictures come from."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_holds_everything_and_needs_nothing(routing: Result, compared: Result, tmp_path: Path) -> None:
    write(routing, tmp_path, routing_study.draw)
    write(compared, tmp_path, compare.draw)
    (tmp_path / "other.json").write_text('{"a": 1}', encoding="utf-8")
    text = render(tmp_path)
    page = Page(text)
    assert page.open == []
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in page.sources)
    assert sum(source.startswith("data:") for source in page.sources) == 5
    for claim in (*routing.claims, *compared.claims):
        assert claim.verdict in text


def test_what_is_on_the_page_is_escaped(tmp_path: Path) -> None:
    claim = Claim(claim="a < b", measured="<script>", verdict="holds")
    rows = [{"strategy": "<b>", "entries": 1, "rate": None, "ads": True}]
    figures = [Figure("lost", "not there")]
    result = Result(name="x", title="T", settings={}, tables={"x": rows}, claims=[claim], figures=figures)
    write(result, tmp_path, lambda result, folder: None)
    text = render(tmp_path)
    assert "<script>" not in text
    assert "a &lt; b" in text
    assert "lost.png is missing" in text
    assert Page(text).open == []


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no results"):
        render(tmp_path)


def test_experiments_are_found_by_name() -> None:
    assert set(experiments.titles()) >= {"routing", "compare"}
    assert experiments.find("compare").run is compare.run
    with pytest.raises(ValueError, match="no experiment called 'nothing'; there are routing"):
        experiments.find("nothing")


def test_the_full_comparison_is_on_the_brokers_of_the_paper() -> None:
    assert compare.FULL.topology() == paper()
