"""`vestnik pipeline compact`"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("compact", epilog="Exit codes: 0 done; 2 the lake cannot be read.")
@click.option("--lake", required=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER")
@click.option("--master", metavar="MASTER", help="Where Spark runs; without it, no Spark is needed.")
def command(lake: Path, master: str | None) -> None:
    """Merge the small files of each type and date, in order, with the columns that are declared now.

    Whoever reads the lake meanwhile sees the old files or the new ones.
    """
    from vestnik.lake.compaction import compact
    from vestnik.lake.layout import Lake

    Lake(lake)
    if master is None:
        before, after = compact(lake)
    else:
        from vestnik.cli.running import running
        from vestnik.spark.ingest import on

        with running(master, "vestnik compact") as spark:
            before, after = compact(lake, on(spark))
    click.echo(f"{before:,} files have become {after:,}" if after < before else f"{after:,} files, none too small")
