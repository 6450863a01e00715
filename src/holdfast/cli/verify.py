"""Run ``holdfast verify``: compare a destination with its decision log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, on_store, reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output, size
from holdfast.errors import InvalidRequestError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.commit import CommitContext

_EPILOG = """\b
Examples:
  holdfast verify s3://bucket/flights
  holdfast verify s3://bucket/flights --read
  holdfast verify ./flights --json | jq .verified

The exit code is 1 if anything does not match. This command changes nothing and is safe while jobs are running."""


@click.command(epilog=_EPILOG)
@click.argument("url")
@click.option(
    "--read",
    is_flag=True,
    help="Also read the files, and compare them with the checksums that were computed when they were written.",
)
@on_store
@reports
def verify(url: str, read: bool, reach: Reach, out: Output) -> None:
    """Compare the files at URL with what was committed.

    The listing must show exactly the files and sizes that the decision log names, and no files of aborted or undecided
    jobs; _SUCCESS must belong to the last job. With --read, the bytes of each file must be those that were committed.
    """
    from holdfast.cli.destination_checks import require_history
    from holdfast.commit import verify as compare

    with out.progress() as progress, reach.open(url, progress) as ctx:
        try:
            require_history(ctx)
        except InvalidRequestError:
            _note_hadoop_jobs(ctx, out)
            raise
        report = compare(ctx, read=read)
    totals = report.totals
    out.document(
        {
            "url": ctx.url,
            "verified": report.verified,
            "jobs": report.jobs,
            "files": totals.files,
            "bytes": totals.size_bytes,
            "pending_uploads": report.pending_uploads,
            "files_read": report.files_read,
            "without_checksum": report.without_checksum,
            "problems": report.problems,
            "notes": report.notes,
        }
    )
    for problem in report.problems:
        out.say(f"problem: {problem}")
    for note in report.notes:
        out.say(f"note: {note}")
    what = f"{counted(totals.files, 'file')}, {size(totals.size_bytes)}, of {counted(report.jobs, 'job')}"
    if read:
        what += f"; {counted(report.files_read, 'file')} read"
    if not report.verified:
        out.say(f"NOT verified: {counted(len(report.problems), 'problem')} in {ctx.url} ({what})")
        raise click.exceptions.Exit(PROBLEM)
    out.say(f"verified: {ctx.url} ({what})")


def _note_hadoop_jobs(ctx: CommitContext, out: Output) -> None:
    """Report unfinished jobs of Hadoop's committers, which may explain files at a destination without a log."""
    from holdfast.commit.hadoop_jobs import describe, find_hadoop_jobs

    for found in find_hadoop_jobs(ctx):
        if not found.is_over:
            out.note(describe(found.leftover))
