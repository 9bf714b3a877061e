"""`vestnik token new`"""

from __future__ import annotations

from pathlib import Path

import click

from vestnik.cli.settings import FILE
from vestnik.errors import InvalidAccess, InvalidSetting
from vestnik.journal.disk import private
from vestnik.server.access import Access, hash_of, new_token
from vestnik.server.names import unfit_name


@click.command("new", epilog="The table goes to standard output, the token to standard error. Exit codes: 0, 2.")
@click.argument("name", metavar="NAME")
@click.option("--access", type=FILE, help="Add the table to this access file, instead of printing it.")
def command(name: str, access: Path | None) -> None:
    """Make a token for NAME: print it this once, and the table for the access file, which has only its hash."""
    unfit = unfit_name(name, within="identity")
    if unfit:
        raise InvalidSetting("name", unfit)
    token = new_token()
    table = f'[{_key(name)}]\ntokens = ["{hash_of(token)}"]'
    if access is None:
        click.echo(table)
    else:
        _add(table, name, access)
    click.echo(f"the token of {name}, which is shown this once: {token}", err=True)


def _add(table: str, name: str, access: Path) -> None:
    """Add a table to a file. Refused where the file has one for that name: who rules it knows which tokens stay."""
    known = Access.read(access).identities if access.exists() else ()
    if any(identity.name == name for identity in known):
        how = f"vestnik token new {name} without --access prints a hash to put into its list tokens"
        raise InvalidAccess(access, f"there is a table [{_key(name)}] already; {how}")
    with open(access, "a", encoding="utf-8", opener=private) as file:
        file.write(f"\n{table}\n" if known else f"{table}\n")


def _key(name: str) -> str:
    """A name as TOML has it."""
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if is_bare else f'"{escaped}"'
