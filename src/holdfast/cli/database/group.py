"""Define the command group ``holdfast database``."""

from __future__ import annotations

from collections.abc import Mapping

import click

from holdfast.cli.command import CommandGroup

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "create": ("database.create", "Create a table; prepare the database if that is new."),
    "ls": ("database.ls", "List the tables, or the rows of a table."),
    "get": ("database.get", "Print the value of a cell."),
    "put": ("database.put", "Write a cell."),
    "delete": ("database.delete", "Delete a row, or one cell of it."),
    "scan": ("database.scan", "Show rows with their values."),
    "history": ("database.history", "Show the earlier values of a cell."),
    "export": ("database.export", "Write a table to a file: JSON lines, CSV or Parquet."),
    "drop": ("database.drop", "Drop a table."),
    "watch": ("database.watch", "Show the largest values of a table while units write to it."),
    "jobs": ("database.jobs", "List the jobs of computation units, and how far they are."),
    "job": ("database.job", "Show what a job has cost, by task and in all."),
    "forget": ("database.forget", "Delete what is known of a job."),
    "stats": ("database.stats", "Count rows, cells and bytes, jobs and work lists."),
    "gc": ("database.gc", "Delete what interrupted drops have left."),
}
"""The commands in order of use; see `CommandGroup`."""

_EPILOG = """\b
Examples:
  holdfast database create sqlite:///var/lib/shop.db stock
  holdfast database put sqlite:///var/lib/shop.db stock apples 5 --type int
  holdfast database scan sqlite:///var/lib/shop.db stock

A URL is that of a database: sqlite:///file, postgresql://user@host/database or mysql://user@host/database. A password
does not belong on a command line: set the variable HOLDFAST_DATABASE_<NAME> to the whole URL, and give NAME in its
place."""


@click.group(cls=CommandGroup, sections={"Commands": _COMMANDS}, epilog=_EPILOG)
def database() -> None:
    """Work with tables of typed cells in a database, which computation units share."""
