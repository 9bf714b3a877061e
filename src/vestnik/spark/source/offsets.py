"""How far the journals of brokers have been read: a position for each, by the broker's name. Nothing here acts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from vestnik.errors import InvalidSetting
from vestnik.model.nearest import meant

Offsets: TypeAlias = dict[str, int]
"""Positions up to which all is read."""
Wanted: TypeAlias = str | dict[str, int | str]
"""BEGINNING, EARLIEST or LATEST for all brokers, or those or a position for each."""

BEGINNING: Final = "beginning"
"""With the first position that a journal ever had: what was dropped since is a loss."""
EARLIEST: Final = "earliest"
"""With the first position that is kept."""
LATEST: Final = "latest"
WORDS: Final = (BEGINNING, EARLIEST, LATEST)


def marked(offsets: Offsets, journals: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Offsets as a checkpoint has them: with each position, of which journal it is."""
    return {broker: (position, journals.get(broker, "")) for broker, position in offsets.items()}


def unmarked(found: Mapping[str, tuple[int, str] | int]) -> tuple[Offsets, dict[str, str]]:
    """The positions, and the journals that they are of, which an older checkpoint does not say."""
    pairs = {name: (one, "") if isinstance(one, int) else one for name, one in found.items()}
    return {name: one[0] for name, one in pairs.items()}, {name: one[1] for name, one in pairs.items()}


def read_offsets(option: str, text: str) -> Wanted:
    """Read `beginning`, `earliest`, `latest`, or JSON: {"b1": 17, "b2": "latest"}."""
    if text.lower() in WORDS:
        return text.lower()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(map(_is_offset, found.values())):
        raise InvalidSetting(
            option,
            "it is beginning, earliest, latest or positions read up to, "
            f'{{"BROKER": 17, "OTHER": "latest"}}, not {text!r}',
        )
    return found


def _is_offset(value: object) -> bool:
    return value in WORDS or (type(value) is int and value >= 0)


def wanted_of(wanted: Wanted, broker: str, default: str) -> int | str:
    """What is wanted of one broker."""
    return wanted if isinstance(wanted, str) else wanted.get(broker, default)


def check_brokers(option: str, wanted: Mapping[str, object] | str, known: Mapping[str, object]) -> None:
    for broker in () if isinstance(wanted, str) else wanted:
        if broker not in known:
            raise InvalidSetting(option, f"{broker} is none of the brokers at url{meant(broker, known)}")


def admitted(start: Offsets, last: Offsets, most: int) -> Offsets:
    """How far to go from `start` towards `last` by at most `most` positions, shared fairly: who has less gives over."""
    behind = {broker: max(last[broker] - start[broker], 0) for broker in last}
    end, left = dict(start), most
    for at, broker in enumerate(sorted(behind, key=lambda name: (behind[name], name))):
        share = min(behind[broker], left // (len(behind) - at))
        end[broker] = start[broker] + share
        left -= share
    return end


def stretches(after: int, upto: int, most: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions after `after` up to `upto`, at most `most` of those that are kept at a time.

    What is before `first` was dropped. There is nothing to read in it, so the first stretch has all of it.
    """
    kept = max(after, min(first - 1, upto))
    for start in range(kept, upto, most) if kept < upto else [kept] if after < upto else []:
        yield (after if start == kept else start), min(start + most, upto)
