"""All results in a folder, as one page that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from vestnik.lab.results import Claim, Figure, Result, Row, read
from vestnik.lab.statistics import number

LONGEST = 60
"""Rows of a table that are shown; the others are in its file."""

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #222; background: #fff; max-width: 68rem; margin: 3rem auto;
  padding: 0 1.5rem; }
h1, h2, h3 { line-height: 1.25; font-weight: 600; }
h2 { margin-top: 3.5rem; border-bottom: 1px solid #ddd; padding-bottom: .3rem; }
nav a { margin-right: 1.2rem; }
a { color: #1f5f9f; }
article { border-left: 4px solid #bbb; padding: .1rem 0 .1rem 1rem; margin: 1.2rem 0; }
article.holds { border-color: #2c8a3c; } article.part { border-color: #d08a00; }
article.fails { border-color: #c0392b; }
article h3 { font-size: 1rem; margin: .3rem 0; } article p { margin: .2rem 0; }
dt { float: left; clear: left; width: 6.5rem; color: #666; } dd { margin: 0 0 .25rem 6.5rem; }
figure { margin: 2rem 0; } img { max-width: 100%; } figcaption { color: #555; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th { color: #555; font-weight: 600; } td.text, th.text { text-align: left; } .quiet { color: #666; }
"""
KINDS = {"holds": "holds", "holds in part": "part", "does not hold": "fails"}


def render(folder: Path) -> str:
    """The page; ValueError where there is no result."""
    results = list(read(folder))
    if not results:
        raise ValueError(f"there are no results in {folder}; vestnik lab run NAME --out {folder} makes some")
    links = "".join(f'<a href="#{escape(result.name)}">{escape(result.name)}</a>' for result in results)
    body = "".join(part for result in results for part in _result(result, folder))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Experiments</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>Experiments</h1><nav>{links}</nav>\n{body}</body></html>\n"
    )


def _result(result: Result, folder: Path) -> Iterator[str]:
    yield f'<section id="{escape(result.name)}"><h2>{escape(result.title)}</h2>\n'
    settings = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in result.settings.items())
    yield f'<p class="quiet">{escape(settings)}</p>\n'
    yield from map(_claim, result.claims)
    for figure in result.figures:
        yield _figure(figure, folder)
    for name, rows in result.tables.items():
        yield _table(name, rows)
    yield "</section>\n"


def _claim(claim: Claim) -> str:
    parts = {"measured": claim.measured, "exact": claim.exact, "verdict": claim.verdict}
    if claim.reason:
        parts["verdict"] = f"{claim.verdict}: {claim.reason}"
    listed = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in parts.items() if text)
    kind = KINDS.get(claim.verdict, "")
    return f'<article class="{kind}"><h3>{escape(claim.claim)}</h3><dl>{listed}</dl></article>\n'


def _figure(figure: Figure, folder: Path) -> str:
    path = folder / f"{figure.name}.png"
    if not path.is_file():
        return f'<p class="quiet">{escape(path.name)} is missing.</p>\n'
    data = b64encode(path.read_bytes()).decode()
    title = escape(figure.title)
    return f'<figure><img alt="{title}" src="data:image/png;base64,{data}"><figcaption>{title}</figcaption></figure>\n'


def _table(name: str, rows: list[Row]) -> str:
    columns = list(rows[0]) if rows else []
    head = "".join(f"<th{_kind(rows[0][column])}>{escape(column.replace('_', ' '))}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(_cells(row.values()))}</tr>" for row in rows[:LONGEST])
    more = f"{len(rows) - LONGEST:,} more rows are" if len(rows) > LONGEST else "The same is"
    return (
        f'<h3>{escape(name)}</h3><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f'</div><p class="quiet">{more} in {escape(name)}.csv.</p>\n'
    )


def _cells(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield f"<td{_kind(value)}>{escape(_plain(value))}</td>"


def _kind(value: Any) -> str:
    return ' class="text"' if isinstance(value, str) else ""


def _plain(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "-"
        case int() | float():
            return number(value)
        case list():
            return " ".join(map(_plain, value))
        case _:
            return str(value)
