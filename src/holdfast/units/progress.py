"""Count what units cost, and keep the record of how far a task is."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add, attrgetter, sub

from holdfast.errors import MALFORMED, CorruptDataError
from holdfast.records.keys import COUNTER, PROGRESS, id_bytes


@dataclass(slots=True)
class Statistics:
    """Counts and times of the units of a task, or of all tasks of a job. Those of several attempts add up.

    Attributes:
        units: units that took effect.
        skipped: units that had taken effect before, in another attempt.
        groups: commits that took effect.
        conflicts: commits that another transaction's commit made invalid.
        stale: runs of functions that failed because of cells that had changed meanwhile.
        reruns: runs of a unit's function after the first.
        deferred: units that were deferred to the end of their task, because they conflicted.
        locked: units that locked what they read, after too many conflicts.
        unknown: commits whose reply was lost, and whose outcome was read back.
        unavailable: calls that were repeated because the database was not available.
        run_s: total seconds.
        function_s: seconds in functions, without their calls to the transaction.
        read_s, commit_s: seconds in reads, including those of functions, and in commits.
    """

    units: int = 0
    skipped: int = 0
    groups: int = 0
    conflicts: int = 0
    stale: int = 0
    reruns: int = 0
    deferred: int = 0
    locked: int = 0
    unknown: int = 0
    unavailable: int = 0
    run_s: float = 0.0
    function_s: float = 0.0
    read_s: float = 0.0
    commit_s: float = 0.0

    def plus(self, other: Statistics) -> Statistics:
        """Return the sum of these figures and others."""
        return Statistics(*map(add, _NUMBERS(self), _NUMBERS(other)))

    def since(self, before: Statistics) -> Statistics:
        """Return the difference between these figures and earlier ones."""
        return Statistics(*map(sub, _NUMBERS(self), _NUMBERS(before)))

    @staticmethod
    def total(parts: Iterable[Statistics]) -> Statistics:
        """Return the sum of the figures of several tasks."""
        return reduce(Statistics.plus, parts, Statistics())

    @property
    def conflict_share(self) -> float:
        """Return the share of commits that conflicted, from 0 to 1."""
        tries = self.groups + self.conflicts
        return self.conflicts / tries if tries else 0.0

    @property
    def group_size(self) -> float:
        """Return how many units took effect with one commit, on average."""
        return self.units / self.groups if self.groups else 0.0

    @property
    def time_shares(self) -> dict[str, float]:
        """Return the shares of the run time in functions, reads, commits and other, from 0 to 1 each.

        Other: waits, rows from Spark, and Holdfast itself.
        """
        parts = {"functions": self.function_s, "reads": self.read_s, "commits": self.commit_s}
        total_s = max(self.run_s, sum(parts.values()))
        parts["other"] = total_s - sum(parts.values())  # an attempt that died has not recorded the rest of its time
        return {name: part_s / total_s if total_s > 0 else 0.0 for name, part_s in parts.items()}

    @property
    def commit_latency_s(self) -> float:
        """Return how many seconds a commit took, on average; 0 if there was none."""
        tries = self.groups + self.conflicts + self.unknown
        return self.commit_s / tries if tries else 0.0

    def to_json(self) -> dict[str, object]:
        """Return the figures by name, as JSON values."""
        figures = zip(_NAMES, _NUMBERS(self), strict=True)
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in figures}

    @staticmethod
    def of(found: object) -> Statistics:
        """Decode figures that `to_json` has returned; those that a later release added are ignored.

        Raises:
            CorruptDataError: they are damaged.
        """
        statistics = Statistics()
        try:
            for name, value in dict(found).items():  # type: ignore[call-overload]  # anything else is damage
                if name in _NAMES:
                    setattr(statistics, name, type(getattr(statistics, name))(value))
        except MALFORMED as error:
            raise CorruptDataError("stored statistics cannot be read: keep the database and report it") from error
        return statistics


_NAMES = tuple(one.name for one in fields(Statistics))
_NUMBERS = attrgetter(*_NAMES)
"""The figures in the order of the constructor. They are added up in every commit."""


GONE = (
    "the job was forgotten meanwhile, or the database has lost it, perhaps in a failover: look at what its units have "
    "written before you run it again, since what is still there would take effect twice"
)
"""About a job without a record. Only who forgets a job keeps what its units have written."""

GONE_FROM_LIST = (
    "the job was forgotten meanwhile, or the database has lost it, perhaps in a failover: run the work list again, "
    "under any name, for what still waits on it: what is done does not"
)
"""The same about a job of a work list: what its units have written went together with their keys on the list."""

LIST_DROPPED = (
    "the work list was dropped meanwhile, with all that waited on it: create it, add what is lost, and only that, "
    "since units that are done add nothing again, and run the job again with its name"
)
"""About a list to which units add. Another name for a job of rows would run again what is done."""

_JSON = json.JSONEncoder(separators=(",", ":")).encode


def progress_key(job_id: int, shard: int) -> bytes:
    """Return the key of the record of a task's progress."""
    return PROGRESS + id_bytes(job_id) + id_bytes(shard)


def progress_range(job_id: int) -> tuple[bytes, bytes]:
    """Return the range of keys of the progress of all tasks of a job."""
    prefix = PROGRESS + id_bytes(job_id)
    return prefix, prefix + b"\xff" * 9


def worker_unit_count_key(job_id: int, slot: int) -> bytes:
    """Return the key of the record that counts the units that a worker of a work list has done."""
    return COUNTER + id_bytes(job_id) + id_bytes(slot)


def worker_unit_counts_range(job_id: int) -> tuple[bytes, bytes]:
    """Return the range of keys of the unit counts of all workers of a job."""
    prefix = COUNTER + id_bytes(job_id)
    return prefix, prefix + b"\xff" * 9


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """The progress of a task: which of its units are done.

    Attributes:
        last: id of the last unit that is done or deferred; empty before the first. All up to it are done, except for
            `deferred`.
        done: how many units are done.
        deferred: ids of units that are to run at the end of the task, because they conflicted, in order.
        is_finished: whether all units of the task are done.
        statistics: of all attempts at the task, as far as they could be recorded: an attempt that dies takes with it
            what it has counted since its last commit.
    """

    last: bytes = b""
    done: int = 0
    deferred: Sequence[bytes] = ()
    is_finished: bool = False
    statistics: Statistics

    def to_bytes(self) -> bytes:
        """Return the value of the record of the progress."""
        found = {
            "last": _encode_base64(self.last),
            "done": self.done,
            "deferred": [_encode_base64(one) for one in self.deferred],
            "finished": self.is_finished,
            "statistics": self.statistics.to_json(),
        }
        return _JSON(found).encode()

    @staticmethod
    def of(value: bytes) -> TaskProgress:
        """Decode the progress in a record's value.

        Raises:
            CorruptDataError: it is damaged.
        """
        try:
            found = json.loads(value)
            return TaskProgress(
                last=_decode_base64(found["last"]),
                done=int(found["done"]),
                deferred=tuple(_decode_base64(one) for one in found["deferred"]),
                is_finished=found["finished"] is True,
                statistics=Statistics.of(found["statistics"]),
            )
        except MALFORMED as error:
            raise CorruptDataError("the progress of a task cannot be read: report it") from error


def _encode_base64(found: bytes) -> str:
    return b64encode(found).decode()


def _decode_base64(text: str) -> bytes:
    return b64decode(text, validate=True)
