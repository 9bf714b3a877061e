"""What commands are given: filters as text, events and lines in files, `-` for standard input."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import AbstractContextManager, nullcontext
from io import BufferedIOBase
from pathlib import Path
from typing import cast

import click

from vestnik.errors import FilterSyntaxError, FilterTooComplex, VestnikError
from vestnik.model.events import Event
from vestnik.model.filters import Filter


class Refused(click.ClickException):
    """Input that no command can work with."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        click.echo(f"vestnik: {self.message}", err=True)


def filter_text(argument: str) -> str:
    """The text of a filter that is given as an argument; `-` reads it from standard input."""
    return _standard_input().read().decode(errors="surrogateescape") if argument == "-" else argument


def check_one_standard_input(one: str, other: str) -> None:
    """Refused where both are `-`."""
    if one == other == "-":
        raise Refused("only one of the two can be standard input; give the other")


def parsed(text: str, name: str = "filter") -> Filter:
    """The filter of `text`; Refused, with the place and what was expected there, where it has none."""
    try:
        return Filter.parse(text)
    except FilterSyntaxError as error:
        raise Refused(f"the {name} is wrong at {error}{_shell_hint(text)}") from None
    except FilterTooComplex as error:
        raise Refused(str(error).replace("the filter", f"the {name}", 1)) from None


def _shell_hint(text: str) -> str:
    """Where somebody wrote `vestnik sub price > 10`, the shell has made a file 10, and given us a word."""
    is_word = bool(text) and not set(text) & set(" ()<>='")
    return (
        "\nthe shell may have taken > for a file to write to: put the filter in quotes"
        if is_word and _to_file()
        else ""
    )


def _to_file() -> bool:
    """Whether what is printed goes to a file."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (AttributeError, OSError):
        return False


def shown_name(name: str) -> str:
    """The name of a file for messages."""
    return "standard input" if name == "-" else name


def opened(name: str) -> AbstractContextManager[BufferedIOBase]:
    """The file `name`, or standard input for `-`; Refused where it cannot be opened."""
    if name == "-":
        return nullcontext(_standard_input())
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise Refused(f"{name}: {_reason(error)}") from None


def _standard_input() -> BufferedIOBase:
    if sys.stdin is None:
        raise Refused("standard input is closed; name a file")
    return cast(BufferedIOBase, sys.stdin.buffer)


def _reason(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case IsADirectoryError():
            return "this is a folder; name a file in it"
        case PermissionError():
            return "no permission to read it"
        case _:
            return error.strerror or str(error)


def read_event(name: str) -> Event:
    """The one event in the file `name`."""
    with opened(name) as file:
        text = file.read()
    try:
        return Event.from_json(text)
    except VestnikError as error:
        found = "several events, one a line; give one" if _several(text) else f"no event: {error}"
        raise Refused(f"{shown_name(name)} holds {found}") from None


def _several(text: bytes) -> bool:
    """Whether there are more lines than one, and the first is an event."""
    first, _, rest = text.strip().partition(b"\n")
    try:
        Event.from_json(first)
    except VestnikError:
        return False
    return bool(rest)
