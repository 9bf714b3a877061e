"""The judge: what each subscriber had to get, and what it got. It knows no code of the product.

An event is due to a subscriber if

- its publisher was told that it is stored,
- its publisher first tried to publish it after the subscription was confirmed, or after the time that a replay begins,
- every filter that the subscriber has had since that first try wants it.

A subscription must get an event that is due exactly once, unless it was told of a gap. A gap of a known size covers so
many events, one of an unknown size all that were tried before it was told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen.records import AnyNote, GapTold, Stored, Taken, Tried, Wanted


class Key(NamedTuple):
    """An event: its source, and its number there."""

    source: str
    number: int


@dataclass
class Publication:
    """What a publisher did about one event."""

    klass: int
    token: int
    tried: float
    tries: int = 1
    stored: bool = False


@dataclass
class Reading:
    """What one subscriber asked for, took and was told."""

    wanted: list[Wanted] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    gaps: list[GapTold] = field(default_factory=list)


class Finding(NamedTuple):
    """One event that a subscriber did not get, or got wrongly."""

    subscriber: str
    key: Key
    said: str = ""


@dataclass
class Verdict:
    """What the judge found; the lists hold one entry for each violation."""

    acknowledged: int = 0
    due: int = 0
    delivered: int = 0
    lost: list[Finding] = field(default_factory=list)
    duplicates: list[Finding] = field(default_factory=list)
    reordered: list[Finding] = field(default_factory=list)
    wrong: list[Finding] = field(default_factory=list)
    gaps: int = 0
    false_gaps: int = 0
    covered: int = 0
    repeats: int = 0

    @property
    def is_right(self) -> bool:
        return not (self.lost or self.duplicates or self.reordered or self.wrong)


def judge(notes: Iterable[AnyNote]) -> Verdict:
    """Return what is wrong with a run, by all records of its publishers and subscribers."""
    published, readings = _collect(notes)
    verdict = Verdict(acknowledged=sum(one.stored for one in published.values()))
    for name, reading in readings.items():
        if reading.wanted:
            _judge_contents(name, reading, published, verdict)
            _judge_order(name, reading, published, verdict)
            _judge_losses(name, reading, published, verdict)
    return verdict


def _collect(notes: Iterable[AnyNote]) -> tuple[dict[Key, Publication], dict[str, Reading]]:
    published: dict[Key, Publication] = {}
    readings: defaultdict[str, Reading] = defaultdict(Reading)
    for note in notes:
        match note:
            case Tried():
                for place, (klass, token) in enumerate(zip(note.classes, note.tokens, strict=True)):
                    key = Key(note.source, note.first + place)
                    if key in published:
                        published[key].tries += 1
                    else:
                        published[key] = Publication(klass, token, note.at)
            case Stored():
                for number in range(note.first, note.first + note.count):
                    published[Key(note.source, number)].stored = True
            case Wanted():
                readings[note.subscriber].wanted.append(note)
            case Taken():
                readings[note.subscriber].taken.append(note)
            case GapTold():
                readings[note.subscriber].gaps.append(note)
    return published, readings


def _judge_contents(name: str, reading: Reading, published: dict[Key, Publication], verdict: Verdict) -> None:
    """Find what comes twice, and what nobody published or wanted."""
    lives: dict[Key, int] = {}
    for taken in reading.taken:
        key = Key(taken.source, taken.number)
        known = published.get(key)
        if known is None or known.token != taken.token:
            verdict.wrong.append(Finding(name, key, "nobody published it with this content"))
        elif not any(one.low <= known.klass <= one.high for one in reading.wanted):
            verdict.wrong.append(Finding(name, key, "no filter of the subscriber matches it"))
        elif key not in lives:
            verdict.delivered += 1
        elif lives[key] == taken.life:
            verdict.duplicates.append(Finding(name, key, f"again from {taken.origin}"))
        else:
            verdict.repeats += 1  # a client that goes on elsewhere, or lives again, may get the last ones again
        lives[key] = taken.life


def _judge_order(name: str, reading: Reading, published: dict[Key, Publication], verdict: Verdict) -> None:
    """Find what comes out of order within the events of one source that one broker accepted.

    The order is that of `seq`. For events that were published by a single try it is also that of their publisher.
    """
    last_seq: dict[tuple[int, str, str], int] = {}
    last_number: dict[tuple[int, str, str], int] = {}
    for taken in reading.taken:
        stream, key = (taken.life, taken.origin, taken.source), Key(taken.source, taken.number)
        is_single = key in published and published[key].tries == 1
        before, number = last_seq.get(stream, -1), last_number.get(stream, -1)
        if taken.seq < before:
            verdict.reordered.append(Finding(name, key, f"seq {taken.seq} after {before} of {taken.origin}"))
        elif is_single and taken.number < number:
            verdict.reordered.append(Finding(name, key, f"number {taken.number} after {number} at {taken.origin}"))
        last_seq[stream] = max(before, taken.seq)
        if is_single:
            last_number[stream] = max(number, taken.number)


def _judge_losses(name: str, reading: Reading, published: dict[Key, Publication], verdict: Verdict) -> None:
    taken = {Key(one.source, one.number) for one in reading.taken}
    missing: list[Key] = []
    excused: list[Key] = []  # not there and not due: a gap about them is not false
    for key, publication in published.items():
        is_due = publication.stored and _is_due(reading.wanted, publication)
        verdict.due += is_due
        if key not in taken:
            if is_due:
                missing.append(key)
            elif any(one.low <= publication.klass <= one.high for one in reading.wanted):
                excused.append(key)
    missing.sort(key=lambda key: published[key].tried)
    excused.sort(key=lambda key: published[key].tried)
    for gap in sorted(reading.gaps, key=lambda gap: gap.at):
        room = gap.lost if gap.lost is not None else len(published)
        before = [key for key in missing if published[key].tried < gap.at][:room]
        others = [key for key in excused if published[key].tried < gap.at][: room - len(before)]
        missing = missing[len(before) :]
        excused = [key for key in excused if key not in set(others)] if gap.lost is not None else excused
        verdict.gaps += 1
        verdict.covered += len(before)
        verdict.false_gaps += not before and not others
    verdict.lost += [Finding(name, key) for key in missing]


def _is_due(wanted: list[Wanted], publication: Publication) -> bool:
    """Whether every filter wants the event that was in force at any time since its publisher first tried."""
    if publication.tried < wanted[0].since:
        return False
    later = [one for one in wanted[1:] if one.called > publication.tried]
    current = [one for one in wanted if one.at <= publication.tried][-1:] or wanted[:1]
    changing = [one for one in wanted[1:] if one.called <= publication.tried < one.at]
    return all(one.low <= publication.klass <= one.high for one in (*current, *changing, *later))
