"""Does what a plan says, stage by stage, and keeps what people want to see of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from vestnik.lake.declared import read_declared
from vestnik.lake.losses import Kind, Loss
from vestnik.spark.derive.readings import REASONS
from vestnik.spark.derive.running import DERIVED, NEW, READ, Target, derive_table
from vestnik.spark.given import check_given
from vestnik.spark.ingest import ingest
from vestnik.spark.lake import events as lake_events
from vestnik.spark.lake import quarantine
from vestnik.spark.match import match, unreadable
from vestnik.spark.shards import Subscriptions
from vestnik.spark.slices import runs
from vestnik.spark.traces import read_traces
from vestnik.spark.verify import latency, useless, violations
from vestnik.spark.wanted import wanted
from vestnik.spark.whole import views
from vestnik.spark.whole.plan import Candles, Plan, Triggers, Verify
from vestnik.verify.safety import ALWAYS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row: TypeAlias = dict[str, Any]
MATCH: Final = "match"

During: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Shows that a stage is going on."""


class Stage(Struct, frozen=True):
    """What came of one stage: how much it read and made, and how much it could not read."""

    stage: str
    read: int
    made: int
    of: str
    left_out: int
    seconds: float


class Whole(Struct, kw_only=True):
    """What came of it all. `losses` are those that this run found, `missing` is all that the lake does not have."""

    stages: list[Stage] = []
    losses: list[Loss] = []
    missing: list[Row] = []
    types: list[Row] = []
    over_time: list[Row] = []
    subscriptions: list[Row] = []
    unwanted: int = 0
    candles: list[Row] = []
    triggers: list[Row] = []
    latency: list[Row] = []
    useless: list[Row] = []
    violations: list[Row] = []

    @property
    def is_right(self) -> bool:
        """Whether all was read, and nothing is wrong. What nothing can be derived from may be right as it is."""
        left_out = any(stage.left_out for stage in self.stages if stage.stage == MATCH)
        return not (self.violations or self.losses or left_out)


class Performance:
    """One run of a plan, whose tables go to `folder`. `told` hears of each stage that is done."""

    def __init__(
        self, spark: SparkSession, plan: Plan, folder: Path, during: During, told: Callable[[Stage], None]
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._folder = folder
        self._during = during
        self._told = told
        self.whole = Whole()
        self._events: DataFrame

    def take_in(self) -> None:
        plan = self._plan
        declared = None if plan.types is None else read_declared(Path(plan.types))
        with self._timed("ingest") as note:
            took = ingest(self._spark, plan.journals, plan.lake, declared=declared)
            read = took.events + took.again + took.lost(Kind.NO_EVENT)
            note(read, took.events, "new events", took.lost())
        self.whole.losses = list(took.losses)
        self._events = lake_events(self._spark, plan.lake)  # all stages see the same, whoever takes in more
        with self._during("events"):
            self.whole.types = views.types(self._events)
            self.whole.over_time = views.over_time(self._events)
            self.whole.missing = views.missing(quarantine(self._spark, plan.lake))

    def match(self, compiled: Subscriptions, subscriptions: DataFrame, rejected: int) -> None:
        """`rejected` is how many subscriptions could not be read as such."""
        with self._timed(MATCH) as note:
            unread = unreadable(self._events, compiled).count()
            pairs = self._kept("match", match(self._events, compiled))
            note(self._events.count(), pairs.count(), "pairs", unread + rejected + len(compiled.rejected))
        with self._during("subscriptions"):
            self.whole.subscriptions = views.top(pairs, subscriptions)
            self.whole.unwanted = views.without_pairs(pairs, subscriptions) - len(compiled.rejected)

    def derive(self) -> None:
        for number, one in enumerate(self._plan.derive, start=1):
            name = f"{one.what}-{number}"
            target = Target(url=one.to) if one.to is not None else Target(folder=self._folder / name)
            with self._timed(name) as note:
                events = self._events if one.filter == "TRUE" else wanted(self._events, one.filter)
                totals = derive_table(events, one.how(), target, one.source)
                made = totals[DERIVED] if one.to is None else totals[NEW]
                note(totals[READ], made, "new events", sum(totals[reason] for reason in REASONS))
            if target.folder is not None:
                self._show(one, name, self._spark.read.parquet(str(target.folder)))

    def _show(self, one: Any, name: str, made: DataFrame) -> None:
        match one:
            case Candles():
                self.whole.candles += [{"stage": name, **row} for row in views.candles(made)]
            case Triggers():
                self.whole.triggers += views.triggers(made)

    def verify(self, asked: Verify) -> None:
        demands: dict[str, Any] = {"settling": asked.settling, "since": ALWAYS if asked.since is None else asked.since}
        demands |= {"advertisements": asked.advertisements, "stored": asked.stored}
        with self._timed("verify") as note:
            trace = read_traces(self._spark, asked.traces).persist()
            known = runs(trace)
            check_given(trace, asked.traces)
            wrong = self._kept("violations", violations(trace, known=known, **demands))
            note(sum(sum(run.counts.values()) for run in known.values()), wrong.count(), "violations", 0)
        with self._during("delivery"):
            self.whole.violations = views.rows(wrong.orderBy("at", "rule", "said").select("rule", "said"))
            self.whole.latency = views.rows(
                self._kept("latency", latency(trace, known=known)).drop("run").orderBy("scope", "name")
            )
            self.whole.useless = views.rows(
                self._kept("useless", useless(trace, known=known)).drop("run").orderBy("sender", "receiver")
            )
            trace.unpersist()

    def _kept(self, name: str, made: DataFrame) -> DataFrame:
        """What was made, once it is in files."""
        path = str(self._folder / name)
        made.write.parquet(path)
        return self._spark.read.schema(made.schema).parquet(path)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[Callable[[int, int, str, int], None]]:
        began = time.monotonic()

        def note(read: int, made: int, of: str, left_out: int) -> None:
            done = Stage(stage, read, made, of, left_out, round(time.monotonic() - began, 2))
            self.whole.stages.append(done)
            self._told(done)

        with self._during(stage):
            yield note
