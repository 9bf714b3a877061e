"""`vestnik token new`"""

from __future__ import annotations

import click

from vestnik.errors import InvalidSetting
from vestnik.server.access import hash_of, new_token
from vestnik.server.names import unfit_name


@click.command("new", epilog="The table goes to standard output, the token to standard error. Exit codes: 0, 2.")
@click.argument("name", metavar="NAME")
def command(name: str) -> None:
    """Make a token for NAME: print it this once, and the table for the access file, which has only its hash."""
    unfit = unfit_name(name, within="identity")
    if unfit:
        raise InvalidSetting("name", unfit)
    token = new_token()
    click.echo(f'[{_key(name)}]\ntokens = ["{hash_of(token)}"]')
    click.echo(f"the token of {name}, which is shown this once: {token}", err=True)


def _key(name: str) -> str:
    """A name as TOML has it."""
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if is_bare else f'"{escaped}"'
