"""What commands print for programs."""

from __future__ import annotations

import json

import click


def json_line(value: object) -> str:
    """`value` as a line of JSON, in ASCII: it is the same in every encoding that a stream may have."""
    return json.dumps(value) + "\n"


def echo_json(value: object) -> None:
    """Print `value` as a line of JSON."""
    click.echo(json_line(value), nl=False)
