"""All results in a folder, as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from vestnik.lab.results import Claim, Result, Row, read
from vestnik.report.page import LONGEST, figure, heading, page, plain, quiet, table

KINDS = {"holds": "holds", "holds in part": "part", "does not hold": "fails"}


def render(folder: Path) -> str:
    """The page; ValueError where there is no result."""
    results = list(read(folder))
    if not results:
        raise ValueError(f"there are no results in {folder}; vestnik lab run NAME --out {folder} makes some")
    return page("Experiments", {result.name: "".join(_result(result, folder)) for result in results})


def _result(result: Result, folder: Path) -> Iterator[str]:
    yield heading(result.title)
    yield quiet(", ".join(f"{name.replace('_', ' ')} {plain(value)}" for name, value in result.settings.items()))
    yield from map(_claim, result.claims)
    for one in result.figures:
        yield figure(folder / f"{one.name}.png", one.title)
    for name, rows in result.tables.items():
        yield table(name, rows, _below(name, rows))


def _below(name: str, rows: list[Row]) -> str:
    more = f"{len(rows) - LONGEST:,} more rows are" if len(rows) > LONGEST else "The same is"
    return f"{more} in {name}.csv."


def _claim(claim: Claim) -> str:
    parts = {"measured": claim.measured, "exact": claim.exact, "verdict": claim.verdict}
    if claim.reason:
        parts["verdict"] = f"{claim.verdict}: {claim.reason}"
    listed = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in parts.items() if text)
    kind = KINDS.get(claim.verdict, "")
    return f'<article class="{kind}"><h3>{escape(claim.claim)}</h3><dl>{listed}</dl></article>\n'
