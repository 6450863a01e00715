"""Define the command group ``holdfast store``."""

from __future__ import annotations

from collections.abc import Mapping

import click

from holdfast.cli.command_group import CommandGroup

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "create": ("store.create", "Create a table, and the database's own tables if it has none."),
    "ls": ("store.ls", "List the tables, or the rows of a table."),
    "get": ("store.get", "Print the value of a cell."),
    "put": ("store.put", "Write a cell."),
    "delete": ("store.delete", "Delete a row, or one cell of it."),
    "scan": ("store.scan", "Show rows with their values."),
    "history": ("store.history", "Show the earlier values of a cell."),
    "export": ("store.export", "Write a table to a file: JSON lines, CSV or Parquet."),
    "drop": ("store.drop", "Drop a table."),
    "watch": ("store.watch", "Show the largest values of a table while units write to it."),
    "jobs": ("store.jobs", "List the jobs of computation units, and how far they are."),
    "job": ("store.job", "Show what a job has cost, by task and in all."),
    "forget": ("store.forget", "Delete what is known of a job."),
    "stats": ("store.stats", "Count rows, cells and bytes, jobs and work lists."),
    "gc": ("store.gc", "Delete what interrupted drops have left."),
}
"""The commands in order of use; see `CommandGroup`."""

_EPILOG = """\b
Examples:
  holdfast store create sqlite:///var/lib/shop.db stock
  holdfast store put sqlite:///var/lib/shop.db stock apples 5 --type int
  holdfast store scan sqlite:///var/lib/shop.db stock

A URL is that of a database: sqlite:///file, postgresql://user@host/database or mysql://user@host/database. A password
does not belong on a command line: set the variable HOLDFAST_STORE_<NAME> to the whole URL, and give NAME in its
place."""


@click.group(cls=CommandGroup, table=_COMMANDS, epilog=_EPILOG)
def store() -> None:
    """Work with tables of typed cells in a database, which computation units share."""
