"""Run the commands about jobs of computation units: ``jobs``, ``forget`` and ``watch``."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import parse_age, refuse_empty_value
from holdfast.cli.command import CommandRun, OutputForm, Url, argument, command, option
from holdfast.cli.database.rows import Table, cell_value_to_json, format_row_key, open_given_database, row_key_to_json
from holdfast.cli.output import ResultColumn, format_with_commas, time_text, to_document
from holdfast.wording import format_percent

if TYPE_CHECKING:
    from holdfast.units.report import JobReport, JobState
    from holdfast.units.watch import View

# --- jobs -------------------------------------------------------------------------------------------------------------
_JOB: tuple[ResultColumn, ...] = (
    ResultColumn("job", "job", lambda state: state.job.name),
    ResultColumn("kind", "kind", lambda state: state.job.kind),
    ResultColumn(
        "finished", "state", lambda state: state.job.is_finished, lambda one: "finished" if one else "not finished"
    ),
    ResultColumn(
        "share", "done", lambda state: state.share, lambda share: "-" if share is None else format_percent(share)
    ),
    ResultColumn("done", "units", lambda state: state.done, format_with_commas),
    ResultColumn("deferred", None, lambda state: state.deferred),
    ResultColumn("conflicts", None, lambda state: state.statistics.conflicts),
    ResultColumn(
        "conflict_share", "conflicts", lambda state: round(state.statistics.conflict_share, 6), "{:.1%}".format
    ),
    ResultColumn("tasks", None, lambda state: state.job.shards),
    ResultColumn("tasks_finished", None, lambda state: state.finished),
    ResultColumn("", "tasks", lambda state: f"{state.finished:,}/{state.job.shards:,}"),
    ResultColumn("began", "began", lambda state: time_text(state.job.began_s)),
    ResultColumn("ended", "ended", lambda state: None if state.job.ended_s is None else time_text(state.job.ended_s)),
)


@command(shape=OutputForm.LINES)
def jobs(
    run: CommandRun, url: Url, name: Annotated[str | None, argument(required=False, type=refuse_empty_value)]
) -> None:
    """List jobs with their progress, or show what the job NAME cost.

    Examples:
      holdfast database jobs sqlite:///var/lib/shop.db
      holdfast database jobs shop --json
      holdfast database jobs shop count

    A job that is not finished is running, or waits to be run again under its name. All jobs are shown as they were at
    one instant. An unfinished job on a work list has no percentage, because its units add more units.

    With NAME, the figures are shown in total and by task. A task's figures include all its attempts, as of its last
    commit; what an attempt did between its last commit and its death is not known. The times are those inside tasks;
    "other" is time in Holdfast itself and in waits.
    """
    from holdfast.units.jobs import list_jobs
    from holdfast.units.report import poll, read_job_state

    database = open_given_database(run, url)
    if name is not None:
        state = poll(database.backend, name)
        _show_job(run, state, state.report_at(database.environment.clock.now_s()))
        return
    with database.snapshot() as snapshot:
        found = [read_job_state(snapshot.reader, job) for job in list_jobs(snapshot.reader)]
    run.out.lines(_JOB, found, nothing="no jobs: they appear when units run")


def _show_job(run: CommandRun, state: JobState, report: JobReport) -> None:
    from holdfast.units.report import latency_text

    known = to_document(_JOB, state)
    run.out.line({**known, **report.to_json()})
    hidden = ("done", "conflict_share")
    shown = [one for one in _JOB if one.key and one.title and one.key not in hidden]
    rows = [(one.title or "", one.text(known[one.key])) for one in shown if known[one.key] is not None]
    run.out.table(["figure", "value"], [*rows, *report.summary()])
    columns = (
        ResultColumn("", "task", lambda one: one[0]),
        ResultColumn("", "units", lambda one: one[1].units, format_with_commas),
        ResultColumn("", "units/s", lambda one: one[1].units / one[1].run_s if one[1].run_s else 0.0, "{:,.0f}".format),
        ResultColumn("", "conflicts", lambda one: one[1].conflict_share, "{:.1%}".format),
        ResultColumn("", "repeated", lambda one: one[1].reruns, format_with_commas),
        ResultColumn("", "group", lambda one: one[1].group_size, "{:.1f}".format),
        ResultColumn("", "latency", lambda one: one[1].commit_latency_s, latency_text),
        ResultColumn("", "functions", lambda one: one[1].time_shares["functions"], "{:.0%}".format),
        ResultColumn("", "reads", lambda one: one[1].time_shares["reads"], "{:.0%}".format),
        ResultColumn("", "commits", lambda one: one[1].time_shares["commits"], "{:.0%}".format),
        ResultColumn("", "other", lambda one: one[1].time_shares["other"], "{:.0%}".format),
    )
    if report.tasks:
        run.out.show(columns, list(enumerate(report.tasks)))


@command()
def forget(run: CommandRun, url: Url, job: Annotated[str, argument(type=refuse_empty_value)]) -> None:
    """Delete the records of JOB, so that its name can be used again.

    Examples:
      holdfast database forget sqlite:///var/lib/shop.db count

    What the units of the job have written stays. A job that uses the name again runs all units again. Tasks of the old
    job that still run fail at their next commit, and so do drivers that still read its rows.
    """
    from holdfast.units.jobs import forget_job

    database = open_given_database(run, url)
    forget_job(database.backend, job, database.environment)
    run.out.document({"job": job, "forgotten": True})
    run.out.say(f"forgot the job {job}: what its units have written stays")


# --- watch ------------------------------------------------------------------------------------------------------------
@command(shape=OutputForm.LINES)
def watch(
    run: CommandRun,
    url: Url,
    table: Table,
    job: Annotated[
        str | None, option("--job", "The job that writes to the table.", type=refuse_empty_value, metavar="NAME")
    ],
    top: Annotated[int, option("--top", "How many rows to show.", type=click.IntRange(1, 10_000), default=10)],
    column: Annotated[str, option("--column", "The column with the values: numbers.", default="value")],
    every: Annotated[float, option("--every", "How often to look.", type=parse_age, default="1s")],
) -> None:
    """Show the largest values in TABLE while a job writes to it.

    Examples:
      holdfast database watch sqlite:///var/lib/shop.db words --job count
      holdfast database watch shop words --job count --top 20 --every 5s
      holdfast database watch shop words --job count --json | tail -n 1

    Every view is one snapshot of the table, and the job does not wait for it. The last view shows the finished job;
    Ctrl-C ends the command at any time.
    """
    from holdfast.units.watch import watch as views_of

    out = run.out
    views = views_of(open_given_database(run, url), table, job=job, top=top, column=column, every_s=every)
    with out.show_spinner("reading the table"):
        views = itertools.chain([next(views)], views)
    for view in views:
        out.line(_watch_view_to_json(view))
        out.say(f"{replace(view, top=())}")
        out.table(["row", "value"], [(format_row_key(one.row), f"{one.value:,}") for one in view.top], right=["value"])
        out.say("")


def _watch_view_to_json(view: View) -> dict[str, object]:
    """Return a view for programs."""
    found: dict[str, object] = {
        "rows": view.rows,
        "sum": cell_value_to_json(view.sum),
        "top": [{"row": row_key_to_json(one.row), "value": cell_value_to_json(one.value)} for one in view.top],
    }
    state = view.state
    if state is None:
        return found
    return {
        **found,
        "job": state.job.name,
        "done": view.done,
        "deferred": state.deferred,
        "units": view.units,
        "share": view.share,
        "tasks": state.job.shards,
        "tasks_finished": state.finished,
        "units_per_s": view.units_per_s,
        "ends_in_s": view.ends_in_s,
        "is_final": view.is_final,
    }
