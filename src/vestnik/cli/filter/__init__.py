"""`vestnik filter ...`"""

from __future__ import annotations

import click

from vestnik.cli.lazy import LazyGroup


@click.group(
    "filter",
    cls=LazyGroup,
    commands_from={
        "check": ("vestnik.cli.filter.check:command", "Check a filter and print its normal form."),
        "explain": ("vestnik.cli.filter.explain:command", "Say why an event matches a filter, or why not."),
        "relate": ("vestnik.cli.filter.relate:command", "Say how two filters relate."),
        "match": ("vestnik.cli.filter.match:command", "Find the filters that each of many events matches."),
    },
)
def group() -> None:
    """Check, explain, relate and match filters.

    Put a filter in double quotes, so that the shell leaves its single quotes alone, or write - and give it on standard
    input.
    """
