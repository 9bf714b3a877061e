"""`vestnik lab report`"""

from __future__ import annotations

from pathlib import Path

import click

from vestnik.cli.inputs import Refused
from vestnik.lab.report import render


@click.command("report", epilog="Exit codes: 0 written; 2 there is nothing to report.")
@click.option("--out", metavar="DIR", default="results", show_default=True, help="The folder that holds the results.")
def command(out: str) -> None:
    """Put all results in a folder into one page, DIR/report.html: claims, figures and tables."""
    folder = Path(out)
    try:
        page = render(folder)
    except ValueError as error:
        raise Refused(str(error)) from None
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    click.echo(str(path))
