"""Define values for jobs of Hadoop's committers: what was found, and what the user wants done."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from holdfast.commit.committer import Leftover
from holdfast.commit.context import CommitContext

__all__ = ["QUIET_S", "ForeignJobPolicy", "HadoopJob", "HadoopLeftover", "Resolution", "carries", "ids_in"]

QUIET_S = 86400.0
"""How long a Hadoop job must have been idle before it counts as dead, by default.

Its tasks write records only when they close files, which may take hours, and ending a live job does not stop it.
"""


_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:job|application)_\d+_\d+)(?![0-9A-Za-z])"
)


class Resolution(str, enum.Enum):
    """What the user wants done with dead Hadoop jobs."""

    ABORT = "abort"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignJobPolicy:
    """How recovery treats jobs of Hadoop's committers.

    Attributes:
        resolution: how to end dead jobs; None: only report them (C7).
        older_than_s: do not touch jobs that wrote something more recently than this.
    """

    resolution: Resolution | None = None
    older_than_s: float = QUIET_S


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopJob:
    """The records of one job of the S3A committers.

    Attributes:
        committer: ``hadoop-magic`` or ``hadoop-staging``.
        job: its UUID, or any other name of its directory.
        home: the directory tree that contains its records.
        directory: the job's directory, relative to `home`. It is deleted when the job ends.
        sets: keys of the pending sets that its tasks have committed.
        attempts: keys of the records of attempts that have not committed: single records, or sets.
        starts: how often its driver started and tasks committed afterwards; 0 if no task has committed.
        active_at_s: when its directory last changed.
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
    """A job's leftover data and its recovery action.

    Attributes:
        is_over: whether the job has finished and left only its directory: the user need not act.
    """

    leftover: Leftover
    is_over: bool


def ids_in(path: str) -> tuple[str, ...]:
    """Return the ids of Spark writes and YARN jobs in the last segment of `path`."""
    return tuple(_ID.findall(path.rpartition("/")[2]))


def carries(job: str, path: str) -> bool:
    """Check whether the last segment of `path` contains the job's id, as names of Spark and of staging do.

    Such a file belongs to the job. Ids of any other form, such as a user may choose, prove nothing.
    """
    return job in ids_in(path)
