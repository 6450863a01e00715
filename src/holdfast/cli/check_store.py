"""Run ``holdfast check-store``: run the conformance suite against a user's own bucket, and clean up after it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import click

from holdfast.cli.command import CommandRun, ResourceKind, Url, command, option
from holdfast.cli.committers import committer_support
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output, ResultColumn, to_documents
from holdfast.errors import HoldfastError
from holdfast.wording import format_count

if TYPE_CHECKING:
    from holdfast.commit import CommitContext, Committer
    from holdfast.runtime import Runner
    from holdfast.stores.base import Capabilities, ObjectStore
    from holdfast.stores.conformance.topics import Finding
    from holdfast.stores.interceptors import StoreCall
    from holdfast.stores.probe import UploadListingMode

T = TypeVar("T")
_CLEANUPS = 5  # data of calls that were still running appears in a later one
_DRIVERS = option("--drivers", "Writers in each race.", type=click.IntRange(2, 64), default=8)
_ROUNDS = option("--rounds", "Rounds of each race.", type=click.IntRange(1, 10_000), default=40)


@command(ResourceKind.STORES, name="check-store")
def check_store(
    run: CommandRun,
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
    from holdfast.commit import COMMITTERS, TWO_PHASE
    from holdfast.stores.conformance.topics import findings

    out = run.out
    found = _test_store(url, drivers, rounds, run)
    topics = findings(found.results)
    verdicts = {name: judge_committer_safety(one, found.capabilities, topics) for name, one in COMMITTERS.items()}
    word, why = verdicts[TWO_PHASE.name]
    rows = [(name, *answer) for name, answer in verdicts.items()]
    out.document(
        {
            "url": found.url,
            "safe": word == "safe",
            "drivers": drivers,
            "rounds": rounds,
            "heeds_conditions": found.heeds_conditions,
            "upload_listing": found.upload_listing.value,
            "topics": to_documents(_TOPIC, topics),
            "committers": to_documents(_VERDICT, rows),
            "checks": {name: None if error is None else str(error) for name, error in found.results.items()},
        }
    )
    out.show(_TOPIC, topics)
    out.show(_VERDICT, rows)
    out.say("safe: the store does all that the committer needs; holdfast committers shows what each one guarantees")
    if not found.capabilities.rename and not found.capabilities.transactions:
        out.say(f"pending uploads are listed {_LISTED[found.upload_listing.name]}")
    failed = [(name, str(error)) for name, error in found.results.items() if error is not None]
    if verbose and failed:
        out.table(["check", "error"], failed)
    if word != "safe":
        out.say(f"{TWO_PHASE.name} is not safe at {found.url}: {'' if word == 'not safe' else f'it {word}: '}{why}")
        raise click.exceptions.Exit(PROBLEM)
    races = f"races of {drivers} drivers in {format_count(rounds, 'round')}"
    out.say(f"{TWO_PHASE.name} is safe at {found.url}: {format_count(len(found.results), 'check')}, {races}")


_LISTED = {
    "BY_DIRECTORY": "by directory, as S3 does",
    "BY_KEY": "by whole keys only (MinIO): jobs use their own records instead; the server may drop idle uploads after "
    "a time that it does not report (MINIO_API_STALE_UPLOADS_EXPIRY, 24 hours by default)",
    "NOT_AT_ALL": "not at all: jobs use their own records instead",
}
_TOPIC = (
    ResultColumn("name", "topic", lambda one: one.topic.name),
    ResultColumn("rests_on_it", None, lambda one: one.topic.weight.value),
    ResultColumn("holds", "holds", lambda one: not one.failed, lambda holds: "yes" if holds else "NO"),
    ResultColumn("checks", None, lambda one: one.checks),
    ResultColumn("", "passed", lambda one: f"{one.checks - len(one.failed)} of {one.checks}"),
    ResultColumn("failed", None, lambda one: sorted(one.failed)),
    ResultColumn("otherwise", None, lambda one: one.topic.otherwise if one.failed else None),
    ResultColumn("", "consequence", lambda one: _describe_finding_consequence(one)),
)
_VERDICT = (
    ResultColumn("name", "committer", lambda one: one[0]),
    ResultColumn("here", "here", lambda one: one[1]),
    ResultColumn("reason", "", lambda one: one[2] or None, lambda reason: reason or ""),
)


def _describe_finding_consequence(one: Finding) -> str:
    names = f" ({', '.join(one.odd_names)})" if one.odd_names else ""
    return f"{one.topic.otherwise}{names}" if one.failed else ""


def judge_committer_safety(committer: Committer, known: Capabilities, topics: Sequence[Finding]) -> tuple[str, str]:
    """Return whether a committer is safe on the tested store: ``safe`` or another word, and the reason."""
    from holdfast.commit.committer import CONDITIONAL_WRITES, HIDDEN_WRITES, MULTIPART
    from holdfast.stores.conformance.topics import Weight

    word, reason = committer_support(committer, known)
    if word != "runs":
        return word, reason
    by_choice = not known.rename or known.transactions
    uploads = MULTIPART in committer.needs or (HIDDEN_WRITES in committer.needs and by_choice)
    weights = {Weight.DATA, Weight.HIDDEN if uploads else Weight.MOVED}
    if CONDITIONAL_WRITES in committer.needs:
        weights.add(Weight.DECISION)
    broken = [one for one in topics if one.failed and one.topic.weight in weights]
    reasons = "; ".join(f"{one.topic.name}: {one.topic.otherwise}" for one in broken)
    return ("not safe", reasons) if broken else ("safe", "")


# --- the run ----------------------------------------------------------------------------------------------------------
class StoreFindings(NamedTuple):
    """The result of the conformance suite and of a few more probes on a store.

    Attributes:
        capabilities: what the store declares, and whether it honors conditional writes.
        results: the error of each check, by the name of the check; None if the check passed.
    """

    url: str
    capabilities: Capabilities
    results: Mapping[str, Exception | None]
    heeds_conditions: bool
    upload_listing: UploadListingMode


def _test_store(url: str, drivers: int, rounds: int, run: CommandRun) -> StoreFindings:
    from holdfast.stores.base import Support
    from holdfast.stores.conformance import run_conformance
    from holdfast.stores.interceptors import InterceptedStore
    from holdfast.stores.probe import find_upload_listing_mode, store_heeds_conditions

    with run.reach.open(url) as ctx, contextlib.ExitStack() as stack:
        directory = ctx.key(f"_holdfast-check-{ctx.ids.token()}/")
        pending: set[tuple[str, str]] = set()
        stack.enter_context(_remove_test_data_afterwards(ctx, directory, pending, run.out))
        others = [stack.enter_context(run.reach.open(url)).store for _ in range(drivers)]  # like separate drivers
        progress = stack.enter_context(run.out.progress())
        handles = [InterceptedStore(store, partial(_call_and_track_uploads, pending)) for store in (ctx.store, *others)]
        report = run_conformance(
            handles[0],
            handles[1],
            prefix=f"{directory}suite",
            racers=handles[1:],
            rounds=rounds,
            progress=lambda _check, done, total: progress("checks", done, total),
        )
        heeds = store_heeds_conditions(handles[0], directory, ctx.ids)
        return StoreFindings(
            url=ctx.url,
            capabilities=replace(ctx.store.capabilities, conditional_put=Support.YES if heeds else Support.NO),
            results=report.results,
            heeds_conditions=heeds,
            upload_listing=find_upload_listing_mode(handles[0], directory),
        )


@contextlib.contextmanager
def _remove_test_data_afterwards(
    ctx: CommitContext, directory: str, pending: set[tuple[str, str]], out: Output
) -> Iterator[None]:
    """Remove at the end whatever the block wrote, even after an error; report what cannot be removed."""
    is_local, place = ctx.url.startswith("file:"), Path(f"/{directory}")
    created = [path for path in (place, *place.parents) if is_local and not path.exists()]
    ctx.store.put(f"{directory}start", b"")  # fail early if this place cannot be written
    left: list[str] | None = None
    try:
        yield
    finally:
        if isinstance(sys.exc_info()[1], KeyboardInterrupt | SystemExit):
            out.note("interrupted: removing what was written, please wait")
        try:
            left = remove_directory(ctx.store, directory, pending, ctx.runner)
        finally:
            if left is None or left:
                what = "everything" if left is None else f"{format_count(len(left), 'key')}, such as {left[0]!r},"
                url = f"{ctx.url.rstrip('/')}/{directory[len(ctx.prefix) :]}"
                out.note(f"not removed: {what} below {url}; remove it with the store's own tools")
        if is_local and not left:
            shutil.rmtree(place, ignore_errors=True)  # only empty directories are left in it
            with contextlib.suppress(OSError):
                for path in created[1:]:
                    path.rmdir()


def _call_and_track_uploads(pending: set[tuple[str, str]], call: StoreCall, proceed: Callable[[], T]) -> T:
    """Keep the keys and ids of pending uploads, for servers that do not list them."""
    answer = proceed()
    if call.operation.value == "create_upload":
        pending.add((call.key, str(answer)))
    elif call.operation.value in ("complete_upload", "abort_upload"):
        pending.discard((call.key, call.upload_id))
    return answer


def remove_directory(store: ObjectStore, prefix: str, pending: set[tuple[str, str]], runner: Runner) -> list[str]:
    """Delete all objects and abort all uploads below a directory; return the keys of what is left.

    Args:
        prefix: ends in ``/``.
        pending: key and id of uploads to abort even if the store's listing omits them.
    """
    from holdfast.stores.base import batched_keys, iter_objects, iter_uploads, multipart

    left: list[str] = []
    for _ in range(_CLEANUPS):
        uploads, pending = pending, set()
        if store.capabilities.multipart is not None:
            with contextlib.suppress(HoldfastError):  # the server cannot list uploads
                uploads |= {(one.key, one.upload_id) for one in iter_uploads(multipart(store), prefix)}
        keys = [info.key for info in iter_objects(store, prefix, markers=True)]
        left = sorted({*keys, *(key for key, _ in uploads)})
        if not left:
            break
        for batch in batched_keys(keys):
            store.delete_many(batch)
        if uploads:
            list(runner.map(lambda upload: multipart(store).abort_upload(*upload), uploads))
    return left
