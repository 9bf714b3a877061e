"""The short form of `script/jepsen`: a run without faults, and one with them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from jepsen.agreement import compare
from jepsen.judge import judge
from jepsen.plan import BROKERS, Plan
from jepsen.records import AnyNote, Taken, Wanted, read_notes
from jepsen.run import run


def plan(*, faults: bool) -> Plan:
    return Plan(seed=4, strategy="merging", advertisements=False, lease=6.0, seconds=6.0, faults=faults)


def notes_of(folder: Path) -> list[AnyNote]:
    return list(chain(read_notes(folder / "publishers.jsonl"), read_notes(folder / "subscribers.jsonl")))


def is_of_plain(note: AnyNote) -> bool:
    return isinstance(note, Taken) and note.subscriber == "plain"


def lose_a_notification(traces: list[Path], client: str) -> None:
    """Remove the first notification of a client from a trace."""
    for trace in traces:
        lines = trace.read_bytes().splitlines(keepends=True)
        marks = (b'"op":"Notified"', f'"client":"{client}"'.encode())
        notified = [place for place, line in enumerate(lines) if all(mark in line for mark in marks)]
        if notified:
            del lines[notified[0]]
            trace.write_bytes(b"".join(lines))
            return


async def test_everything_arrives_once_without_faults(tmp_path: Path) -> None:
    outcome = await run(plan(faults=False), tmp_path)
    assert outcome.verdict.due > 1000, "the run is about something"
    assert outcome.is_right, outcome
    assert outcome.verdict.gaps == 0, outcome

    notes = notes_of(tmp_path)
    last = max(place for place, note in enumerate(notes) if is_of_plain(note))
    assert len(judge(notes[:last] + notes[last + 1 :]).lost) == 1, "the judge misses what is taken away"
    assert len(judge([*notes, notes[last]]).duplicates) == 1, "the judge sees what is added"

    traces = [tmp_path / f"b{place}.jsonl" for place in range(BROKERS)]
    (client,) = {note.client for note in notes if isinstance(note, Wanted) and note.subscriber == "plain"}
    lose_a_notification(traces, client)
    comparison = await compare(outcome.verdict, [*traces, tmp_path / "harness.jsonl"], advertisements=False)
    assert comparison.checked["lost"] == 1 and not comparison.agrees, "the tool reads what happened"


async def test_everything_arrives_once_under_faults(tmp_path: Path) -> None:
    outcome = await run(plan(faults=True), tmp_path)
    assert outcome.verdict.due > 500 and outcome.faults, "the run is about something"
    assert not outcome.verdict.lost, outcome
    assert not outcome.verdict.duplicates, outcome
    assert not outcome.problem, outcome
