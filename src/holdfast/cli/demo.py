"""Run ``holdfast demo``: write real data while tasks and the driver are killed, and check every row."""

from __future__ import annotations

import click

from holdfast.cli.arguments import reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output

_EPILOG = """\b
Examples:
  holdfast demo
  holdfast demo --keep --json

\b
What goes wrong:
  a task attempt is killed while it writes, another one fails after its upload,
  and the driver is killed during the job commit; then holdfast recover runs

The exit code is 1 if a row is missing or duplicated, a file was visible too early, or an upload is still pending."""


@click.command(epilog=_EPILOG)
@click.option("--keep", is_flag=True, help="Keep the server's data and the logs, and print where they are.")
@reports
def demo(keep: bool, out: Output) -> None:
    """Watch real data arrive exactly once although tasks and the driver are killed.

    Spark writes 336,776 flights to a bucket on an S3 server that the demo starts on this machine. Takes half a minute.
    Requires pip install 'holdfast[demo]' and Java 17 or newer.
    """
    from holdfast.demo.run import demo_folder, run_demo

    with demo_folder(keep) as folder:
        with out.waiting("starting", lines=True) as stage:
            report = run_demo(folder, stage)
        out.document({"verified": report.verified, **vars(report), "kept_in": str(folder) if keep else None})
        for event in report.events:
            out.say(event)
        if keep:
            out.note(f"kept: {folder}")
    if not report.verified:
        for problem in report.problems:
            out.note(f"error: {problem}")
        raise click.exceptions.Exit(PROBLEM)
    out.say("verified")
