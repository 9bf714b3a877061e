"""How fast events find their filters: script/bench matching [--quick] [SECTION ...]

Throughput is per second of CPU time, all threads; the latency of single events and of imports is wall time. Answers
are checked before a figure is printed: against DuckDB on the stock workload, elsewhere by evaluating a sample directly.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks import documents, peers
from benchmarks.building import build
from benchmarks.columns import batch, head, records
from benchmarks.report import Report, Row, Timing, cpu_seconds, measure, run
from benchmarks.truth import Truth
from benchmarks.workloads import Stock, Workload, general, stock
from vestnik import Event, Filter

if TYPE_CHECKING:
    from vestnik.matching import CompiledFilters, Matcher


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    repeat: int
    stock: tuple[int, ...]
    stock_events: int
    pairs: tuple[int, ...]
    general: tuple[int, ...]
    general_events: int
    documents: int
    single: int
    single_events: int
    starts: int
    sample: int


FULL = Scale(
    repeat=5,
    stock=(10_000, 100_000, 1_000_000),
    stock_events=100_000,
    pairs=(100_000,),
    general=(10_000, 100_000),
    general_events=10_000,
    documents=100_000,
    single=100_000,
    single_events=5_000,
    starts=15,
    sample=100,
)
QUICK = Scale(
    repeat=2,
    stock=(200, 1_000),
    stock_events=1_000,
    pairs=(1_000,),
    general=(200, 1_000),
    general_events=300,
    documents=500,
    single=500,
    single_events=100,
    starts=2,
    sample=50,
)


class WrongAnswer(Exception):
    """`ours` differs from `truth` in `case`: there is no figure to print."""

    def __init__(self, case: str, ours: object, truth: object) -> None:
        super().__init__(case, ours, truth)


def agree(case: str, ours: NDArray[np.int64] | int, truth: NDArray[np.int64] | int) -> None:
    if not np.array_equal(ours, truth):
        raise WrongAnswer(case, ours, truth)


def stock_counts(report: Report, scale: Scale) -> None:
    for size in scale.stock:
        report.add(_stock_counts(stock(size, scale.stock_events), scale))


def _stock_counts(workload: Stock, scale: Scale) -> Row:
    compiled, events = _stock(workload)
    ours = measure(lambda: int(np.sum(compiled.count_batch(events))), scale.repeat)
    peer = measure(peers.DuckStock(workload).counts, scale.repeat)
    row = _stock_row("stock-counts", workload, len(events), ours, peer)
    return replace(row, target=2, of_ratio=True)


def stock_pairs(report: Report, scale: Scale) -> None:
    for size in scale.pairs:
        report.add(_stock_pairs(stock(size, scale.stock_events), scale))


def _stock_pairs(workload: Stock, scale: Scale) -> Row:
    compiled, events = _stock(workload)
    ours = measure(lambda: len(compiled.match_batch(events)), scale.repeat)
    peer = measure(peers.DuckStock(workload).pairs, scale.repeat)
    row = _stock_row("stock-pairs", workload, len(events), ours, peer)
    ours_speed, peer_speed = len(events) / ours.median, len(events) / peer.median
    return replace(row, ours=ours_speed, peer=peer_speed, unit="events/s", target=500_000)


def _stock(workload: Stock) -> tuple[CompiledFilters, Any]:
    from vestnik.matching import compile_filters

    return compile_filters(build(workload.filters()), layout="flat"), batch(workload.events)


def _stock_row(section: str, workload: Stock, events: int, ours: Timing[int], peer: Timing[int]) -> Row:
    """The seconds of both, who must have found the same."""
    case = f"{len(workload.lo):,} filters"
    agree(case, ours.result, peer.result)
    return Row(
        section=section,
        case=case,
        ours=ours.median,
        unit="s",
        spread=ours.spread,
        peer=peer.median,
        ratio=peer.median / ours.median,
        note=f"DuckDB; {ours.result / events:.1f} matches an event",
    )


def general_filters(report: Report, scale: Scale) -> None:
    _growing(report, scale, "general", "general", {100_000: 12_000})


def range_only(report: Report, scale: Scale) -> None:
    _growing(report, scale, "range-only", "range-only", {})


@dataclass(frozen=True)
class Pairs:
    """A batch answered as pairs: CPU seconds an event, matches an event, and how steady."""

    seconds: float
    matches: float
    spread: float


def _growing(report: Report, scale: Scale, section: str, mix: str, targets: dict[int, float]) -> None:
    """One row a size, and one for each step: time may not grow faster than matches."""
    before: Pairs | None = None
    for size in scale.general:
        now = _pairs(f"{section}, {size:,} filters", general(size, scale.general_events, mix), scale)
        report.add(
            Row(
                section=section,
                case=f"{size:,} filters",
                ours=1 / now.seconds,
                unit="events/s",
                spread=now.spread,
                target=targets.get(size),
                note=f"{now.matches:.1f} matches an event, {now.seconds / now.matches * 1e9:.0f} ns each",
            )
        )
        if before:
            growth = (now.seconds / before.seconds) / (now.matches / before.matches)
            step = f"growth of time / of matches, to {size:,}"
            report.add(Row(section=section, case=step, ours=growth, unit="", target=1, at_most=True))
        before = now


def _pairs(case: str, workload: Workload, scale: Scale) -> Pairs:
    from vestnik.matching import compile_filters

    compiled = compile_filters(build(workload.filters), layout="flat")
    events = batch(workload.events)
    count = len(events)
    timing = measure(lambda: compiled.match_batch(events), scale.repeat)
    found = np.bincount(timing.result.events, minlength=count)
    agree(case, found[: scale.sample], Truth(head(workload.events, scale.sample)).counts(workload.filters))
    return Pairs(timing.median / count, float(found.mean()), timing.spread)


def json_documents(report: Report, scale: Scale) -> None:
    lines = documents.documents(scale.documents)
    decoding = measure(lambda: peers.decode(lines), scale.repeat)
    report.add(_json("5 equality rules", documents.EQUALITY_RULES, 400_000, lines, decoding.median, scale))
    report.add(_json("45 mixed rules", documents.MIXED_RULES, 70_000, lines, decoding.median, scale))


def _json(case: str, texts: list[str], target: float, lines: list[bytes], peer: float, scale: Scale) -> Row:
    from vestnik.matching import compile_filters

    rules = {f"r{number}": Filter.parse(text) for number, text in enumerate(texts)}
    compiled = compile_filters(rules, layout="flat")
    blob = b"\n".join(lines)
    ours = measure(lambda: compiled.match_json(blob), scale.repeat)
    found = np.bincount(ours.result.events, minlength=len(lines))
    sample = [Event(type="order", source="shop", data=msgspec.json.decode(line)) for line in lines[: scale.sample]]
    truth = np.array([sum(rule.matches(event) for rule in rules.values()) for event in sample])
    agree(case, found[: scale.sample], truth)
    return Row(
        section="json",
        case=case,
        ours=len(lines) / ours.median,
        unit="documents/s",
        spread=ours.spread,
        peer=len(lines) / peer,
        ratio=peer / ours.median,
        target=target,
        note=f"msgspec reading everything; {len(blob) / len(lines):.0f} B, {found.mean():.1f} matches each",
    )


def single(report: Report, scale: Scale) -> None:
    """Two workloads with about 90 matches an event: one shape of filter, and everything mixed."""
    shares = stock(scale.single, scale.single_events, symbols=max(1, scale.single // 180))
    _single(report, "stock", Workload(list(shares.filters()), shares.events), scale)
    _single(report, "general", general(scale.single, scale.single_events, "selective"), scale)


def _single(report: Report, case: str, workload: Workload, scale: Scale) -> None:
    filters = build(workload.filters)
    matcher, adding = _matcher(case, filters)
    gc.collect()
    gc.freeze()  # as a broker does once it is loaded: no collection walks the filters again
    _latencies(report, case, matcher, workload, scale)
    report.add(adding)
    report.add(_removing(case, matcher, list(filters)))
    report.add(_memory(case, filters))
    gc.unfreeze()


def _latencies(report: Report, case: str, matcher: Matcher[str], workload: Workload, scale: Scale) -> None:
    events = [Event(type="bench", source="bench", data=data) for data in records(workload.events)]
    warm = [len(matcher.match(event)) for event in events[: scale.sample]]
    agree(case, np.array(warm), Truth(head(workload.events, scale.sample)).counts(workload.filters))
    micros, found = np.empty(len(events)), np.empty(len(events))
    for number, event in enumerate(events):
        start = time.perf_counter_ns()
        ids = matcher.match(event)
        micros[number] = (time.perf_counter_ns() - start) / 1_000
        found[number] = len(ids)
    note = f"{len(workload.filters):,} filters, {found.mean():.1f} matches an event"
    for percent, target in ((50, 100), (99, 1_000)):
        value = float(np.percentile(micros, percent))
        report.add(Row("single", f"{case}: match, p{percent}", value, "us", target=target, at_most=True, note=note))
    report.add(Row("single", f"{case}: a further match", float(np.polyfit(found, micros, 1)[0]), "us"))


def _matcher(case: str, filters: dict[str, Filter]) -> tuple[Matcher[str], Row]:
    from vestnik.matching import Matcher

    matcher: Matcher[str] = Matcher()
    start = cpu_seconds()
    for name, subscription in filters.items():
        matcher.add(name, subscription)
    micros = (cpu_seconds() - start) / len(filters) * 1e6
    return matcher, Row("single", f"{case}: add", micros, "us", target=50, at_most=True)


def _removing(case: str, matcher: Matcher[str], names: list[str]) -> Row:
    gone = names[::10]
    start = cpu_seconds()
    for name in gone:
        matcher.remove(name)
    micros = (cpu_seconds() - start) / len(gone) * 1e6
    return Row("single", f"{case}: remove", micros, "us", target=50, at_most=True)


def _memory(case: str, filters: dict[str, Filter]) -> Row:
    """What the index holds beyond the filters themselves."""
    tracemalloc.start()
    matcher, _ = _matcher(case, filters)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del matcher
    return Row("single", f"{case}: memory", held / len(filters), "B a filter", target=1_000, at_most=True)


STARTS = {
    "import vestnik": "import vestnik",
    "import Event and Filter": "from vestnik import Event, Filter",
    "vestnik --help": "import contextlib, io\nfrom vestnik.cli import main\n"
    "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['--help'])",
}


def importing(report: Report, scale: Scale) -> None:
    for case, action in STARTS.items():
        runs = [_start(action) for _ in range(scale.starts)]
        millis = median(seconds for seconds, _ in runs) * 1_000
        note = "loads numpy" if any(loaded for _, loaded in runs) else "loads no numpy"
        report.add(Row("import", case, millis, "ms", target=150, at_most=True, note=note))


def _start(action: str) -> tuple[float, bool]:
    """Seconds that `action` takes in a fresh interpreter, and whether it loads numpy."""
    code = f"import sys, time\nstart = time.perf_counter()\n{action}\n"
    code += "print(time.perf_counter() - start, int('numpy' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, loaded = done.stdout.split()
    return float(seconds), loaded == "1"


SECTIONS: dict[str, Callable[[Report, Scale], None]] = {
    "stock-counts": stock_counts,
    "stock-pairs": stock_pairs,
    "general": general_filters,
    "range-only": range_only,
    "json": json_documents,
    "single": single,
    "import": importing,
}


if __name__ == "__main__":
    run("matching", "How fast events find their filters.", SECTIONS, full=FULL, quick=QUICK)
