"""After Ctrl-C in a write: end the job, so that nothing of it is ever seen, or say that it is committed already."""

from __future__ import annotations

from holdfast.cli.arguments import Reach
from holdfast.cli.output import Output
from holdfast.commit import Kind, get_committer, read_history
from holdfast.errors import HoldfastError

__all__ = ["end_write"]


def end_write(url: str, write_id: str, reach: Reach, out: Output) -> None:
    """Abort the job that carries `write_id`, or carry out its decision; says which.

    Requires: its Spark is stopped, so that no task of this machine still writes.
    """
    out.note("interrupted: ending the job, one moment")
    try:
        with reach.open(url) as ctx:
            history = read_history(ctx)
            records = [decision.entry.record for decision in history.decisions]
            records += [job.record for job in history.open_jobs if job.record is not None]
            mine = next((record for record in records if record.details.get("write_id") == write_id), None)
            if mine is None:
                out.note("nothing was written")
                return
            entry = get_committer(mine.committer).abort_job(ctx, mine).entry
    except HoldfastError as error:
        out.note(f"error: {error}")
        out.note(f"the job could not be ended, nothing of it is visible until it is: holdfast recover {url}")
        return
    if entry is not None and entry.kind is Kind.COMMIT:
        out.note(f"the job was committed already, its rows are there: job {mine.job}")
    else:
        out.note(f"the job is aborted, nothing of it is visible: job {mine.job}")
