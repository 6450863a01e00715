"""Run ``holdfast show``: print the report of a job, from ``_SUCCESS`` or a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, on_store, reports
from holdfast.cli.output import Output, milliseconds, size, when
from holdfast.errors import CorruptDataError, HoldfastError, NotFoundError

if TYPE_CHECKING:
    from holdfast.commit.statistics import Duration

_EPILOG = """\b
Examples:
  holdfast show s3://bucket/flights
  holdfast show ./downloaded/_SUCCESS
  holdfast show ./reports/summary-20260102030405678-0123456789ab.json --debug

Also reads the reports of Hadoop's S3A and manifest committers. Counters that are 0 are left out, except with --json."""


@click.command(epilog=_EPILOG)
@click.argument("where", metavar="URL_OR_FILE")
@on_store
@reports
def show(where: str, reach: Reach, out: Output) -> None:
    """Show the report of a job: the _SUCCESS of a destination, or a file that holds such a report."""
    from holdfast.commit.success_file import parse_success

    key, data = _load(where, reach)
    try:
        report = parse_success(key, data)
    except CorruptDataError as error:
        raise CorruptDataError(
            "this is no report of a job: give the url of a destination, of its _SUCCESS, or of a saved report",
            path=where,
        ) from error
    if not report:
        out.document({"report": None})
        out.say("an empty _SUCCESS: a job of a classic committer succeeded, without a report")
        return
    out.document({"report": report})
    texts = _mapping(report, "diagnostics")
    if report.get("success") is False:
        out.say(f"the job failed in {report.get('stage') or 'an unnamed stage'}: {texts.get('exception', '')}")
    out.table(["report", ""], [(name, _text(name, value)) for name, value in report.items() if _is_plain(value)])
    for name in ("metrics", "diagnostics"):
        rows = [(key, _text(key, value)) for key, value in _mapping(report, name).items() if key != "stacktrace"]
        if rows:
            out.table([name, ""], rows)
    _show_statistics(report, out)
    names = report.get("filenames")
    if isinstance(names, list) and names:
        out.table(["first files"], [(str(name),) for name in names[:10]])
    if "stacktrace" in texts:
        out.say(f"stack trace:\n{texts['stacktrace']}" if out.debug else "the report has a stack trace: see --debug")


def _show_statistics(report: Mapping[str, object], out: Output) -> None:
    from holdfast.commit.hadoop.statistics import decode_statistics

    try:
        statistics = decode_statistics(report.get("iostatistics"))
    except ValueError as error:
        out.note(f"the statistics of the report cannot be read: {error}")
        return
    durations = sorted(statistics.durations.items(), key=lambda item: (not _is_stage(item[0]), item[0]))
    rows = [
        (name, f"{spent.count:,}", f"{spent.failures:,}" if spent.failures else "", *_spread(name, spent))
        for name, spent in durations
    ]
    if rows:
        columns = ["stage or operation", "count", "failed", "min", "mean", "max", "total"]
        out.table(columns, rows, right=columns[1:])
    for title, values in (("counter", statistics.counters), ("gauge", statistics.gauges)):
        counts = [(name, _text(name, value)) for name, value in sorted(values.items()) if value]
        if counts:
            out.table([title, ""], counts, right=[""])


def _is_stage(name: str) -> bool:
    return name.startswith(("job_stage_", "task_stage_", "committer_"))


def _spread(name: str, spent: Duration) -> tuple[str, ...]:
    """Format minimum, mean, maximum and total. Hadoop records sizes and file counts in the same form as durations."""
    return tuple(
        size(value)
        if name.endswith(("_size", "_bytes"))
        else f"{value:,}"
        if name.endswith(("_count", "_depth"))
        else milliseconds(value)
        for value in (spent.min_ms, round(spent.mean_ms), spent.max_ms, spent.total_ms)
    )


def _load(where: str, reach: Reach) -> tuple[str, bytes]:
    """Return the key and the bytes of the report: of the object at the url itself, or of the _SUCCESS below it."""
    from holdfast.stores.base import iter_objects

    with reach.open(where) as ctx:
        own = ctx.prefix.rstrip("/")
        for key in ([own] if own else []) + [ctx.key("_SUCCESS")]:
            try:
                return key, ctx.store.get(key)
            except NotFoundError as error:
                missing: HoldfastError = error
        saved = next(iter_objects(ctx.store, ctx.key("summary-"), page_size=2), None)
        if saved is not None:
            name = saved.key.rpartition("/")[2]
            raise NotFoundError(f"this is a directory of reports: name one of its files, such as {name}", url=ctx.url)
        raise NotFoundError(
            "there is no _SUCCESS here: check the url, or wait until a job has finished", url=ctx.url
        ) from missing


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool) and value != ""


def _mapping(report: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = report.get(name)
    return found if isinstance(found, dict) else {}


def _text(name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        if name == "timestamp":
            return when(value / 1000)
        if name == "bytes" or "_bytes" in name:
            return f"{value:,} ({size(value)})"
        return f"{value:,}"
    return str(value)
