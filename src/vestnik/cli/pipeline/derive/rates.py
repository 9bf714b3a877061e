"""`vestnik pipeline derive rates`"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from vestnik.cli.pipeline.derive.running import Asked, check_durations, check_paths, derive, derive_options


@click.command("rates", epilog="Exit codes: 0 done; 2 wrong input, or what is to be read or written cannot be.")
@click.option("--key", default="type", show_default=True, metavar="PATH", help="Rates are by the value of this path.")
@click.option("--window", default="1m", show_default=True, metavar="DURATION", help="How long is counted.")
@click.option("--type", "type_", default="rate", show_default=True, metavar="TYPE", help="Of the new events.")
@derive_options
def command(key: str, window: str, type_: str, **rest: Any) -> None:
    """Derive an event for each key and window: how many events there are, and how many a second.

    A window is over once events come that are later than its end by more than the watermark.
    """
    asked = Asked(**rest)
    check_paths(key=key)
    check_durations(1, window=window)
    from vestnik.spark.derive import rates

    settings: dict[str, Any] = {"key": key, "window": window, "type": type_}
    derive(asked, "rate", partial(rates, **settings), settings)
