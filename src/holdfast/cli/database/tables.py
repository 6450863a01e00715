"""Run the commands that work on whole tables: ``create``, ``drop``, ``stats`` and ``gc``."""

from __future__ import annotations

from typing import Annotated

import click

from holdfast.cli.command import CommandRun, Url, Yes, command, option
from holdfast.cli.database.rows import Table, history_limit, history_text, open_given_database
from holdfast.cli.output import ResultColumn, format_with_commas, size_text, to_documents
from holdfast.wording import format_count, parse_digits


def _parse_history_limit(text: str) -> bool | int:
    """Parse a number of values, or ``all``."""
    if text == "all":
        return True
    found = parse_digits(text, 9)
    if found is None:
        raise click.BadParameter(f"'{text}' is not a number of values: write one, such as 10, or all")
    return found


_KEPT = "Keep so many values of each cell, the present one among them.  [default: no history]"


@command()
def create(
    run: CommandRun,
    url: Url,
    table: Table,
    history: Annotated[
        bool | int,
        option("--history", _KEPT, metavar="N|all", type=_parse_history_limit, default="0", show_default=False),
    ],
    exist_ok: Annotated[bool, option("--exist-ok", "Accept a table that exists, if it has this history.")],
) -> None:
    """Create TABLE in the database at URL.

    Examples:
      holdfast database create sqlite:///var/lib/shop.db stock
      holdfast database create postgresql://shop@db/shop prices --history 10
      holdfast database create sqlite:///var/lib/shop.db log --history all

    The database must exist, except for an SQLite file; what Holdfast needs in it is created. With --history, earlier
    values of a cell stay, and all writers of a cell wait for each other. A table's --history cannot be changed later.
    """
    from holdfast.records.tables import check_table_name

    check_table_name(table)  # before there is a new file
    database = open_given_database(run, url, create=True)
    made = database.create_table(table, history=history, exist_ok=exist_ok)
    run.out.document({"url": database.url, "table": made.name, "history": history_limit(made)})
    what = f"table {made.name} exists now" if exist_ok else f"created table {made.name}"
    run.out.say(f"{what}, history: {history_text(made)}")


@command()
def drop(run: CommandRun, url: Url, table: Table, yes: Yes) -> None:
    """Drop TABLE with all its cells.

    Examples:
      holdfast database drop sqlite:///var/lib/shop.db stock
      holdfast database drop sqlite:///var/lib/shop.db stock --yes

    The table is gone in one step; then its cells and their history are deleted. If this is interrupted, holdfast
    database gc deletes the rest. Programs that use the table fail, and change nothing.
    """
    database = open_given_database(run, url)
    database.table(table)
    if not yes:
        run.out.confirm(f"Drop the table {table} of {database.url} with all its cells?")
    with run.out.show_spinner("deleting cells"):
        database.drop_table(table)
    run.out.document({"table": table, "dropped": True})
    run.out.say(f"dropped {table}")


_SIZES = (
    ResultColumn("table", "table", lambda one: one[0]),
    ResultColumn("rows", "rows", lambda one: one[1].rows, format_with_commas),
    ResultColumn("cells", "cells", lambda one: one[1].cells, format_with_commas),
    ResultColumn("versions", "versions", lambda one: one[1].versions, format_with_commas),
    ResultColumn("bytes", "size", lambda one: one[1].size_bytes, size_text),
)
_WORK = (
    ResultColumn("list", "work list", lambda one: one[0]),
    ResultColumn("waiting", "waiting", lambda one: one[1][0], format_with_commas),
    ResultColumn("claimed", "claimed", lambda one: one[1][1], format_with_commas),
)


@command()
def stats(run: CommandRun, url: Url) -> None:
    """Count rows, cells and bytes, jobs and work lists.

    Examples:
      holdfast database stats sqlite:///var/lib/shop.db
      holdfast database stats shop --json

    All is counted at one instant, so everything is read once; writers do not wait. Bytes are those of keys and values;
    the database needs more for its indexes.
    """
    from holdfast.records.cells import measure_table_size
    from holdfast.records.tables import list_tables
    from holdfast.units.jobs import list_jobs
    from holdfast.units.work_list import count_items, list_work_lists

    out = run.out
    sizes = []
    with out.show_spinner("counting") as show, open_given_database(run, url).snapshot() as snapshot:
        reader = snapshot.reader
        for table in list_tables(reader):
            show(f"counting {table.name}")
            sizes.append((table.name, measure_table_size(reader, table)))
        jobs = list_jobs(reader)
        lists = [(work.name, count_items(reader, work)) for work in list_work_lists(reader)]
    finished = sum(job.is_finished for job in jobs)
    out.document(
        {
            "tables": to_documents(_SIZES, sizes),
            "jobs": len(jobs),
            "jobs_finished": finished,
            "work_lists": to_documents(_WORK, lists),
        }
    )
    out.show(_SIZES, sizes)
    if lists:
        out.show(_WORK, lists)
    out.say(f"jobs: {len(jobs):,}, of which {finished:,} are finished")


@command()
def gc(run: CommandRun, url: Url) -> None:
    """Delete what interrupted drops have left.

    Examples:
      holdfast database gc sqlite:///var/lib/shop.db

    Works in small transactions. It is safe to interrupt, and several may run side by side.
    """
    database = open_given_database(run, url)
    with run.out.show_spinner("deleting cells"):
        deleted = database.collect()
    run.out.document({"url": database.url, "records": deleted})
    run.out.say(f"deleted {format_count(deleted, 'record')} of what was dropped" if deleted else "nothing to delete")
