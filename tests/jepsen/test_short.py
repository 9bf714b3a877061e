"""The short form of `script/jepsen`: a run without faults, and one with them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from jepsen.agreement import compare
from jepsen.judge import judge
from jepsen.plan import BROKERS, Plan
from jepsen.records import AnyNote, Taken, Wanted, read_notes
from jepsen.run import run

SUBSCRIBERS = ("plain", "slow", "changing", "replaying", "late", "named", "moving")


def plan(*, faults: bool) -> Plan:
    return Plan(seed=4, strategy="merging", advertisements=False, lease=6.0, seconds=6.0, faults=faults)


def traces_of(folder: Path) -> list[Path]:
    return [folder / f"b{place}.jsonl" for place in range(BROKERS)]


def notes_of(folder: Path) -> list[AnyNote]:
    return list(chain(read_notes(folder / "publishers.jsonl"), read_notes(folder / "subscribers.jsonl")))


def lose_in_notes(notes: list[AnyNote], subscriber: str) -> tuple[list[AnyNote], Taken]:
    """Remove the last event that a subscriber took; return what is left, and that."""
    place = max(n for n, note in enumerate(notes) if isinstance(note, Taken) and note.subscriber == subscriber)
    lost = notes[place]
    assert isinstance(lost, Taken)
    return notes[:place] + notes[place + 1 :], lost


def lose_in_traces(traces: list[Path], clients: set[str], lost: Taken) -> None:
    """Remove the notification of an event, as if the broker of a subscriber had not sent it."""
    for trace in traces:
        lines = trace.read_bytes().splitlines(keepends=True)
        left = [line for line in lines if not is_notification(msgspec.json.decode(line), clients, lost)]
        trace.write_bytes(b"".join(left))


def is_notification(record: dict[str, Any], clients: set[str], lost: Taken) -> bool:
    is_of_client = record.get("op") == "Notified" and record["client"] in clients
    return is_of_client and record["event"]["id"] == f"{lost.source}-{lost.number}"


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
