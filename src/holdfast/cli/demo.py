"""Run ``holdfast demo``: write real data while tasks and the driver are killed, and check every row."""

from __future__ import annotations

import click

from holdfast.cli.arguments import Word, reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output

_EPILOG = """\b
Examples:
  holdfast demo
  holdfast demo --scenario c
  holdfast demo --keep --json

\b
Scenarios:
  a  a write without failures
  b  one task attempt is killed while writing, another fails after its upload
  c  the driver is killed during the job commit; holdfast recover runs

The exit code is 1 if a row is missing or duplicated, a file was visible too early, or an upload is still pending."""


@click.command(epilog=_EPILOG)
@click.option(
    "--scenario",
    "scenarios",
    type=Word(["a", "b", "c"]),
    multiple=True,
    help="Run only this scenario; repeatable.  [default: all]",
)
@click.option("--keep", is_flag=True, help="Keep the server's data and the logs, and print where they are.")
@reports
def demo(scenarios: tuple[str, ...], keep: bool, out: Output) -> None:
    """Watch real data arrive exactly once although tasks and the driver are killed.

    Spark writes 336,776 flights to a bucket on an S3 server that the demo starts on this machine. Takes about a minute.
    Requires pip install 'holdfast[demo]' and Java 17 or newer.
    """
    from holdfast.demo import run_demo

    with out.waiting("starting", lines=True) as stage:
        report = run_demo(scenarios or ("a", "b", "c"), keep=keep, tell=stage)
    out.document(report.as_document())
    out.say(report.title)
    out.table(report.COLUMNS, report.rows(), right=report.COLUMNS[2:])
    for line in report.story():
        out.say(line)
    if report.kept_in:
        out.note(f"kept: {report.kept_in}")
    if not report.verified:
        for problem in report.problems():
            out.note(f"error: {problem}")
        raise click.exceptions.Exit(PROBLEM)
    out.say("verified")
