"""``holdfast recover``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, age, on_store, reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output, counted, duration

if TYPE_CHECKING:
    from holdfast.commit import RecoveryReport

__all__ = ["recover"]

_EPILOG = """\b
Examples:
  holdfast recover s3://bucket/flights --dry-run
  holdfast recover s3://bucket/flights
  holdfast recover s3://bucket/flights --older-than 0s

Jobs whose decision is in the log are finished at once, whatever their age. An undecided job may be alive: it is aborted
only if it has been quiet for --older-than. One that was alive all the same fails cleanly. Exit code 1 if something is
damaged and needs you. Safe to run at any time, and again."""


@click.command(epilog=_EPILOG)
@click.argument("url")
@click.option(
    "--older-than",
    type=age,
    default="1h",
    show_default=True,
    help="Abort undecided jobs that have been quiet for this long: 0s for all, e.g. 15m, 1h, 2d.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--accept-damage", is_flag=True, help="Finish committed jobs although files of theirs are lost.")
@on_store
@reports
def recover(url: str, older_than: float, dry_run: bool, accept_damage: bool, reach: Reach, out: Output) -> None:
    """End every job of URL that died half way.

    Afterwards each decided job is wholly there or wholly absent, and no upload of theirs is pending.
    """
    from holdfast.cli.presence import require_anything
    from holdfast.commit import recover as end_jobs

    with out.progress() as progress, reach.open(url, progress) as ctx:
        require_anything(ctx)
        report = end_jobs(ctx, older_than_s=older_than, dry_run=dry_run, accept_damage=accept_damage)
    out.document(
        {
            "url": ctx.url,
            "dry_run": dry_run,
            "rolled_forward": report.rolled_forward,
            "rolled_back": report.rolled_back,
            "left_alone": report.left_alone,
            "damaged": report.damaged,
            "uploads_aborted": report.uploads_aborted,
            "folders_removed": report.folders_removed,
        }
    )
    _tell(report, older_than, dry_run, ctx.url, out)
    if not report.clean:
        raise click.exceptions.Exit(PROBLEM)


def _tell(report: RecoveryReport, older_than_s: float, dry_run: bool, url: str, out: Output) -> None:
    finished, aborted = ("would be finished", "would be aborted") if dry_run else ("finished", "aborted")
    for job in report.rolled_forward:
        out.say(f"{finished}: committed job {job}; all of its files are there")
    for job in report.rolled_back:
        out.say(f"{aborted}: job {job}; nothing of it is there")
    for job in report.left_alone:
        out.say(
            f"left alone: undecided job {job}, it wrote something in the last {duration(older_than_s)}; "
            f"if it is dead: holdfast recover {url} --older-than 0s"
        )
    for what, sentence in report.damaged.items():
        out.say(f"damaged: {what}: {sentence}")
    if report.uploads_aborted or report.folders_removed:
        removed = f"{counted(report.uploads_aborted, 'upload')}, {counted(report.folders_removed, 'folder')}"
        out.say(f"leftovers of finished jobs removed: {removed}")
    elif not (report.rolled_forward or report.rolled_back or report.left_alone or report.damaged):
        out.say("nothing to do: every job is finished")
