"""Run ``holdfast fs touch``: set times, or create empty files."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.fs.times import time_ms
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, on_namespaces

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item, Spot

_EPILOG = """\b
Examples:
  holdfast fs touch holdfast://prod/data/_READY
  holdfast fs touch -m -t 2013-01-31T12:00 --glob 'holdfast://prod/in/*'

A file that does not exist is created empty, unless you give -c. A time without a zone is UTC."""


@fs_command("touch", epilog=_EPILOG)
@with_urls
@click.option("-c", "--no-create", is_flag=True, help="Create nothing.")
@click.option("-a", "--accessed", is_flag=True, help="Set only the time of the last access.")
@click.option("-m", "--modified", is_flag=True, help="Set only the time of the last modification.")
@click.option("-t", "--time", "at_ms", type=time_ms, metavar="TIME", help="Set this time.  [default: now]")
@on_namespaces
def touch(
    urls: tuple[str, ...],
    glob: bool,
    no_create: bool,
    accessed: bool,
    modified: bool,
    at_ms: int | None,
    session: Session,
    out: Output,
) -> None:
    """Set the times of files and directories, and create missing files."""
    from holdfast.cli.fs.items import find_items, find_spot
    from holdfast.cli.fs.problems import Problems
    from holdfast.namespace.errors import PathExistsError, PathNotFoundError
    from holdfast.runtime import SystemClock

    items: list[Item] = []
    missing: list[Spot] = []
    for url in urls:
        try:
            items += find_items(session, [url], glob=glob)
        except PathNotFoundError:
            if url.endswith("/") or glob:
                raise
            missing += [] if no_create else [find_spot(session, url)]
    now_ms = int(SystemClock().now_s() * 1000) if at_ms is None else at_ms
    mtime_ms = None if accessed and not modified else now_ms
    atime_ms = None if modified and not accessed else now_ms
    problems = Problems(out)
    created: list[str] = []
    touched: list[str] = []
    for spot in missing:
        with problems.noted(spot.url):
            with contextlib.suppress(PathExistsError):  # somebody else has just created it
                with spot.namespace.create(spot.path, parents=False):
                    pass
                out.say(f"created {in_one_line(spot.url)}")
            created.append(spot.url)
            if at_ms is not None:
                spot.namespace.set_times(spot.path, mtime_ms, atime_ms)
    for item in items:
        with problems.noted(item.url):
            item.namespace.set_times(item.status.path, mtime_ms, atime_ms)
            touched.append(item.url)
    out.document({"touched": touched, "created": created, "failed": problems.documents})
    problems.end(len(touched) + len(created))
