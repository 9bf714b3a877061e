"""`vestnik pipeline files`"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("files", epilog="Exit codes: 0 done; 2 the lake cannot be read.")
@click.option("--lake", required=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER")
@click.option("--type", "kind", metavar="TYPE", help="Of events of one type.")
def command(lake: Path, kind: str | None) -> None:
    """Print the Parquet files that are the lake now, one a line, for whatever reads Parquet."""
    from vestnik.lake.layout import Lake

    for path in Lake(lake).paths(kind):
        click.echo(path)
