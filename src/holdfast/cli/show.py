"""``holdfast show``."""

from __future__ import annotations

from collections.abc import Mapping

import click

from holdfast.cli.arguments import Reach, on_store, reports
from holdfast.cli.output import Output, size, when
from holdfast.errors import HoldfastError, NotFoundError

__all__ = ["show"]

_EPILOG = """\b
Examples:
  holdfast show s3://bucket/flights
  holdfast show ./downloaded/_SUCCESS

Reads the reports of Hadoop's S3A and manifest committers as well."""


@click.command(epilog=_EPILOG)
@click.argument("where", metavar="URL_OR_FILE")
@on_store
@reports
def show(where: str, reach: Reach, out: Output) -> None:
    """Show the _SUCCESS report of a destination, or one that was saved to a file."""
    from holdfast.commit.success import parse_success

    key, data = _load(where, reach)
    report = parse_success(key, data)
    if not report:
        out.document({"report": None})
        out.say("an empty _SUCCESS: the job of a classic committer ended well, and it says no more")
        return
    out.document({"report": report})
    out.table(["report", ""], [(name, _text(name, value)) for name, value in report.items() if _is_plain(value)])
    for name, value in report.items():
        if isinstance(value, Mapping) and (rows := _flat("", value)):
            out.table([name, ""], [(key, _text(key, number)) for key, number in rows])
    names = report.get("filenames")
    if isinstance(names, list) and names:
        out.table(["first files"], [(str(name),) for name in names[:10]])


def _load(where: str, reach: Reach) -> tuple[str, bytes]:
    """Name and bytes of the report: of the object itself, or of the one that is below the destination."""
    with reach.open(where) as ctx:
        own = ctx.prefix.rstrip("/")
        for key in ([own] if own else []) + [ctx.key("_SUCCESS")]:
            try:
                return key, ctx.store.get(key)
            except NotFoundError as error:
                missing: HoldfastError = error
        raise NotFoundError(
            "there is no _SUCCESS here: no job has finished, or this is not a destination", url=ctx.url
        ) from missing


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool) and value != ""


def _flat(prefix: str, value: Mapping[str, object]) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            rows += _flat(f"{prefix}{name}.", inner)
        else:
            rows.append((prefix + name, inner))
    return rows


def _text(name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        if name == "timestamp":
            return when(value / 1000)
        if name == "bytes" or name.endswith("_bytes_committed"):
            return f"{value:,} ({size(value)})"
        return f"{value:,}"
    return str(value)
