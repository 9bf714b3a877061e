"""The short form of `script/jepsen`: a run without faults, and one with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

from msgspec.structs import replace

from jepsen.agreement import compare
from jepsen.judge import Finding, Key, judge
from jepsen.plan import BROKERS, Plan
from jepsen.records import AnyNote, Taken, Tried, Wanted, read_notes
from jepsen.run import run
from vestnik.trace.files import Begin, End, to_line
from vestnik.trace.lives import read_lives
from vestnik.trace.records import AnyRecord, Notified, Subscribed

SUBSCRIBERS = ("plain", "slow", "changing", "replaying", "late", "named", "moving")
NEAR = 0.5
"""Seconds around a changed filter in which `vestnik check` excuses events, as the clocks of brokers may differ."""


def plan(*, faults: bool) -> Plan:
    return Plan(seed=4, strategy="merging", advertisements=False, lease=6.0, seconds=6.0, faults=faults)


def traces_of(folder: Path) -> list[Path]:
    return [folder / f"b{place}.jsonl" for place in range(BROKERS)]


def notes_of(folder: Path) -> list[AnyNote]:
    return list(chain(read_notes(folder / "publishers.jsonl"), read_notes(folder / "subscribers.jsonl")))


def lose_in_notes(notes: list[AnyNote], subscriber: str) -> tuple[list[AnyNote], Taken]:
    """Remove the last due event that a subscriber took; return what is left, and that."""
    asked = [note for note in notes if isinstance(note, Wanted) and note.subscriber == subscriber]
    changes = [later for one, later in pairwise(asked) if later.life == one.life]
    for place, note in reversed(list(enumerate(notes))):
        if isinstance(note, Taken) and note.subscriber == subscriber and not is_near(notes, changes, note):
            left = notes[:place] + notes[place + 1 :]
            if Finding(subscriber, Key(note.source, note.number)) in judge(left).lost:
                return left, note
    raise AssertionError(f"nothing that {subscriber} took was due")


def is_near(notes: list[AnyNote], changes: list[Wanted], taken: Taken) -> bool:
    """Return whether an event was published just when its subscriber changed its filter."""
    tries = [note.at for note in notes if isinstance(note, Tried) and holds(note, taken)]
    return any(one.called - NEAR <= at <= one.at + NEAR for one in changes for at in tries)


def holds(tried: Tried, taken: Taken) -> bool:
    return tried.source == taken.source and 0 <= taken.number - tried.first < len(tried.tokens)


def lose_in_traces(traces: list[Path], clients: set[str], lost: Taken) -> None:
    """Remove the notification of an event, as if the broker of a subscriber had not sent it, nor counted it."""
    for trace in traces:
        lives = list(read_lives(trace.read_bytes().splitlines(keepends=True)))
        with trace.open("wb") as file:
            for life in lives:
                ends = [End()] if life.is_whole else []
                file.writelines(map(to_line, [Begin(life.node), *without(life.records, clients, lost), *ends]))


def without(records: list[AnyRecord], clients: set[str], lost: Taken) -> Iterator[AnyRecord]:
    removed: Counter[str] = Counter()  # by client, since its subscription began: its broker counts from there
    for record in records:
        if isinstance(record, Subscribed) and record.since is not None:
            removed[record.client] = 0
        if not isinstance(record, Notified) or record.client not in clients:
            yield record
        elif record.event.id == f"{lost.source}-{lost.number}":
            removed[record.client] += 1
        else:
            numbers = tuple([(name, number - removed[record.client]) for name, number in record.numbers])
            yield replace(record, numbers=numbers)


async def test_everything_arrives_once_without_faults(tmp_path: Path) -> None:
    outcome = await run(plan(faults=False), tmp_path)
    assert outcome.verdict.due > 1000, "the run is about something"
    assert outcome.is_right, outcome
    assert outcome.verdict.gaps == 0, outcome

    notes = notes_of(tmp_path)
    _, last = lose_in_notes(notes, "plain")
    assert len(judge([*notes, last]).duplicates) == 1, "the judge sees what is added"
    for count, subscriber in enumerate(SUBSCRIBERS, 1):
        clients = {note.client for note in notes if isinstance(note, Wanted) and note.subscriber == subscriber}
        notes, lost = lose_in_notes(notes, subscriber)
        verdict = judge(notes)
        assert len(verdict.lost) == count, "the judge misses what is taken away"
        if count == 1:
            comparison = await compare(verdict, traces_of(tmp_path), advertisements=False)
            assert not comparison.agrees, "the tool does not say what the judge says"
        lose_in_traces(traces_of(tmp_path), clients, lost)
        comparison = await compare(verdict, traces_of(tmp_path), advertisements=False)
        assert comparison.agrees and comparison.checked["lost"] == count, (subscriber, comparison)
    comparison = await compare(outcome.verdict, traces_of(tmp_path), advertisements=False)
    assert not comparison.agrees, "nor the other way round"


async def test_everything_arrives_once_under_faults(tmp_path: Path) -> None:
    outcome = await run(plan(faults=True), tmp_path)
    assert outcome.verdict.due > 500 and outcome.faults, "the run is about something"
    assert not outcome.verdict.lost, outcome
    assert not outcome.verdict.duplicates, outcome
    assert outcome.comparison.agrees and not outcome.problem, outcome

    notes = notes_of(tmp_path)
    for subscriber in SUBSCRIBERS:
        clients = {note.client for note in notes if isinstance(note, Wanted) and note.subscriber == subscriber}
        notes, lost = lose_in_notes(notes, subscriber)
        lose_in_traces(traces_of(tmp_path), clients, lost)
    comparison = await compare(judge(notes), traces_of(tmp_path), advertisements=False)
    assert comparison.agrees and comparison.checked["lost"] == len(SUBSCRIBERS), comparison
