"""Whether `vestnik check`, reading the traces of the brokers, counts what the judge counts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepsen.judge import Verdict
from jepsen.processes import vestnik

CHECKED_WITHIN = 300.0
NEVER_SETTLES = "the trace never settles"
CLASS_OF_RULE = {
    "liveness": "lost",
    "kept": "lost",
    "due": "lost",
    "replays": "lost",
    "once": "duplicates",
    "fifo": "reordered",
    "losses": "false gaps",
}
"""Violations of other rules count as `wrong`."""


@dataclass(frozen=True)
class Comparison:
    """The counts of the judge and of the tool, by class; `failure` is why the tool has none."""

    judged: dict[str, int]
    checked: dict[str, int]
    failure: str = ""

    @property
    def agrees(self) -> bool:
        return not self.failure and self.judged == self.checked

    def __str__(self) -> str:
        if self.failure:
            return f"no: {self.failure}"
        unlike = [name for name, count in self.judged.items() if count != self.checked[name]]
        counts = ", ".join(f"{name} {self.judged[name]} by the judge, {self.checked[name]} by check" for name in unlike)
        return f"no ({counts})" if unlike else "yes"


async def compare(verdict: Verdict, traces: list[Path], *, advertisements: bool) -> Comparison:
    """Run `vestnik check` over the traces, and compare."""
    judged = {
        "lost": len(verdict.lost),
        "duplicates": len(verdict.duplicates),
        "reordered": len(verdict.reordered),
        "wrong": len(verdict.wrong),
    }
    options = ["--stored", "--json", *(["--advertisements"] if advertisements else [])]
    code, said = await vestnik("check", *options, *map(str, traces), timeout=CHECKED_WITHIN)
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    (traces[0].parent / "check.jsonl").write_text(said, encoding="utf-8")
    if NEVER_SETTLES in said:
        return Comparison(judged, {}, "by the traces the brokers never settled, so nothing was due")
    if code not in (0, 1):
        return Comparison(judged, {}, f"check ended with exit code {code}: {said.strip()[-200:]}")
    counts = Counter(name for name, *_ in dict.fromkeys(map(_violation, found)))
    counts["wrong"] += max(0, counts["false gaps"] - verdict.false_gaps)  # the tool excuses some that the judge counts
    return Comparison(judged, {name: counts[name] for name in judged})


def _violation(found: dict[str, Any]) -> tuple[str, ...]:
    """Return the class of a violation and what it is about: two rules may miss the same event."""
    name, event = CLASS_OF_RULE.get(found["rule"], "wrong"), found["event"]
    if name != "lost" or event is None:
        return name, found["said"]
    return name, found["client"], found["subscription"], event["source"], event["id"]
