"""`vestnik pipeline derive triggers`"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from vestnik.cli.inputs import Refused
from vestnik.cli.pipeline.derive.running import Asked, check_paths, derive, derive_options
from vestnik.spark.derive.triggers import Above, Below, Fall, Rise, Trigger


@click.command("triggers", epilog="Exit codes: 0 done; 2 wrong input, or what is to be read or written cannot be.")
@click.option("--key", required=True, metavar="PATH", help="Values are compared by the value of this path.")
@click.option("--value", required=True, metavar="PATH", help="The numbers at this path are compared.")
@click.option("--above", type=float, multiple=True, metavar="NUMBER", help="When the value comes to be above it.")
@click.option("--below", type=float, multiple=True, metavar="NUMBER", help="When the value comes to be below it.")
@click.option(
    "--rise", type=float, multiple=True, metavar="PERCENT", help="When the value has risen by as much or more."
)
@click.option(
    "--fall", type=float, multiple=True, metavar="PERCENT", help="When the value has fallen by as much or more."
)
@click.option("--within", metavar="DURATION", help="With --rise and --fall: in how long a time.")
@click.option("--type", "type_", metavar="TYPE", help="Of the new events.  [default: above, below, rise or fall]")
@derive_options
def command(
    key: str,
    value: str,
    above: tuple[float, ...],
    below: tuple[float, ...],
    rise: tuple[float, ...],
    fall: tuple[float, ...],
    within: str | None,
    type_: str | None,
    **rest: Any,
) -> None:
    """Derive an event each time that a value crosses a threshold, or has risen or fallen by so many percent.

    Events are looked at in the order of their times, once others have come that are later by more than the watermark.
    """
    asked = Asked(**rest)
    check_paths(key=key, value=value)
    wanted = _triggers(above, below, rise, fall, within)
    from vestnik.spark.derive import triggers

    settings: dict[str, Any] = {"key": key, "value": value, "type": type_}
    said = settings | {"triggers": [trigger.said() for trigger in wanted]}
    derive(asked, "event", partial(triggers, wanted=wanted, **settings), said)


def _triggers(
    above: tuple[float, ...],
    below: tuple[float, ...],
    rise: tuple[float, ...],
    fall: tuple[float, ...],
    within: str | None,
) -> list[Trigger]:
    thresholds: list[Trigger] = [*map(Above, above), *map(Below, below)]
    if (rise or fall) and within is None:
        raise Refused("say in how long a time: --within 10m")
    if within is None:
        if not thresholds:
            raise Refused("say when: --above, --below, --rise or --fall; each may be repeated")
        return thresholds
    if not (rise or fall):
        raise Refused("--within goes with --rise and --fall")
    return [*thresholds, *(Rise(percent, within) for percent in rise), *(Fall(percent, within) for percent in fall)]
