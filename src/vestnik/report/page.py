"""Parts of a page, and the page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from vestnik.report.numbers import number

LONGEST = 60
"""Rows of a table that are shown."""

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


def page(title: str, sections: Mapping[str, str]) -> str:
    """A page of sections by their names, under which they can be linked to."""
    links = "".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in sections)
    body = "".join(f'<section id="{escape(name)}">{section}</section>\n' for name, section in sections.items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1><nav>{links}</nav>\n{body}</body></html>\n"
    )


def heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>\n"


def quiet(text: str) -> str:
    """A paragraph that does not matter much."""
    return f'<p class="quiet">{escape(text)}</p>\n'


def figure(path: Path, title: str) -> str:
    """The picture in a file; where there is none, that is said."""
    if not path.is_file():
        return quiet(f"{path.name} is missing.")
    data, shown = b64encode(path.read_bytes()).decode(), escape(title)
    return f'<figure><img alt="{shown}" src="data:image/png;base64,{data}"><figcaption>{shown}</figcaption></figure>\n'


def table(name: str, rows: Sequence[Mapping[str, Any]], below: str) -> str:
    """The first rows, all of which have the columns of the first, with a line below."""
    columns = list(rows[0]) if rows else []
    head = "".join(f"<th{_kind(rows[0][column])}>{escape(column.replace('_', ' '))}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(_cells(row.values()))}</tr>" for row in rows[:LONGEST])
    return (
        f'<h3>{escape(name)}</h3><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div>{quiet(below)}"
    )


def _cells(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield f"<td{_kind(value)}>{escape(plain(value))}</td>"


def _kind(value: Any) -> str:
    return ' class="text"' if isinstance(value, str) else ""


def plain(value: Any) -> str:
    """A value for people."""
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "-"
        case int() | float():
            return number(value)
        case list():
            return " ".join(map(plain, value))
        case _:
            return str(value)
