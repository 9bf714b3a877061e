"""`vestnik pipeline derive candles`"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from vestnik.cli.pipeline.derive.running import Asked, check_durations, check_paths, derive, derive_options


@click.command("candles", epilog="Exit codes: 0 done; 2 wrong input, or what is to be read or written cannot be.")
@click.option("--key", required=True, metavar="PATH", help="Candles are by the value of this path, such as symbol.")
@click.option("--value", required=True, metavar="PATH", help="Of the numbers at this path, such as price.")
@click.option("--volume", metavar="PATH", help="Add up the numbers at this path.")
@click.option("--window", default="1m", show_default=True, metavar="DURATION", help="How long a candle is.")
@click.option("--type", "type_", default="candle", show_default=True, metavar="TYPE", help="Of the new events.")
@derive_options
def command(key: str, value: str, volume: str | None, window: str, type_: str, **rest: Any) -> None:
    """Derive an event for each key and window: open, high, low, close, count, and volume.

    A window is over once events come that are later than its end by more than the watermark.
    """
    asked = Asked(**rest)
    check_paths(key=key, value=value, volume=volume)
    check_durations(1, window=window)
    from vestnik.spark.derive import candles

    settings: dict[str, Any] = {"key": key, "value": value, "volume": volume, "window": window, "type": type_}
    derive(asked, "candle", partial(candles, **settings), settings)
