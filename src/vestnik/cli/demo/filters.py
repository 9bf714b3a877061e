"""`vestnik demo filters`: the filter language in a few screens. Every answer shown is computed as it is printed."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vestnik.matching import Matcher
from vestnik.model.events import Event
from vestnik.model.filters import Filter

QUOTE = Event(
    "market.quote",
    {"symbol": "ACME", "price": 12.5, "volume": 900, "tags": ["tech", "hot"]},
    source="nyse",
    id="q1",
    subject="/exchange/us/tech/acme",
)
ORDER = Event(
    "shop.order",
    {"items": [{"kind": "cpu", "price": 250}, {"kind": "fan", "price": 20}], "readings": [0, 3, 9]},
    source="shop",
    id="o1",
)
ASKED = [
    "type IS market",
    "symbol IN ('ACME', 'INIT') AND price BETWEEN 10 AND 20",
    "subject GLOB '/exchange/*/tech/**'",
    "symbol LIKE 'AC%' AND NOT (volume < 500 OR halted = TRUE)",
    "ANY tags = 'hot'",
    "price != 12.5",
    "currency != 'EUR'",
    "NOT currency = 'EUR'",
]
NEAR_MISS = "type IS market AND symbol = 'ACME' AND price < 12 AND volume >= 100"
RELATED = [
    ("x BETWEEN 5 AND 8", "x BETWEEN 4 AND 7 AND x BETWEEN 6 AND 9"),
    ("EXISTS patient", "patient.pulse > 120"),
    ("name LIKE 'a%'", "name MATCHES '[ab]+'"),
    ("symbol = 'ACME' AND price < 10", "symbol = 'ACME' AND price BETWEEN 8 AND 20"),
]
ELEMENTS = [
    "ANY items (kind = 'cpu' AND price < 100)",
    "ANY items (kind = 'cpu') AND ANY items (price < 100)",
    "ALL items (price > 10)",
    "ANY readings (@ > 1 AND @ < 5)",
    "ALL readings <= 9",
]
FILTERS, EVENTS, SYMBOLS = 5_000, 1_000, 200


class Terminal(Console):
    """A console that leaves it to its caller what to do where the reader has gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@click.command("filters")
def command() -> None:
    """A tour of the filter language, a few screens long."""
    tour(Terminal(highlight=False), time.perf_counter)


def tour(console: Console, clock: Callable[[], float]) -> None:
    """Print all of it; `clock` gives seconds."""
    for title, screen in (
        ("An event", _event),
        ("Filters ask about its content", _filters),
        ("Why not?", _near_miss),
        ("Filters know each other", _relations),
        ("Lists: several conditions on one element", _elements),
    ):
        console.print()
        console.rule(Text(title, "bold cyan"), align="left", style="cyan")
        screen(console)
    console.print()
    console.rule(Text(f"{FILTERS:,} filters at once", "bold cyan"), align="left", style="cyan")
    _many(console, clock)


def _event(console: Console) -> None:
    table = _table()
    for name in ("type", "source", "id", "subject"):
        table.add_row(name, Text(getattr(QUOTE, name)))
    for name, value in QUOTE.data.items():
        table.add_row(f"data.{name}", Text(repr(value)))
    console.print(Padding(table, (0, 2), expand=False))


def _filters(console: Console) -> None:
    _verdicts(console, QUOTE, ASKED)
    _say(console, "!= wants the path to be there; NOT is the complement, so it is true where the path is missing.")


def _near_miss(console: Console) -> None:
    _say(console, NEAR_MISS, "bold")
    for line in str(Filter.parse(NEAR_MISS).explain(QUOTE)).splitlines():
        _say(console, line, "red" if "FAIL" in line else "")


def _relations(console: Console) -> None:
    for one, other in RELATED:
        F, G = Filter.parse(one), Filter.parse(other)
        merged = F.merge(G)
        table = _table()
        table.add_row("F", Text(one, "bold"))
        table.add_row("G", Text(other, "bold"))
        facts = {"F covers G": F.covers(G), "G covers F": G.covers(F), "they overlap": F.overlaps(G)}
        table.add_row("", ", ".join(fact for fact, holds in facts.items() if holds) or "nothing in common")
        table.add_row("merged", Text("none shorter than the two" if merged is None else str(merged)))
        console.print(Padding(table, (0, 2), expand=False))
        console.print()
    _say(console, "Each answer is exact: conditions on one path first become one set of values.")


def _elements(console: Console) -> None:
    table = _table()
    for name, value in ORDER.data.items():
        table.add_row(f"data.{name}", Text(str(value)))
    console.print(Padding(table, (0, 2, 1, 2), expand=False))
    _verdicts(console, ORDER, ELEMENTS)
    _say(console, "@ is the element itself.")


def _many(console: Console, clock: Callable[[], float]) -> None:
    matcher: Matcher[int] = Matcher()
    random = Random(1)
    texts = []
    for _ in range(FILTERS):
        low = random.randrange(100)
        symbol = random.randrange(SYMBOLS)
        texts.append(f"symbol = 'S{symbol}' AND price BETWEEN {low} AND {low + random.randrange(20)}")
    start = clock()
    wanted = [Filter.parse(text) for text in texts]
    parsed = clock()
    for number, one in enumerate(wanted):
        matcher.add(number, one)
    events = [
        Event("quote", {"symbol": f"S{random.randrange(SYMBOLS)}", "price": random.randrange(120)}, id=f"e{number}")
        for number in range(EVENTS)
    ]
    matcher.match(events[0])  # what is loaded once in a process is loaded now, and not measured
    ready = clock()
    matches = sum(len(matcher.match(event)) for event in events)
    done = clock()
    table = _table()
    table.add_row("parsed", f"{FILTERS:,} filters, {(parsed - start) / FILTERS * 1e6:.0f} us each")
    table.add_row("matched", f"{EVENTS:,} events, {(done - ready) / EVENTS * 1e6:.1f} us each against all filters")
    table.add_row("found", f"{matches:,} matches")
    console.print(Padding(table, (0, 2), expand=False))
    _say(console, "This was one event after the other; docs/guide/matching.md shows batches.")


def _verdicts(console: Console, event: Event, texts: list[str]) -> None:
    table = _table()
    for text in texts:
        matches = Filter.parse(text).matches(event)
        table.add_row(Text("yes", "bold green") if matches else Text("no", "bold red"), Text(text))
    console.print(Padding(table, (0, 2), expand=False))


def _table() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _say(console: Console, line: str, style: str = "") -> None:
    console.print(Padding(Text(line, style), (0, 2), expand=False))
