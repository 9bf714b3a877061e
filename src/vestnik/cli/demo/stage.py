"""Where the demo is seen: a picture that changes on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import click

from vestnik.cli.demo.world import World

COUNT_EVERY: Final = 1.0
"""Seconds between two lines that count."""


class Stage(Protocol):
    def say(self, who: str, what: str) -> None:
        """Something has happened."""

    def draw(self, world: World | None) -> None:
        """Show how things are; None while there is nothing yet."""


@contextmanager
def stage() -> Iterator[Stage]:
    """A picture where the output is a terminal that can show one."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        from vestnik.cli.demo.screen import Screen

        with Screen(console) as screen:
            yield screen
    else:
        yield Lines()


class Lines:
    """One a happening, and one that counts now and then."""

    def __init__(self) -> None:
        self._begun = self._counted = time.monotonic()
        self._said: list[str] = []

    def say(self, who: str, what: str) -> None:
        self._said.append(f"{time.monotonic() - self._begun:5.1f}  {who:9} {what}")

    def draw(self, world: World | None) -> None:
        if world is not None and world.market.prices and time.monotonic() - self._counted >= COUNT_EVERY:
            self._counted = time.monotonic()
            got = ", ".join(f"{desk.name} {len(desk.seen)}" for desk in world.desks)
            self.say("", f"{world.summary.published} published; sent to {got}")
        said, self._said = self._said, []
        for line in said:
            click.echo(line)
