"""`vestnik config show`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vestnik.cli.outputs import echo_json
from vestnik.cli.settings import found_settings, plain, settings_options
from vestnik.server.configuration import settings_of


@click.command("show", epilog="Exit codes: 0 a broker can be started so; 2 it cannot.")
@settings_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, for each setting.")
def command(config: Path | None, as_json: bool, **given: Any) -> None:
    """Print the settings that `vestnik serve` would have if it was given these options, and where each is from.

    A flag goes before the environment, that before the file, and that before what is so unless said otherwise.
    """
    found = found_settings(config, given)
    settings_of(found)
    if as_json:
        for name, (value, origin) in found.items():
            echo_json({"setting": name, "value": plain(value), "origin": origin})
        return
    rows = [row for name, (value, origin) in found.items() for row in _rows(name, plain(value), origin)]
    names, values = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
    for name, shown, origin in rows:
        click.echo(f"{name:{names}}  {shown:{values}}  {origin}")


def _rows(name: str, value: object, origin: str) -> list[tuple[str, str, str]]:
    """The lines of a setting: one, or one for each part that has a name."""
    if isinstance(value, dict):
        return [(f"{name}.{part}", _shown(inner), origin) for part, inner in value.items()]
    return [(name, _shown(value), origin)]


def _shown(value: object) -> str:
    match value:
        case None | []:
            return "-"
        case list():
            return ",".join(map(str, value))
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)
