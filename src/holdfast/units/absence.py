"""Note that a job does not exist, while a driver reads the rows with which it will begin the job.

That takes long, and the driver may stand still meanwhile. If another driver runs the whole job then, and somebody
forgets it, nothing of it is left, and the first one would run it a second time. So a driver that finds no job leaves a
note before it reads its rows, or finds that of another driver. Who begins the job takes the note away, and nobody
begins it without the very note that it has seen. The job keeps the version of the note from which it was begun: so a
driver also tells it from a later one with its name.
"""

from __future__ import annotations

import json
from contextlib import suppress

from holdfast.errors import FencedError, OutcomeUnknownError, UnavailableError
from holdfast.records.kinds import ABSENCE, JOB
from holdfast.transactions.base import ABSENT, Backend, Commit
from holdfast.transactions.transaction import Transaction
from holdfast.units.progress import GONE

_TRIES = 20


def note_absence(database: Backend, job: bytes) -> int:
    """Note that a job does not exist; return the version of the note, or that of the one from which the job was begun.

    Args:
        job: the key of its record.

    Raises:
        UnavailableError: one reply after the other is lost.

    Crash: the note stays until a job with this name begins.
    """
    note = _note_key(job)
    for _ in range(_TRIES):
        found = database.get_many([job, note])
        if job in found:
            return _absence_of(found[job].value)
        if note in found:
            return found[note].version
        with suppress(OutcomeUnknownError):  # the next look shows it
            database.commit(Commit(reads={job: ABSENT, note: ABSENT}, puts={note: b""}))
    raise UnavailableError("the database loses one reply after the other: run the job again later")


def _absence_of(job: bytes) -> int:
    """Return from which note a job was begun, by the value of its record; `ABSENT` if from none."""
    try:
        return int(json.loads(job).get("absence", ABSENT))
    except (ValueError, TypeError, AttributeError):  # who reads the job says that it is damaged
        return ABSENT


def require_absence(transaction: Transaction, job: bytes, version: int) -> None:
    """Check, in the transaction that begins a job, that it has not come and gone since `note_absence`.

    Raises:
        FencedError: it has.
    """
    record = transaction.get(_note_key(job))
    if record is None or record.version != version:
        raise FencedError(GONE)
    transaction.delete(_note_key(job))


def _note_key(job: bytes) -> bytes:
    return ABSENCE + job[len(JOB) :]
