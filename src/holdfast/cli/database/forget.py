"""Run ``holdfast database forget``: delete the records of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import filled
from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output

if TYPE_CHECKING:
    from holdfast.records import Database

_EPILOG = """\b
Examples:
  holdfast database forget sqlite:///var/lib/shop.db count

What the units of the job have written stays. The name can be used again: then all units run again. Tasks of the job
that still run fail with their next commit."""


@click.command(epilog=_EPILOG)
@on_database
@click.argument("job", type=filled)
def forget(database: Database, job: str, out: Output) -> None:
    """Delete what is known of JOB: how far it is, and its figures."""
    from holdfast.units.jobs import forget_job

    forget_job(database.backend, job, database.environment)
    out.document({"job": job, "forgotten": True})
    out.say(f"forgot the job {job}: what its units have written stays")
