"""Define values that describe jobs of Hadoop's committers, and how the user wants them to end."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.errors import NotFoundError

_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:job|application)_\d+_\d+)(?![0-9A-Za-z])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopJob:
    """The records of one job of the S3A committers.

    Attributes:
        committer: ``hadoop-magic`` or ``hadoop-staging``.
        job: the job's UUID, or whatever other name its directory has.
        home: the directory tree that contains the job's records.
        directory: the job's directory, relative to `home`. It is deleted when the job ends.
        sets: keys of the pending sets that the job's tasks have committed.
        attempts: keys of the records of attempts that have not committed: single records, or sets.
        starts: how many starts of the driver were followed by a task commit; 0 if no task has committed.
        active_at_s: when the job's directory last changed, in seconds since the epoch.
    """

    committer: str
    job: str
    home: CommitContext = field(repr=False)
    directory: str
    sets: tuple[str, ...] = field(repr=False)
    attempts: tuple[str, ...] = field(repr=False)
    starts: int
    active_at_s: float


def ids_in(path: str) -> tuple[str, ...]:
    """Return the ids of Spark writes and YARN jobs in the last segment of `path`."""
    return tuple(_ID.findall(path.rpartition("/")[2]))


def carries(job: str, path: str) -> bool:
    """Check whether the last segment of `path` contains the job's id, like names that Spark and staging choose.

    A file with such a name belongs to the job. Only ids in the form of Spark's or YARN's are recognized; a user-chosen
    id proves nothing.
    """
    return job in ids_in(path)


def save_first_marker(ctx: CommitContext, data: bytes) -> None:
    """Put ``_SUCCESS`` unless it exists.

    S3A's committers delete it when a job starts, so an existing ``_SUCCESS`` belongs to a later job.
    """
    try:
        ctx.store.head(ctx.key(layout.SUCCESS))
    except NotFoundError:
        ctx.store.put(ctx.key(layout.SUCCESS), data)
