"""Run ``holdfast database job``: show what a job of computation units has cost, by task and in all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import filled
from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output, when
from holdfast.wording import percent

if TYPE_CHECKING:
    from holdfast.records import Database
    from holdfast.units.job_state import JobState
    from holdfast.units.report import JobReport
    from holdfast.units.statistics import Statistics

_EPILOG = """\b
Examples:
  holdfast database job sqlite:///var/lib/shop.db count
  holdfast database job shop count --plot count.png

The figures of a task are those of all its attempts, as of its last commit; what an attempt did between its last commit
and its death is not known. The times are those inside tasks; "other" is what passes in Holdfast and in waits. --plot
needs matplotlib."""


@click.command(epilog=_EPILOG)
@on_database
@click.argument("name", type=filled)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also draw the figures: a PNG file."
)
def job(database: Database, name: str, plot: Path | None, out: Output) -> None:
    """Show rates, conflicts, latencies and times of the job NAME."""
    from holdfast.units.job_state import poll

    state = poll(database.backend, name)
    report = state.report_at(database.environment.clock.now_s())
    if plot is not None:
        from holdfast.cli.database.job_plot import write_plot

        write_plot(report, plot)
    out.document(_form(state, report))
    share = state.share()
    rows = [
        ("job", f"{state.job.name}, {state.job.kind}"),
        ("state", "finished" if state.job.is_finished else "not finished"),
        ("began", when(state.job.began_s)),
        *([] if state.job.ended_s is None else [("ended", when(state.job.ended_s))]),
        *([] if share is None or state.job.is_finished else [("done", percent(share))]),
        *report.summary(),
    ]
    out.table(["figure", "value"], rows)
    if report.tasks:
        out.table(_COLUMNS, [_row(number, task) for number, task in enumerate(report.tasks)], right=_COLUMNS)


def _form(state: JobState, report: JobReport) -> dict[str, object]:
    return {
        **report.to_json(),
        "finished": state.job.is_finished,
        "share": state.share(),
        "done": state.done,
        "deferred": state.deferred,
        "tasks_finished": state.finished,
        "began": when(state.job.began_s),
        "ended": None if state.job.ended_s is None else when(state.job.ended_s),
    }


_COLUMNS = [
    *("task", "units", "units/s", "conflicts", "repeated", "group", "p50", "p99"),
    *("functions", "reads", "commits", "other"),
]


def _row(number: int, task: Statistics) -> list[str]:
    from holdfast.units.report import TimeShares, latency_text

    shares = TimeShares.of(task)
    return [
        str(number),
        f"{task.units:,}",
        f"{task.units / task.run_s:,.0f}" if task.run_s else "-",
        f"{task.conflict_share:.1%}",
        f"{task.reruns:,}",
        f"{task.group_size:.1f}",
        latency_text(task.commits.quantile_s(0.5)),
        latency_text(task.commits.quantile_s(0.99)),
        f"{shares.functions:.0%}",
        f"{shares.reads:.0%}",
        f"{shares.commits:.0%}",
        f"{shares.rest:.0%}",
    ]
