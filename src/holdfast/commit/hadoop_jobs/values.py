"""What is known of a job of Hadoop's committers before anything is decided about it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from holdfast.commit.committer import Leftover
from holdfast.commit.context import CommitContext

__all__ = ["QUIET_S", "Foreign", "HadoopJob", "HadoopLeftover", "Resolution", "carries", "ids_in"]

QUIET_S = 86400.0
"""How long a job of Hadoop must have been quiet before it is taken for dead, unless somebody says otherwise: its tasks
write records only when they close files, which may take hours, and nothing stops a live one that is ended."""


_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:job|application)_\d+_\d+)(?![0-9A-Za-z])"
)


class Resolution(str, enum.Enum):
    """What a person wants done with dead jobs of Hadoop."""

    ABORT = "abort"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """How recovery deals with jobs of Hadoop.

    Attributes:
        resolution: what becomes of dead ones; None: they are only reported (C7).
        older_than_s: leave those alone that wrote something more recently.
    """

    resolution: Resolution | None = None
    older_than_s: float = QUIET_S


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopJob:
    """What a job of the S3A committers has left.

    Attributes:
        committer: ``hadoop-magic`` or ``hadoop-staging``.
        job: its UUID, or whatever name it has given its directory.
        home: where its records are.
        directory: everything of it there, relative to `home`; it goes when the job ends.
        sets: keys of what its tasks have committed: pending sets.
        attempts: keys of what attempts have written and not committed: single records, or sets.
        starts: how often its driver was started, as far as tasks have committed something since; 0 if none has.
        active_at_s: when it last wrote there.
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
    """What a job has left and what may be done about it.

    Attributes:
        is_over: it is through and has only left its directory: nothing for a person to worry about.
    """

    leftover: Leftover
    is_over: bool


def ids_in(path: str) -> tuple[str, ...]:
    """Ids of Spark's writes and of jobs of YARN that the last name of `path` holds."""
    return tuple(_ID.findall(path.rpartition("/")[2]))


def carries(job: str, path: str) -> bool:
    """Whether the last name of `path` holds the job's id, as Spark's and staging's names do: then nobody else made it.

    Ids of another form, such as a person may choose, prove nothing.
    """
    return job in ids_in(path)
