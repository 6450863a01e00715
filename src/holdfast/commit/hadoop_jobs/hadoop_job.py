"""Define values that describe jobs of Hadoop's committers, and how the user wants them to end."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from holdfast.commit.committer import Leftover
from holdfast.commit.context import CommitContext

QUIET_S = 86400.0
"""How long a Hadoop job must have been idle before it counts as dead, by default.

A job's tasks write records only when they close files, which may take hours, and ending a live job does not stop it.
"""


_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:job|application)_\d+_\d+)(?![0-9A-Za-z])"
)


class Resolution(str, enum.Enum):
    """How the user wants dead Hadoop jobs to end."""

    ABORT = "abort"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignJobPolicy:
    """How recovery treats jobs of Hadoop's committers.

    Attributes:
        resolution: how to end dead jobs; None to only report them (C7).
        older_than_s: do not touch jobs that wrote something more recently than this.
    """

    resolution: Resolution | None = None
    older_than_s: float = QUIET_S


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopLeftover:
    """The leftover data of a Hadoop job, and the recovery action for it.

    Attributes:
        is_over: whether the job has finished and left only its directory, so that the user need not act.
    """

    leftover: Leftover
    is_over: bool


def ids_in(path: str) -> tuple[str, ...]:
    """Return the ids of Spark writes and YARN jobs in the last segment of `path`."""
    return tuple(_ID.findall(path.rpartition("/")[2]))


def carries(job: str, path: str) -> bool:
    """Check whether the last segment of `path` contains the job's id, like names that Spark and staging choose.

    A file with such a name belongs to the job. Only ids in the form of Spark's or YARN's are recognized; a user-chosen
    id proves nothing.
    """
    return job in ids_in(path)
