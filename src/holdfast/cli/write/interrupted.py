"""End the job of an interrupted write, and tell the user how it ended."""

from __future__ import annotations

from holdfast.cli.output import Output
from holdfast.commit import get_committer
from holdfast.commit.end_write import EndedWrite, WriteEnd, end_write
from holdfast.errors import HoldfastError
from holdfast.options.write import WriteOptions


def end_interrupted_write(options: WriteOptions, out: Output) -> None:
    """Abort the write's job, or roll its commit forward if it is already decided, and print what was done.

    Requires: the Spark session of the write is stopped, so that no task on this machine is still writing.
    """
    out.note("interrupted: ending the job, please wait")
    url = options.store.url
    try:
        with options.store.open(options.settings, committer=options.committer) as ctx:
            ended = end_write(ctx, get_committer(options.committer), options.token)
    except HoldfastError as error:
        out.note(f"error: {error}")
        out.note(f"the job could not be ended: run holdfast recover {url}")
        return
    out.note(_sentence(ended))


def _sentence(ended: EndedWrite) -> str:
    if ended.end is WriteEnd.COMMITTED and ended.reason:
        return f"the job was already committed: job {ended.job}: {ended.reason}"
    if ended.end is WriteEnd.COMMITTED:
        return f"the job was already committed and its rows are visible: job {ended.job}"
    if ended.end is WriteEnd.KEPT:
        return f"the job was left as it is and you have to decide: job {ended.job}: {ended.reason}"
    if ended.visible_files:
        return (
            f"the job is aborted, but some of its files are visible ({ended.visible_files}): delete the files with "
            f"{ended.job} in their names"
        )
    if ended.job:
        return f"the job is aborted and none of its output is visible: job {ended.job}"
    return "the job is aborted or never started, none of its output is visible"
