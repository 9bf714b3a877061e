"""Why an event matches a filter, or why it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vestnik.model.boxes import Box
from vestnik.model.printer import TIMES, Piece, all_of, constraints, path_text, scalar_text
from vestnik.model.spaces import EVENT
from vestnik.model.times import format_rfc3339
from vestnik.model.values import MISSING

if TYPE_CHECKING:
    from vestnik.model.events import Event
    from vestnik.model.filters import Filter


LONGEST = 100
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One constraint, the value it saw (MISSING where there is none), and whether it holds."""

    path: str
    said: Piece
    value: Any
    holds: bool

    @property
    def constraint(self) -> str:
        """The constraint as a filter of its own."""
        return self.said.text

    @property
    def saw(self) -> str:
        """What was seen, for people."""
        return "nothing there" if self.value is MISSING else f"saw {_shown(self.path, self.value)}"

    def __str__(self) -> str:
        return f"{'ok  ' if self.holds else 'FAIL'} {self.constraint}    {self.saw}"

    def to_dict(self) -> dict[str, Any]:
        seen = {} if self.value is MISSING else {"value": self.value}
        return {"path": self.path, "constraint": self.constraint, "holds": self.holds, **seen}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdicts box by box: the event matches when all constraints of one box hold."""

    matches: bool
    boxes: tuple[tuple[Verdict, ...], ...]

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The smallest set of constraints that stood in the way; empty for a match and for a filter of nothing."""
        misses = (tuple(v for v in box if not v.holds) for box in self.boxes)
        return min(misses, key=len, default=())

    def __bool__(self) -> bool:
        return self.matches

    def __str__(self) -> str:
        lines = ["matches" if self.matches else "does not match"]
        if not self.boxes:
            lines.append("  the filter is FALSE: no event can match it")
        for number, box in enumerate(self.boxes, 1):
            if len(self.boxes) > 1:
                lines.append(f"  alternative {number}")
            lines += [f"  {verdict}" for verdict in box] or ["  ok   TRUE"]
        if self.failed:
            lines.append(f"it would match if: {all_of(verdict.said for verdict in self.failed).text}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "matches": self.matches,
            "boxes": [[verdict.to_dict() for verdict in box] for box in self.boxes],
            "failed": [verdict.to_dict() for verdict in self.failed],
        }


def _shown(path: str, value: Any) -> str:
    """A value as people read it, cut where it is long."""
    if value is None or isinstance(value, bool):
        return scalar_text(value)
    text = f"'{format_rfc3339(value)}'" if (path,) in TIMES else repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def explain(wanted: Filter, event: Event) -> Explanation:
    boxes = tuple(_verdicts(box, event) for box in wanted.region.boxes)
    return Explanation(any(all(v.holds for v in box) for box in boxes), boxes)


def _verdicts(box: Box, event: Event) -> tuple[Verdict, ...]:
    verdicts = []
    for path, said, fits in constraints(EVENT, box):
        value = EVENT.read(event, path)
        verdicts.append(Verdict(path_text(EVENT, path), said, value, fits(value)))
    return tuple(verdicts)
