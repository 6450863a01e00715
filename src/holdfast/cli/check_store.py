"""``holdfast check-store``: the conformance suite against somebody's own bucket, and what follows from it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, on_store, reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output
from holdfast.errors import HoldfastError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.cli.store_report import StoreReport
    from holdfast.commit import CommitContext
    from holdfast.stores.base import ObjectStore
    from holdfast.stores.conformance.traces import Traces

__all__ = ["check_store"]

_EPILOG = """\b
Examples:
  holdfast check-store s3://bucket
  holdfast check-store s3://bucket/scratch --drivers 16 --rounds 100
  holdfast check-store s3://bucket --json

Works below a throw-away directory of URL and removes it again, also after Ctrl-C. Writes some 300 MB in some thousand
requests; takes seconds to a few minutes. Exit code 0: the default committer is safe there. 1: it is not, the table says
why. 3: the store did not answer. Races can only show that a store is not safe: the more rounds, the surer."""


@click.command("check-store", epilog=_EPILOG)
@click.argument("url")
@click.option("--drivers", type=click.IntRange(2, 64), default=8, show_default=True, help="Writers in each race.")
@click.option("--rounds", type=click.IntRange(1, 10_000), default=40, show_default=True, help="Rounds of each race.")
@click.option("--verbose", "-v", is_flag=True, help="Show every check that failed, and how.")
@on_store
@reports
def check_store(url: str, drivers: int, rounds: int, verbose: bool, reach: Reach, out: Output) -> None:
    """Try what the store at URL does, and say which committers are safe there."""
    from holdfast.cli.store_report import as_document, told

    report = _tried(url, drivers, rounds, reach, out)
    out.document(as_document(report))
    told(report, out, verbose=verbose)
    if not report.safe:
        raise click.exceptions.Exit(PROBLEM)


def _tried(url: str, drivers: int, rounds: int, reach: Reach, out: Output) -> StoreReport:
    from holdfast.cli.store_report import StoreReport
    from holdfast.stores.conformance import run_conformance
    from holdfast.stores.conformance.traces import Traces
    from holdfast.stores.interceptors.intercepted import InterceptedStore
    from holdfast.stores.probe import find_upload_listing, heeds_conditions

    with reach.open(url) as ctx:
        directory = ctx.key(f"_holdfast-check-{ctx.ids.token()}/")
        traces = Traces()
        with _removed(ctx, directory, traces, out), _handles(url, drivers, reach) as others, out.progress() as progress:
            handles = [InterceptedStore(store, traces) for store in (ctx.store, *others)]
            report = run_conformance(
                handles[0],
                handles[1],
                prefix=f"{directory}suite",
                racers=handles[1:],
                rounds=rounds,
                told=lambda _check, done, total: progress("checks", done, total),
            )
            return StoreReport(
                url=ctx.url,
                directory=directory,
                capabilities=ctx.store.capabilities,
                results=report.results,
                heeds_conditions=heeds_conditions(handles[0], directory, ctx.ids),
                upload_listing=find_upload_listing(handles[0], directory),
                expiry=_expiry(ctx),
                drivers=drivers,
                rounds=rounds,
            )


@contextlib.contextmanager
def _handles(url: str, count: int, reach: Reach) -> Iterator[Sequence[ObjectStore]]:
    """Handles with connections of their own, as so many drivers have."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(reach.open(url)).store for _ in range(count)]


@contextlib.contextmanager
def _removed(ctx: CommitContext, directory: str, traces: Traces, out: Output) -> Iterator[None]:
    """Whatever happens in between, what was written goes again; what does not go is named."""
    created = _missing_directories(ctx)
    left: list[str] | None = None
    try:
        try:
            ctx.store.put(f"{directory}start", b"")  # what cannot be written is said before all else
        except HoldfastError:
            left = []
            raise
        yield
    finally:
        if isinstance(sys.exc_info()[1], KeyboardInterrupt | SystemExit):
            out.note("interrupted: removing what was written, one moment")
        try:
            if left is None:
                left = traces.remove(ctx.store, directory, ctx.runner)
        finally:
            _name_left(ctx, directory, left, out)
        if created is not None and not left:
            shutil.rmtree(f"/{directory}", ignore_errors=True)  # directories that are empty
            _remove_directories(created)


def _name_left(ctx: CommitContext, directory: str, left: list[str] | None, out: Output) -> None:
    if left is None or left:
        what = "what is" if left is None else f"{counted(len(left), 'key')}, such as {left[0]!r},"
        place = f"{ctx.url.rstrip('/')}/{directory[len(ctx.prefix) :]}"
        out.note(f"not removed: {what} below {place}; remove it with the tools of the store")


def _remove_directories(paths: Sequence[Path]) -> None:
    """Deletes what is empty, the deepest first; stops at the first that others use."""
    with contextlib.suppress(OSError):
        for path in paths:
            path.rmdir()


def _missing_directories(ctx: CommitContext) -> list[Path] | None:
    """Directories that the first write makes, the deepest first; None where a store has no directories of its own."""
    from holdfast.stores.local.store import LocalStore

    if not isinstance(ctx.store, LocalStore):
        return None
    target = Path(f"/{ctx.prefix}")
    return [path for path in (target, *target.parents) if not path.exists()]


def _expiry(ctx: CommitContext) -> str:
    """What the bucket's rules say of uploads that stay pending, in words; empty if nobody tells."""
    from holdfast.stores.s3.store import S3Store

    if not isinstance(ctx.store, S3Store):
        return "never"
    try:
        days = ctx.store.upload_expiry_days(ctx.prefix)
    except HoldfastError:
        return ""
    return "no rule" if days is None else f"after {days:g} days"
