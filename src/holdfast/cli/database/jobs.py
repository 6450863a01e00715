"""Run ``holdfast database jobs``: list the jobs of computation units in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.database.session import lists_from_database
from holdfast.cli.output import Output, when
from holdfast.wording import percent

if TYPE_CHECKING:
    from holdfast.records import Database
    from holdfast.units.job_state import JobState

_EPILOG = """\b
Examples:
  holdfast database jobs sqlite:///var/lib/shop.db
  holdfast database jobs shop --json

A job that is not finished either runs, or waits to be run again with its name. All jobs are shown as they were at one
instant. The share of a work list is not known, because units add units."""


@click.command(epilog=_EPILOG)
@lists_from_database
def jobs(database: Database, out: Output) -> None:
    """List the jobs of the database at URL, and how far each of them is."""
    from holdfast.units.job_state import state_of
    from holdfast.units.jobs import list_jobs

    with database.snapshot() as snapshot:
        found = [state_of(snapshot.reader, job) for job in list_jobs(snapshot.reader)]
    for state in found:
        out.line(_form(state))
    if found:
        columns = ["job", "kind", "state", "done", "units", "conflicts", "tasks", "began", "ended"]
        out.table(columns, map(_row, found), right=["done", "units", "conflicts", "tasks"])
    else:
        out.say("no jobs: they appear when units run")


def _form(state: JobState) -> dict[str, object]:
    job = state.job
    return {
        "job": job.name,
        "kind": job.kind,
        "finished": job.is_finished,
        "share": state.share(),
        "done": state.done,
        "deferred": state.deferred,
        "conflicts": state.statistics.conflicts,
        "conflict_share": round(state.statistics.conflict_share, 6),
        "tasks": job.shards,
        "tasks_finished": state.finished,
        "began": when(job.began_s),
        "ended": None if job.ended_s is None else when(job.ended_s),
    }


def _row(state: JobState) -> list[str]:
    job, share = state.job, state.share()
    return [
        job.name,
        job.kind,
        "finished" if job.is_finished else "not finished",
        "-" if share is None else percent(share),
        f"{state.done:,}",
        f"{state.statistics.conflict_share:.1%}",
        f"{state.finished:,}/{job.shards:,}",
        when(job.began_s),
        "-" if job.ended_s is None else when(job.ended_s),
    ]
