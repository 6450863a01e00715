"""Run ``holdfast check-store``: run the conformance suite against a user's own bucket, and clean up after it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import Reach
from holdfast.cli.command import Opens, Run, Url, command, option
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output
from holdfast.errors import HoldfastError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.cli.store_report import StoreReport
    from holdfast.commit import CommitContext
    from holdfast.stores.base import ObjectStore
    from holdfast.stores.conformance.traces import Traces

_DRIVERS = option("--drivers", "Writers in each race.", type=click.IntRange(2, 64), default=8)
_ROUNDS = option("--rounds", "Rounds of each race.", type=click.IntRange(1, 10_000), default=40)


@command(Opens.STORES, name="check-store")
def check_store(
    run: Run,
    url: Url,
    drivers: Annotated[int, _DRIVERS],
    rounds: Annotated[int, _ROUNDS],
    verbose: Annotated[bool, option("-v --verbose", "Show every failed check with its error.")],
) -> None:
    """Test which committers are safe on a store.

    Examples:
      holdfast check-store s3://bucket
      holdfast check-store s3://bucket/scratch --drivers 16 --rounds 100
      holdfast check-store s3://bucket --json

    Works in a temporary directory below URL and removes it at the end, even after Ctrl-C. Writes about 300 MB in some
    thousand requests; takes from seconds to a few minutes. The exit code is 0 if the default committer is safe there, 1
    if it is not (the table says why), and 3 if the store did not answer. A race can only prove that a store is unsafe:
    more rounds give more certainty.
    """
    from holdfast.cli.store_report import show_report

    report = _test(url, drivers, rounds, run)
    show_report(report, run.out, verbose=verbose)
    if not report.safe:
        raise click.exceptions.Exit(PROBLEM)


def _test(url: str, drivers: int, rounds: int, run: Run) -> StoreReport:
    from holdfast.cli.store_report import StoreReport
    from holdfast.stores.conformance import run_conformance
    from holdfast.stores.conformance.traces import Traces
    from holdfast.stores.interceptors import InterceptedStore
    from holdfast.stores.probe import find_upload_listing, heeds_conditions

    out = run.out
    with run.reach.open(url) as ctx:
        directory = ctx.key(f"_holdfast-check-{ctx.ids.token()}/")
        traces = Traces()
        with (
            _removed(ctx, directory, traces, out),
            _handles(url, drivers, run.reach) as others,
            out.progress() as progress,
        ):
            handles = [InterceptedStore(store, traces) for store in (ctx.store, *others)]
            report = run_conformance(
                handles[0],
                handles[1],
                prefix=f"{directory}suite",
                racers=handles[1:],
                rounds=rounds,
                progress=lambda _check, done, total: progress("checks", done, total),
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
    """Open `count` stores, each with its own connections, like separate drivers."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(reach.open(url)).store for _ in range(count)]


@contextlib.contextmanager
def _removed(ctx: CommitContext, directory: str, traces: Traces, out: Output) -> Iterator[None]:
    """Remove at the end whatever the block wrote, even after an error; report what cannot be removed."""
    created = _missing_directories(ctx)
    left: list[str] | None = None
    try:
        try:
            ctx.store.put(f"{directory}start", b"")  # fail early if this place cannot be written
        except HoldfastError:
            left = []
            raise
        yield
    finally:
        if isinstance(sys.exc_info()[1], KeyboardInterrupt | SystemExit):
            out.note("interrupted: removing what was written, please wait")
        try:
            if left is None:
                left = traces.remove(ctx.store, directory, ctx.runner)
        finally:
            _name_left(ctx, directory, left, out)
        if created is not None and not left:
            shutil.rmtree(f"/{directory}", ignore_errors=True)  # only empty directories are left in it
            _remove_directories(created)


def _name_left(ctx: CommitContext, directory: str, left: list[str] | None, out: Output) -> None:
    if left is None or left:
        what = "everything" if left is None else f"{counted(len(left), 'key')}, such as {left[0]!r},"
        place = f"{ctx.url.rstrip('/')}/{directory[len(ctx.prefix) :]}"
        out.note(f"not removed: {what} below {place}; remove it with the store's own tools")


def _remove_directories(paths: Sequence[Path]) -> None:
    """Remove empty directories, deepest first, up to the first one that is not empty."""
    with contextlib.suppress(OSError):
        for path in paths:
            path.rmdir()


def _missing_directories(ctx: CommitContext) -> list[Path] | None:
    """List the directories that the first write will create, deepest first; None if the store has no directories."""
    if not ctx.url.startswith("file:"):
        return None
    target = Path(f"/{ctx.prefix}")
    return [path for path in (target, *target.parents) if not path.exists()]


def _expiry(ctx: CommitContext) -> str:
    """Describe when the server aborts a pending upload; empty if that is unknown."""
    from holdfast.stores.base import ExpiringUploads

    if not isinstance(ctx.store, ExpiringUploads):
        return "never"
    try:
        days = ctx.store.upload_expiry_days(ctx.prefix)
    except HoldfastError:
        return ""
    return "no rule" if days is None else f"after {days:g} days"
