"""Run ``holdfast history``: list the decided and the undecided jobs of a destination."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, on_store, reports
from holdfast.cli.output import Output, duration, size, when
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.commit import Decision

_EPILOG = """\b
Examples:
  holdfast history s3://bucket/flights
  holdfast history s3://bucket/flights -n 5 --json"""

_STATES = {
    ("commit", "done"): "committed",
    ("commit", "visible"): "committed, cleanup pending",
    ("commit", "decided"): "committed, not visible yet",
    ("abort", "done"): "aborted",
}


@click.command(epilog=_EPILOG)
@click.argument("url")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Number of decisions to show."
)
@on_store
@reports
def history(url: str, limit: int, reach: Reach, out: Output) -> None:
    """Show the latest committed and aborted jobs at URL, and the undecided ones."""
    from holdfast.cli.destination_checks import require_history

    with reach.open(url) as ctx, out.waiting("reading the decision log"):
        found = require_history(ctx)
    newest = found.decisions[-limit:]
    now_s = ctx.clock.now_s()
    open_jobs = [
        {
            "job": job.job,
            "mode": job.record.mode.value if job.record else None,
            "started_at": when(job.record.started_at_s) if job.record else None,
            "quiet_s": round(now_s - job.active_at_s, 1),
            "task_attempts_reported": job.manifests,
        }
        for job in found.open_jobs
    ]
    out.document({"url": ctx.url, "decisions": [_fields(one) for one in newest], "undecided": open_jobs})
    if newest:
        streams = any(one.entry.record.stream for one in newest)
        out.table(
            ["#", "job", "outcome", "mode", *(["stream, batch"] if streams else []), "files", "rows", "size"],
            [_row(one, streams) for one in newest],
            right=["#", "files", "rows", "size"],
        )
    hidden = len(found.decisions) - len(newest)
    if hidden:
        out.say(f"not shown: {counted(hidden, 'older decision')}, see --limit")
    for job in found.open_jobs:
        quiet = duration(now_s - job.active_at_s)
        out.say(
            f"undecided: job {job.job}, last write {quiet} ago: still running, or dead (then run holdfast recover "
            f"{ctx.url}; --older-than 0s ends it at once, and every other undecided job)"
        )
    if any(one.state != "done" for one in found.decisions):
        out.say(f"some jobs are decided but not finished: run holdfast recover {ctx.url}")
    if not found.decisions and not found.open_jobs:
        out.say("no job was ever committed or aborted here")


def _outcome(decision: Decision) -> str:
    return _STATES.get((decision.entry.kind.value, decision.state), "aborted, cleanup pending")


def _fields(decision: Decision) -> dict[str, object]:
    entry = decision.entry
    return {
        "seq": entry.seq,
        "job": entry.job,
        "kind": entry.kind.value,
        "state": decision.state,
        "mode": entry.record.mode.value,
        "committer": entry.record.committer,
        "started_at": when(entry.record.started_at_s),
        "decided_at": when(entry.decided_at_s),
        "tasks": entry.tasks,
        "files": entry.totals.files,
        "rows": entry.totals.rows,
        "bytes": entry.totals.size_bytes,
        "stream": entry.record.stream.stream if entry.record.stream else None,
        "batch": entry.record.stream.batch if entry.record.stream else None,
    }


def _row(decision: Decision, streams: bool) -> tuple[str, ...]:
    entry = decision.entry
    batch = entry.record.stream
    totals = entry.totals
    counts = (f"{totals.files:,}", f"{totals.rows:,}", size(totals.size_bytes)) if entry.manifests else ("", "", "")
    which = (f"{batch.stream}, {batch.batch}" if batch else "",) if streams else ()
    return (str(entry.seq), entry.job, _outcome(decision), entry.record.mode.value, *which, *counts)
