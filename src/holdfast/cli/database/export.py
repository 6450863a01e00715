"""Run ``holdfast database export``: write a table to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output, size
from holdfast.cli.screen import in_one_line
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.records import Database

_EPILOG = """\b
Examples:
  holdfast database export sqlite:///var/lib/shop.db stock stock.jsonl
  holdfast database export sqlite:///var/lib/shop.db stock stock.parquet --overwrite

The ending of FILE chooses the format: .jsonl, .csv or .parquet. All rows come from one snapshot, and writers do not
wait. The file appears when it is complete. In .jsonl, every value can be told again. In .csv and .parquet, each column
of the table is a column after the column row; a column with values of several types, JSON or arrays has texts, in
JSON, and .csv has bytes in base64."""


@click.command(epilog=_EPILOG)
@on_database
@click.argument("table")
@click.argument("file")
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
def export(database: Database, table: str, file: str, overwrite: bool, out: Output) -> None:
    """Write all rows of TABLE to FILE."""
    from holdfast.cli.database.files import export_table

    with out.progress() as progress:
        done = export_table(database, table, file, overwrite=overwrite, progress=progress)
    out.document({"table": table, "file": file, "rows": done.rows, "bytes": done.size_bytes})
    out.say(f"wrote {counted(done.rows, 'row')}, {size(done.size_bytes)}, to {in_one_line(file)}")
