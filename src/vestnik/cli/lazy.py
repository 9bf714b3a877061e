"""Groups of commands whose modules are imported when they run, not when help is shown."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """`commands_from` gives for each command, in the order help shows them, `module:name` and a line of help."""

    def __init__(self, *args: Any, commands_from: dict[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._commands_from = commands_from

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._commands_from)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._commands_from:
            return None
        module, _, name = self._commands_from[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._commands_from.items()])
