"""Record how far a task is: the last unit that it has taken up, and those before it that are put off.

A plain counter, as in paper 003 (4.5.1), is wrong with the paper's own queue of conflicts (4.5.3): once unit 7 is put
off and unit 8 has committed, "8" says nothing about unit 7. So the record names the units that are put off. It is
written by the same commit as the units that it says are done.

Units come in the order of their ids, never by position: after a shuffle, positions are not repeatable (SPARK-23207).
That every attempt gets the same units is what `job_input` sees to.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.errors import CorruptDataError
from holdfast.records.keys import id_bytes
from holdfast.records.kinds import COUNTER, PROGRESS
from holdfast.units.statistics import Statistics

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
    """Return the key of the progress of a task."""
    return PROGRESS + id_bytes(job_id) + id_bytes(shard)


def progress_range(job_id: int) -> tuple[bytes, bytes]:
    """Return the range of the progress of all tasks of a job."""
    prefix = PROGRESS + id_bytes(job_id)
    return prefix, prefix + b"\xff" * 9


def counter_key(job_id: int, slot: int) -> bytes:
    """Return the key of the number of units that a worker of a work list has done."""
    return COUNTER + id_bytes(job_id) + id_bytes(slot)


def counter_range(job_id: int) -> tuple[bytes, bytes]:
    """Return the range of these numbers of all workers of a job."""
    prefix = COUNTER + id_bytes(job_id)
    return prefix, prefix + b"\xff" * 9


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """How far a task is.

    Attributes:
        last: id of the last unit that is done or put off; empty before the first. All up to it are done, except for
            `deferred`.
        done: how many units are done.
        deferred: ids of units that were put off, in order.
        is_finished: whether all units of the task are done.
        statistics: of all attempts at the task, as far as they could be recorded: an attempt that dies takes with it
            what it has counted since its last commit.
    """

    last: bytes = b""
    done: int = 0
    deferred: Sequence[bytes] = ()
    is_finished: bool = False
    statistics: Statistics

    @property
    def figures(self) -> Statistics:
        """The statistics, with the exact number of units."""
        return replace(self.statistics, units=self.done)

    def to_bytes(self) -> bytes:
        """Return the value of the record."""
        found = {
            "last": _text(self.last),
            "done": self.done,
            "deferred": [_text(one) for one in self.deferred],
            "finished": self.is_finished,
            "statistics": self.statistics.to_json(),
        }
        return _JSON(found).encode()

    @staticmethod
    def of(value: bytes) -> TaskProgress:
        """Return the progress in a record.

        Raises:
            CorruptDataError: it is damaged.
        """
        try:
            found = json.loads(value)
            return TaskProgress(
                last=_bytes(found["last"]),
                done=int(found["done"]),
                deferred=tuple(_bytes(one) for one in found["deferred"]),
                is_finished=found["finished"] is True,
                statistics=Statistics.of(found["statistics"]),
            )
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise CorruptDataError("the progress of a task cannot be read: report it") from error


def _text(found: bytes) -> str:
    return b64encode(found).decode()


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)
