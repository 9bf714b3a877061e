"""What the pipeline finds in what the brokers of the demo have stored and traced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PLAN: Final = "plan.toml"
PAGE: Final = "report/report.html"
_TEXT: Final = """
from = [{journals}]
lake = "lake"
out = "report"

[match]
subscriptions = "subscriptions.jsonl"

[[derive]]
what = "candles"
filter = "type IS market.quote"
key = "symbol"
value = "price"
window = "1s"

[[derive]]
what = "triggers"
filter = "type IS market.quote"
key = "symbol"
value = "price"
rise = [2]
fall = [2]
within = "5s"

[verify]
traces = [{traces}]
"""


def write_plan(folder: Path, journals: Sequence[str], traces: Sequence[str], wanted: Mapping[str, str]) -> None:
    """A plan for what is in `folder`, with the filters `wanted`, by the names of those who want that."""
    lines = [json.dumps({"id": name, "filter": text}) + "\n" for name, text in wanted.items()]
    (folder / "subscriptions.jsonl").write_text("".join(lines), encoding="utf-8")
    text = _TEXT.format(journals=_quoted(journals), traces=_quoted(traces))
    (folder / PLAN).write_text(text, encoding="utf-8")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
