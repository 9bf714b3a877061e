"""Plays the story, draws it, and ends it when a signal says so."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Final

import click

from vestnik.cli.demo.stage import Stage, stage
from vestnik.cli.demo.story import Story

DRAW_EVERY: Final = 0.1
WRONG, INTERRUPTED = 1, 130


async def perform(seconds: float | None, page: Path | None) -> int:
    """The exit code. Whatever happens, no process is left, and no file but `page`."""
    with stage() as shown:
        story = Story(seconds, shown.say, page)
        playing = asyncio.create_task(story.play())
        _obey_signals(story, playing)
        try:
            await _draw(shown, story, playing)
        except asyncio.CancelledError:
            return INTERRUPTED
        finally:
            if not playing.done():
                playing.cancel()
                await asyncio.wait([playing])
    if story.world is not None:
        click.echo(story.world.summary)
    return 0 if story.is_right else WRONG


def _obey_signals(story: Story, playing: asyncio.Task[None]) -> None:
    """Ctrl-C ends the story, and once more ends it at once, as other signals do."""

    def leave() -> None:
        if not playing.cancelling():
            playing.cancel()

    def end() -> None:
        if story.world is not None and not story.over.is_set():
            story.over.set()
        else:
            leave()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, end)
    loop.add_signal_handler(signal.SIGTERM, leave)
    loop.add_signal_handler(signal.SIGHUP, leave)


async def _draw(shown: Stage, story: Story, playing: asyncio.Task[None]) -> None:
    while not playing.done():
        shown.draw(story.world)
        await asyncio.wait([playing], timeout=DRAW_EVERY)
    shown.draw(story.world)
    await playing
