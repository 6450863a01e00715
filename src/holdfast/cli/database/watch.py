"""Run ``holdfast database watch``: show the largest values of a table while units write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import age, filled
from holdfast.cli.database.session import lists_from_database
from holdfast.cli.output import Output

if TYPE_CHECKING:
    from holdfast.records import Database

_EPILOG = """\b
Examples:
  holdfast database watch sqlite:///var/lib/shop.db words --job count
  holdfast database watch shop words --job count --top 20 --every 5s
  holdfast database watch shop words --job count --json | tail -n 1

Every view is read at one instant, and no unit waits for it. It ends when the job is finished; Ctrl-C ends it at any
time. The values expected at the end take the units that are done for a sample of all units; with 95 % probability all
of them are within their limits. That is wrong if the input is sorted by what it contains: the view says so if it shows.
Without a terminal, each view is a line, and the last one a table."""


@click.command(epilog=_EPILOG)
@lists_from_database
@click.argument("table")
@click.option("--job", type=filled, metavar="NAME", help="The job that writes to the table.")
@click.option("--top", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many rows to show.")
@click.option("--column", default="value", show_default=True, help="The column with the values: numbers.")
@click.option("--every", type=age, default="1s", show_default=True, metavar="AGE", help="How often to look.")
@click.option("--units", type=click.IntRange(min=0), help="How many units the job has, if you know it.")
@click.option(
    "--wait", type=age, default="1m", show_default=True, metavar="AGE", help="How long to wait for the job to begin."
)
def watch(
    database: Database,
    table: str,
    job: str | None,
    top: int,
    column: str,
    every: float,
    units: int | None,
    wait: float,
    out: Output,
) -> None:
    """Show the largest values in TABLE while units write to it, and what they will be at the end."""
    from holdfast.cli.database.views import view_form, view_line, view_table
    from holdfast.units.aggregation import watch as views_of

    views = views_of(database, table, job=job, top=top, column=column, every_s=every, units=units, begin_within_s=wait)
    with out.waiting("reading the table" if job is None else f"waiting for the job {job}"):
        view = next(views)
    if out.json:
        out.line(view_form(view))
        for view in views:
            out.line(view_form(view))
        return
    if not out.is_live:
        out.say(view_line(view))
        for view in views:
            out.say(view_line(view))
        shown = view_table(view, table, column)
        out.table(shown.columns, shown.rows, right=shown.columns[1:])
        return
    with out.live() as show:
        show(view_table(view, table, column))
        for view in views:
            show(view_table(view, table, column))
