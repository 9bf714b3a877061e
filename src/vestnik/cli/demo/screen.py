"""The demo as a picture: brokers, market, desks, and what has happened last."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Final, Literal, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from vestnik.cli.demo.world import World

OTHERS: Final = 14
"""Lines of the picture that are not happenings."""
MOST: Final = 1000
"""Happenings that are kept."""
COLUMNS: Final[dict[str, Literal["left", "right"]]] = {
    "desk": "left",
    "at": "left",
    "got": "right",
    "last": "left",
    "wants": "left",
}
STATES: Final = {"up": "bold green", "killed": "bold white on red", "starting": "yellow"}


class Screen:
    """When it is left, all happenings are written below one another."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._begun = time.monotonic()
        self._said: deque[Text] = deque(maxlen=MOST)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()
        for line in self._said:
            self._console.print(line)

    def say(self, who: str, what: str) -> None:
        after = f"{time.monotonic() - self._begun:5.1f}  "
        self._said.append(Text.assemble((after, "dim"), (f"{who:9} ", "bold cyan"), what))

    def draw(self, world: World | None) -> None:
        latest = Table.grid()
        latest.add_column(no_wrap=True)
        for line in list(self._said)[-max(3, self._console.height - OTHERS) :]:
            latest.add_row(line)
        parts: list[RenderableType] = []
        if world is not None:
            parts.append(Panel(_brokers(world), title="brokers", title_align="left"))
            parts.append(Panel(_desks(world), title="desks", title_align="left"))
        parts.append(Panel(latest, title="happenings; Ctrl-C ends it", title_align="left"))
        picture = Group(*parts)
        self._live.update(picture, refresh=True)


def _brokers(world: World) -> Text:
    """The line, with the market at its beginning."""
    quoted = "  ".join(f"{symbol} {price:.2f}" for symbol, price in sorted(world.market.prices.items()))
    text = Text.assemble("market ", (quoted or "nobody wants quotes", "bold" if quoted else "dim"))
    for name, state in world.states.items():
        text.append("  ──  ")
        text.append(f" {name} {state} ", STATES[state])
    return text.append("  ──  history")


def _desks(world: World) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head, justify in COLUMNS.items():
        table.add_column(Text(head, "dim"), justify=justify)
    for desk in world.desks:
        to_come = Text(f"{len(desk.missing)} to come", "bold red") if desk.missing else Text(desk.shown)
        table.add_row(Text(desk.name, "bold cyan"), desk.broker, f"{len(desk.seen):,}", to_come, str(desk.filter))
    if world.board is not None:
        table.add_row(Text(world.board.name, "bold cyan"), world.board.broker, "", world.board.shown)
    return table
