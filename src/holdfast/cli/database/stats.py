"""Run ``holdfast database stats``: count what is in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output, size

if TYPE_CHECKING:
    from holdfast.records import Database
    from holdfast.records.sizes import TableSize

_EPILOG = """\b
Examples:
  holdfast database stats sqlite:///var/lib/shop.db
  holdfast database stats shop --json

All is counted at one instant, so everything is read once; nobody waits for it. Bytes are those of keys and values; the
database needs more for its indexes."""


@click.command(epilog=_EPILOG)
@on_database
def stats(database: Database, out: Output) -> None:
    """Count the rows, cells and bytes of each table at URL, the jobs, and what waits in work lists."""
    from holdfast.records.sizes import table_size
    from holdfast.records.tables import list_tables
    from holdfast.units.jobs import list_jobs
    from holdfast.units.open_work_list import count_items
    from holdfast.units.work_list import list_work_lists

    with out.waiting("counting") as show, database.snapshot() as snapshot:
        reader = snapshot.reader
        tables: dict[str, TableSize] = {}
        for table in list_tables(reader):
            show(f"counting {table.name}")
            tables[table.name] = table_size(reader, table)
        jobs = list_jobs(reader)
        lists = {work.name: count_items(reader, work) for work in list_work_lists(reader)}
    finished = sum(job.is_finished for job in jobs)
    out.document(
        {
            "tables": [
                {
                    "table": name,
                    "rows": one.rows,
                    "cells": one.cells,
                    "versions": one.versions,
                    "bytes": one.size_bytes,
                }
                for name, one in tables.items()
            ],
            "jobs": len(jobs),
            "jobs_finished": finished,
            "work_lists": [
                {"list": name, "waiting": waiting, "claimed": claimed} for name, (waiting, claimed) in lists.items()
            ],
        }
    )
    out.table(
        ["table", "rows", "cells", "versions", "size"],
        [
            (name, f"{one.rows:,}", f"{one.cells:,}", f"{one.versions:,}", size(one.size_bytes))
            for name, one in tables.items()
        ],
        right=["rows", "cells", "versions", "size"],
    )
    if lists:
        rows = [(name, f"{waiting:,}", f"{claimed:,}") for name, (waiting, claimed) in lists.items()]
        out.table(["work list", "waiting", "claimed"], rows, right=["waiting", "claimed"])
    out.say(f"jobs: {len(jobs):,}, of which {finished:,} are finished")
