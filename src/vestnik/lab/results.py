"""What an experiment comes to, in memory and in a folder."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

Row: TypeAlias = dict[str, Any]
Draw: TypeAlias = Callable[["Result", Path], None]
Advance: TypeAlias = Callable[[float], None]
"""Takes the share of the work, from 0 to 1, that is done."""


class Claim(Struct, frozen=True, kw_only=True):
    """What a paper says, what was measured, what is exactly so where that is known, and what to think of it."""

    claim: str
    measured: str
    exact: str = ""
    verdict: str
    reason: str = ""

    def __str__(self) -> str:
        exact = f" Exactly: {self.exact}." if self.exact else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"Claim: {self.claim}. Measured: {self.measured}.{exact} Verdict: {self.verdict}{reason}."


def verdict(*facts: bool) -> str:
    """What becomes of a claim of which these facts are the parts."""
    return "holds" if all(facts) else "holds in part" if any(facts) else "does not hold"


class Figure(Struct, frozen=True):
    """A picture: the name of its file without the ending, and what it shows."""

    name: str
    title: str


class Result(Struct, frozen=True, kw_only=True):
    """One experiment. `tables` are rows by the name of the table; rows of one table have the same columns."""

    name: str
    title: str
    settings: Row
    tables: dict[str, list[Row]]
    claims: list[Claim]
    figures: list[Figure]


def write(result: Result, folder: Path, draw: Draw) -> list[Path]:
    """Write a result to `folder`: NAME.json, a CSV for each table, a PNG for each figure, NAME.txt with the claims."""
    folder.mkdir(parents=True, exist_ok=True)
    draw(result, folder)
    for name, rows in result.tables.items():
        _write_csv(folder / f"{name}.csv", rows)
    text = folder / f"{result.name}.txt"
    text.write_text("\n\n".join(map(str, result.claims)) + "\n", encoding="utf-8")
    content = folder / f"{result.name}.json"
    content.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    tables = [folder / f"{name}.csv" for name in result.tables]
    return [content, text, *tables, *(folder / f"{figure.name}.png" for figure in result.figures)]


def read(folder: Path) -> Iterator[Result]:
    """The results in a folder, by name. Files that hold none are left alone."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=Result)
        except msgspec.DecodeError:
            continue


def _write_csv(path: Path, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
