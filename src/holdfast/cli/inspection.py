"""Run ``holdfast history``, ``verify`` and ``show``: what was written, whether it is all there, and how that went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.command import CommandRun, ResourceKind, Url, argument, command, option
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import (
    Output,
    ResultColumn,
    duration_text,
    format_json_value,
    format_with_commas,
    size_text,
    time_text,
    to_documents,
)
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.wording import format_count

if TYPE_CHECKING:
    from holdfast.commit import CommitContext
    from holdfast.commit.two_phase.recovery import Decision, History

NO_LOG = (
    "there is no decision log here: the data was not written by Holdfast, or with a committer that keeps no log: see "
    "its _SUCCESS, or give the url of the directory that was written to"
)
EMPTY = "there are no files at this url either: check its spelling"
"""What is said about a place without what was looked for."""


# --- is there anything? -----------------------------------------------------------------------------------------------
def has_no_objects_or_uploads(ctx: CommitContext) -> bool:
    """Check whether the destination contains neither an object nor a pending upload."""
    from holdfast.stores.base import iter_objects, iter_uploads, multipart

    if next(iter_objects(ctx.store, ctx.prefix, page_size=2), None) is not None:
        return False
    return ctx.store.capabilities.multipart is None or not any(iter_uploads(multipart(ctx.store), ctx.prefix))


def require_nonempty(ctx: CommitContext) -> None:
    """Check that a destination contains something, so that a mistyped url is not reported as healthy.

    Raises:
        NotFoundError: the destination is empty: check the url.
        InvalidRequestError: the destination is a file.
    """
    if not has_no_objects_or_uploads(ctx):
        return
    if ctx.prefix:
        try:
            ctx.store.head(ctx.prefix.rstrip("/"))
        except NotFoundError:
            pass
        else:
            raise InvalidRequestError("this is a file: name the directory that holds it", url=ctx.url)
    raise NotFoundError("there is nothing at this url: check its spelling", url=ctx.url)


def _require_history(ctx: CommitContext) -> History:
    """Read the history of a destination that Holdfast has written to.

    Raises:
        NotFoundError: the destination is empty.
        InvalidRequestError: the destination holds data but no decision log.
    """
    from holdfast.commit import read_history
    from holdfast.commit.layout import iter_visible

    history = read_history(ctx)
    if not history.decisions and not history.open_jobs:
        require_nonempty(ctx)
        if next(iter_visible(ctx.store, ctx.prefix), None) is not None:
            raise InvalidRequestError(NO_LOG, url=ctx.url)
    return history


# --- history ----------------------------------------------------------------------------------------------------------
_STATES = {
    ("commit", "done"): "committed",
    ("commit", "visible"): "committed, cleanup pending",
    ("commit", "decided"): "committed, not visible yet",
    ("abort", "done"): "aborted",
}


def _format_stream_batch(decision: Decision) -> str:
    batch = decision.entry.record.stream
    return f"{batch.stream}, {batch.batch}" if batch else ""


_STREAM = ResultColumn("", "stream, batch", _format_stream_batch)
_DECISION: tuple[ResultColumn, ...] = (
    ResultColumn("seq", "#", lambda one: one.entry.seq),
    ResultColumn("job", "job", lambda one: one.entry.job),
    ResultColumn("kind", None, lambda one: one.entry.kind.value),
    ResultColumn("state", None, lambda one: one.state),
    ResultColumn("", "outcome", lambda one: _STATES.get((one.entry.kind.value, one.state), "aborted, cleanup pending")),
    ResultColumn("mode", "mode", lambda one: one.entry.record.mode.value),
    ResultColumn("committer", None, lambda one: one.entry.record.committer),
    ResultColumn("started_at", None, lambda one: time_text(one.entry.record.started_at_s)),
    ResultColumn("decided_at", None, lambda one: time_text(one.entry.decided_at_s)),
    ResultColumn("tasks", None, lambda one: one.entry.tasks),
    ResultColumn("files", "files", lambda one: one.entry.totals.files, format_with_commas),
    ResultColumn("rows", "rows", lambda one: one.entry.totals.rows, format_with_commas),
    ResultColumn("bytes", "size", lambda one: one.entry.totals.size_bytes, size_text),
    ResultColumn("stream", None, lambda one: one.entry.record.stream.stream if one.entry.record.stream else None),
    ResultColumn("batch", None, lambda one: one.entry.record.stream.batch if one.entry.record.stream else None),
)


@command(ResourceKind.STORES)
def history(
    run: CommandRun,
    url: Url,
    limit: Annotated[int, option("-n --limit", "Decisions to show.", type=click.IntRange(min=1), default=20)],
) -> None:
    """Show committed, aborted and undecided jobs.

    Examples:
      holdfast history s3://bucket/flights
      holdfast history s3://bucket/flights -n 5 --json
    """
    out = run.out
    with run.reach.open(url) as ctx, out.show_spinner("reading the decision log"):
        found = _require_history(ctx)
    newest = found.decisions[-limit:]
    now_s = ctx.clock.now_s()
    undecided = (
        ResultColumn("job", None, lambda job: job.job),
        ResultColumn("mode", None, lambda job: job.record.mode.value if job.record else None),
        ResultColumn("started_at", None, lambda job: time_text(job.record.started_at_s) if job.record else None),
        ResultColumn("quiet_s", None, lambda job: round(now_s - job.active_at_s, 1)),
        ResultColumn("task_attempts_reported", None, lambda job: job.manifests),
    )
    decisions = to_documents(_DECISION, newest)
    out.document({"url": ctx.url, "decisions": decisions, "undecided": to_documents(undecided, found.open_jobs)})
    if newest:
        streams = any(one.entry.record.stream for one in newest)
        out.show([*_DECISION[:6], *([_STREAM] if streams else []), *_DECISION[6:]], newest)
    hidden = len(found.decisions) - len(newest)
    if hidden:
        out.say(f"not shown: {format_count(hidden, 'older decision')}, see --limit")
    for job in found.open_jobs:
        quiet = duration_text(now_s - job.active_at_s)
        out.say(
            f"undecided: job {job.job}, last write {quiet} ago: still running, or dead (then run holdfast recover "
            f"{ctx.url}; --older-than 0s ends it at once, and every other undecided job)"
        )
    if any(one.state != "done" for one in found.decisions):
        out.say(f"some jobs are decided but not finished: run holdfast recover {ctx.url}")
    if not found.decisions and not found.open_jobs:
        out.say("no job was ever committed or aborted here")


# --- verify -----------------------------------------------------------------------------------------------------------
@command(ResourceKind.STORES)
def verify(
    run: CommandRun,
    url: Url,
    read: Annotated[bool, option("--read", "Also compare the bytes of the files with the checksums of the log.")],
) -> None:
    """Compare the files at URL with what was committed.

    The listing must show exactly the files and sizes that the decision log names, and no files of aborted or undecided
    jobs; _SUCCESS must belong to the last job. With --read, the bytes of each file must be those that were committed.

    Examples:
      holdfast verify s3://bucket/flights
      holdfast verify s3://bucket/flights --read
      holdfast verify ./flights --json | jq .verified

    The exit code is 1 if anything does not match. This command changes nothing and is safe while jobs are running.
    """
    from holdfast.commit import verify as compare

    out = run.out
    with out.progress() as progress, run.reach.open(url, progress) as ctx:
        try:
            _require_history(ctx)
        except InvalidRequestError:
            _report_hadoop_jobs(ctx, out)
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
    for kind, sentences in (("problem", report.problems), ("note", report.notes)):
        for sentence in sentences:
            out.say(f"{kind}: {sentence}")
    what = (
        f"{format_count(totals.files, 'file')}, {size_text(totals.size_bytes)}, of {format_count(report.jobs, 'job')}"
    )
    if read:
        what += f"; {format_count(report.files_read, 'file')} read"
    if not report.verified:
        out.say(f"NOT verified: {format_count(len(report.problems), 'problem')} in {ctx.url} ({what})")
        raise click.exceptions.Exit(PROBLEM)
    out.say(f"verified: {ctx.url} ({what})")


def _report_hadoop_jobs(ctx: CommitContext, out: Output) -> None:
    """Report unfinished jobs of Hadoop's committers, which may explain files at a destination without a log."""
    from holdfast.commit.registry import FOREIGN

    for system in FOREIGN:
        for found in system.find(ctx, False, False):
            if not found.is_over:
                out.note(system.describe(found.leftover))


# --- show -------------------------------------------------------------------------------------------------------------
_SPENT = (
    ResultColumn("", "stage or operation", lambda one: one[0]),
    ResultColumn("", "count", lambda one: one[1].count, format_with_commas),
    ResultColumn("", "failed", lambda one: one[1].failures, format_with_commas),
    ResultColumn("", "least ms", lambda one: one[1].min_ms, format_with_commas),
    ResultColumn("", "most ms", lambda one: one[1].max_ms, format_with_commas),
    ResultColumn("", "total ms", lambda one: one[1].total_ms, format_with_commas),
)


@command(ResourceKind.STORES)
def show(run: CommandRun, where: Annotated[str, argument("URL_OR_FILE")]) -> None:
    """Show the report of the last job: counts, durations, requests.

    Examples:
      holdfast show s3://bucket/flights
      holdfast show ./downloaded/_SUCCESS
      holdfast show ./reports/summary-20260102030405678-0123456789ab.json --json

    Reads _SUCCESS and the reports of all committers, also Hadoop's own. Counters that are 0 are left out, except with
    --json.
    """
    from holdfast.commit.statistics import decode_statistics
    from holdfast.commit.success_file import parse_success_file

    out = run.out
    report = parse_success_file(*_load_report(run.store(where)))
    out.document({"report": report or None})
    if not report:
        out.say("an empty _SUCCESS: a job of Hadoop's file committer succeeded, without a report")
        return
    for title, found in (("report", report), *((name, report.get(name)) for name in ("metrics", "diagnostics"))):
        if isinstance(found, dict):
            plain = [
                (name, format_json_value(one)) for name, one in found.items() if isinstance(one, str | int | float)
            ]
            out.table([title, ""], [one for one in plain if one[1]])
    try:
        statistics = decode_statistics(report.get("iostatistics"))
    except ValueError as error:
        out.note(f"the statistics of the report cannot be read: {error}")
        return
    stages_first = sorted(statistics.durations.items(), key=lambda item: ("_stage_" not in item[0], item[0]))
    out.show(_SPENT, stages_first)
    out.table(
        ["counter", ""],
        [(name, format_with_commas(number)) for name, number in sorted(statistics.counters.items()) if number],
    )


def _load_report(ctx: CommitContext) -> tuple[str, bytes]:
    """Return key and bytes of a report: of the object at the URL itself, or of the _SUCCESS below it."""
    for key in (ctx.prefix.rstrip("/"), ctx.key("_SUCCESS")):
        try:
            return key, ctx.store.get(key)
        except (NotFoundError, InvalidRequestError):
            continue
    raise NotFoundError("no report here: give the URL of a destination, of its _SUCCESS or of a report", url=ctx.url)
