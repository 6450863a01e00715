"""Run ``holdfast uploads``: list, count or abort the pending multipart uploads below a url."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, age, on_store, reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output, duration
from holdfast.errors import InvalidRequestError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.commit.upload_owners import PendingUpload, UploadState

_LIST_EPILOG = """\b
Examples:
  holdfast uploads list s3://bucket/flights
  holdfast uploads list s3://bucket --older-than 7d

Only uploads below URL are shown: for s3://bucket/dataset1, none of s3://bucket/dataset10."""

_ABORT_EPILOG = """\b
Examples:
  holdfast uploads abort s3://bucket/flights
  holdfast uploads abort s3://bucket/flights --older-than 7d --all-tools --yes

Uploads of an unfinished job are never aborted: they are its data. End the job with holdfast recover (for a job of
Hadoop's committers, with --foreign), which aborts its uploads if that is safe. Uploads of other tools, and of jobs that
left no record below URL, are aborted only with --all-tools. You are asked to confirm, unless you give --yes."""

_EXPECT_EPILOG = """\b
Examples:
  holdfast uploads expect s3://bucket/flights 0
  holdfast uploads expect s3://bucket 3 --older-than 1d --verbose

Prints nothing. The exit code is 0 if there are exactly N uploads, else 1."""


@click.group()
def uploads() -> None:
    """List, count or abort pending multipart uploads: stored parts that you pay for and that belong to no file."""


@uploads.command("list", epilog=_LIST_EPILOG)
@click.argument("url")
@click.option("--older-than", type=age, default="0s", show_default=True, help="Show only uploads at least this old.")
@on_store
@reports
def _list(url: str, older_than: float, reach: Reach, out: Output) -> None:
    """Show the pending uploads below URL."""
    from holdfast.cli.destination_checks import EMPTY, is_empty
    from holdfast.commit.upload_owners import find_pending

    with reach.open(url) as ctx, out.waiting("listing uploads"):
        pending, note = find_pending(ctx)
        nothing = not pending and is_empty(ctx)
    found = [one for one in pending if one.age_s >= older_than]
    out.document({"url": ctx.url, "uploads": [_fields(one) for one in found], "note": note})
    if found:
        _table(found, out)
    out.say(f"{counted(len(found), 'pending upload')} below {ctx.url}")
    if note:
        out.note(note)
    if nothing:
        out.note(EMPTY)


@uploads.command("expect", epilog=_EXPECT_EPILOG, short_help="Check that exactly N uploads are pending.")
@click.argument("url")
@click.argument("expected", metavar="N", type=click.IntRange(min=0))
@click.option("--older-than", type=age, default="0s", show_default=True, help="Count only uploads at least this old.")
@click.option("--verbose", "-v", is_flag=True, help="Print the number of uploads.")
@on_store
@reports
def _expect(url: str, expected: int, older_than: float, verbose: bool, reach: Reach, out: Output) -> None:
    """Check, for scripts and tests, that exactly N uploads are pending below URL."""
    from holdfast.commit.upload_owners import find_pending

    with reach.open(url) as ctx:
        pending, note = find_pending(ctx)
    count = sum(one.age_s >= older_than for one in pending)
    out.document({"url": ctx.url, "expected": expected, "found": count, "note": note})
    if verbose:
        out.say(f"{counted(count, 'pending upload')} below {ctx.url}, {expected} expected")
    if note:
        out.note(note)
    if count != expected:
        raise click.exceptions.Exit(PROBLEM)


@uploads.command("abort", epilog=_ABORT_EPILOG, short_help="Abort uploads that belong to no unfinished job.")
@click.argument("url")
@click.option("--older-than", type=age, default="1d", show_default=True, help="Abort only uploads at least this old.")
@click.option("--all-tools", is_flag=True, help="Also abort uploads of other tools and of unknown jobs.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@on_store
@reports
def _abort(url: str, older_than: float, all_tools: bool, yes: bool, reach: Reach, out: Output) -> None:
    """Abort the pending uploads below URL that belong to no unfinished job."""
    from holdfast.cli.destination_checks import EMPTY, is_empty
    from holdfast.commit.upload_owners import UploadState, find_pending
    from holdfast.stores.base import multipart

    with reach.open(url) as ctx:
        with out.waiting("listing uploads"):
            found, note = find_pending(ctx)
            nothing = not found and is_empty(ctx)
        states = {UploadState.OVER, *(_unowned() if all_tools else ())}
        chosen = [one for one in found if one.age_s >= older_than and one.state in states]
        if chosen and not yes:
            _ask(chosen, out)
        store = multipart(ctx.store)
        with out.progress() as progress:
            aborted = ctx.runner.map(lambda one: store.abort_upload(one.upload.key, one.upload.upload_id), chosen)
            for done, _ in enumerate(aborted, start=1):
                progress("abort", done, len(chosen))
    kept = _kept(found, chosen, all_tools)
    out.document({"url": ctx.url, "aborted": [_fields(one) for one in chosen], "left_alone": kept, "note": note})
    out.say(f"{counted(len(chosen), 'upload')} aborted below {ctx.url}")
    if note:
        out.note(note)
    if nothing:
        out.note(EMPTY)
    sentences = {
        "unfinished": f"of unfinished jobs: run holdfast recover {ctx.url}",
        "hadoops": f"of Hadoop jobs: run holdfast recover {ctx.url} --foreign abort",
        "other_tools": "of other tools or of unknown jobs: see --all-tools",
        "younger": f"younger than {duration(older_than)}: see --older-than",
    }
    for reason, count in kept.items():
        if count:
            out.say(f"left alone: {count} {sentences[reason]}")


def _ask(chosen: list[PendingUpload], out: Output) -> None:
    if out.json or not _is_person_there():
        raise InvalidRequestError(
            "cannot ask for confirmation here: check with holdfast uploads list, then run this command with --yes"
        )
    _table(chosen, out)
    click.confirm(f"Abort {counted(len(chosen), 'upload')} permanently?", abort=True)


def _is_person_there() -> bool:
    return sys.stdin.isatty()


def _unowned() -> frozenset[UploadState]:
    """Return the upload states that say that no job can be found to which the upload belongs."""
    from holdfast.commit.upload_owners import UploadState

    return frozenset({UploadState.OTHER_TOOL, UploadState.UNKNOWN})


def _kept(found: list[PendingUpload], chosen: list[PendingUpload], all_tools: bool) -> dict[str, int]:
    """Count the uploads that were not aborted, by reason."""
    from holdfast.commit.upload_owners import UploadState

    rest = [one for one in found if one not in chosen]
    unfinished = sum(one.state is UploadState.UNFINISHED for one in rest)
    hadoops = sum(one.state is UploadState.HADOOP for one in rest)
    others = 0 if all_tools else sum(one.state in _unowned() for one in rest)
    younger = len(rest) - unfinished - hadoops - others
    return {"unfinished": unfinished, "hadoops": hadoops, "other_tools": others, "younger": younger}


def _fields(one: PendingUpload) -> dict[str, object]:
    return {
        "path": one.path,
        "upload_id": one.upload.upload_id,
        "age_s": round(one.age_s, 1),
        "job": one.job or None,
        "committer": one.committer or None,
        "state": one.state.value,
    }


def _table(found: list[PendingUpload], out: Output) -> None:
    rows = [(duration(one.age_s), one.state.value, one.committer, one.path) for one in found]
    out.table(["age", "state", "committer", "path"], rows, right=["age"])
