"""Run ``holdfast store forget``: delete the records of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import filled
from holdfast.cli.output import Output
from holdfast.cli.store.session import on_store_of_tables

if TYPE_CHECKING:
    from holdfast.records import Store

_EPILOG = """\b
Examples:
  holdfast store forget sqlite:///var/lib/shop.db count

What the units of the job have written stays. The name can be used again: then all units run again. Tasks of the job
that still run fail with their next commit."""


@click.command(epilog=_EPILOG)
@on_store_of_tables
@click.argument("job", type=filled)
def forget(store: Store, job: str, out: Output) -> None:
    """Delete what is known of JOB: how far it is, and its figures."""
    from holdfast.units.jobs import forget_job

    forget_job(store.database, job, store.environment)
    out.document({"job": job, "forgotten": True})
    out.say(f"forgot the job {job}: what its units have written stays")
