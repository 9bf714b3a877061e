"""The settings of a broker on the command line: what `serve` and `config show` have in common."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from vestnik.client.environment import VARIABLES, misspelt
from vestnik.server.configuration import PREFIX, Found, gather, known
from vestnik.server.limits import Limits, read_limits
from vestnik.server.settings import LOG_FORMATS, LOG_LEVELS, ROLES
from vestnik.transport.addresses import Address, read_address

CONFIG = f"{PREFIX}CONFIG"

FILE = click.Path(dir_okay=False, path_type=Path)
OPTIONS = (
    click.option("--name", help="What others know it by; its own in the network.  [default: of --data, or at random]"),
    click.option("--listen", metavar="HOST:PORT", help="Where to listen.  [default: 127.0.0.1:8020]"),
    click.option("--join", multiple=True, metavar="HOST:PORT", help="A broker to be a neighbour of; may be repeated."),
    click.option("--routing", metavar="STRATEGY", help="How to route.  [default: merging]"),
    click.option(
        "--advertisements/--no-advertisements",
        default=None,
        help="Let subscriptions go only where something is advertised.",
    ),
    click.option(
        "--data", type=click.Path(file_okay=False, path_type=Path), help="Store what is published in this folder."
    ),
    click.option("--retain-size", type=int, metavar="BYTES", help="Keep so much of it at most.  [default: 1 GiB]"),
    click.option("--retain-count", type=int, metavar="EVENTS", help="Keep so many at most.  [default: any number]"),
    click.option("--retain-age", type=float, metavar="SECONDS", help="Keep them for so long.  [default: for ever]"),
    click.option("--retain-latest-by", metavar="PATH", help="Keep in time only the latest for each value of it."),
    click.option("--role", type=click.Choice(ROLES), help="A router takes no clients.  [default: broker]"),
    click.option("--lease", type=float, metavar="SECONDS", help="How long what is not renewed lasts.  [default: 60]"),
    click.option("--sweep", type=float, metavar="SECONDS", help="How often to look for that.  [default: 5]"),
    click.option("--heartbeat", type=float, metavar="SECONDS", help="How often others must be heard.  [default: 15]"),
    click.option(
        "--repeat-window",
        type=int,
        metavar="EVENTS",
        help="Recognise repeats at other brokers among this many events.  [default: 100,000]",
    ),
    click.option(
        "--repeat-window-age", type=float, metavar="SECONDS", help="Recognise them for this long.  [default: 600]"
    ),
    click.option("--trace", type=FILE, help="Write what happens here, for vestnik check."),
    click.option("--http", metavar="HOST:PORT", help="Also serve HTTP and WebSocket there."),
    click.option("--origin", multiple=True, metavar="URL", help="A site whose pages may use --http; may be repeated."),
    click.option(
        "--sink",
        multiple=True,
        metavar="HOST[:PORT]",
        help="Where webhooks may push to; may be repeated.  [default: nowhere]",
    ),
    click.option("--tls-cert", type=FILE, help="Speak TLS, with the certificate in this file."),
    click.option("--tls-key", type=FILE, help="The key of the certificate."),
    click.option("--tls-ca", type=FILE, help="The authority that certificates of neighbours are of."),
    click.option("--access", type=FILE, help="Who may do what: a TOML file."),
    click.option("--limits", multiple=True, metavar="NAME=NUMBER", help="How much others may have; may be repeated."),
    click.option("--log-level", type=click.Choice(LOG_LEVELS), help="Log this and what is worse.  [default: info]"),
    click.option("--log-format", type=click.Choice(LOG_FORMATS), help="How to log.  [default: text]"),
    click.option(
        "--config",
        type=FILE,
        help=f"A TOML file with these settings.  [default: ${CONFIG}, or none]",
    ),
)


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all settings as options."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def found_settings(config: Path | None, given: dict[str, Any]) -> dict[str, Found]:
    """The settings, by what was given on the command line, in the environment and in a file."""
    file = config or (Path(os.environ[CONFIG]) if os.environ.get(CONFIG) else None)
    flags = {name: value for name, value in given.items() if value is not None and value != ()}
    for name in ("listen", "http"):
        if name in flags:
            flags[name] = read_address(flags[name])
    if "join" in flags:
        flags["join"] = tuple(dict.fromkeys(map(read_address, flags["join"])))
    if "limits" in flags:
        flags["limits"] = read_limits(flags["limits"])
    for said in misspelt(os.environ, [*(f"{PREFIX}{name.upper()}" for name in known()), CONFIG, *VARIABLES]):
        click.echo(f"vestnik: {said}", err=True)
    return gather(flags, os.environ, file, name=f"broker-{secrets.token_hex(4)}")


def plain(value: object) -> object:
    """A setting as JSON has it."""
    match value:
        case Address() | Path():
            return str(value)
        case Limits():
            return {name: getattr(value, name) for name in value.__struct_fields__}
        case tuple():
            return [plain(part) for part in value]
        case _:
            return value
