"""Keep the jobs of a database: a name, what is to be done, and whether that is finished."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    InputChangedError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.records.batches import read_records
from holdfast.records.keys import ABSENCE, JOB, new_id
from holdfast.records.row_keys import integer_of
from holdfast.runtime import Environment
from holdfast.transactions.base import ABSENT, Backend, Commit, Record, SnapshotReader
from holdfast.transactions.retry import run_until_known
from holdfast.transactions.transaction import Transaction
from holdfast.units.job_input import JobInput
from holdfast.units.progress import (
    GONE,
    GONE_FROM_LIST,
    Statistics,
    TaskProgress,
    counter_key,
    counter_range,
    progress_key,
    progress_range,
)
from holdfast.units.work_list import WorkList
from holdfast.wording import nearest

T = TypeVar("T")

MAP, REDUCE, WORK_LIST = "map", "reduce", "work list"
"""Kinds of jobs."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
_MOST_SHARDS = 100_000
_TRIES = 10
_NOTE_TRIES = 20
_MOST_RUNS = 100
"""Failed runs that are remembered: the attempts of older ones are dead."""


def job_key(name: object) -> bytes:
    """Return the key of a job.

    Raises:
        InvalidRequestError: no job has such a name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError(
            "the name of a job has 1 to 128 letters, digits, points, colons, hyphens and underscores: change it",
            job=name,
        )
    return JOB + name.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of computation units.

    Attributes:
        id: distinguishes it from a forgotten job with the same name.
        shards: number of tasks.
        kind: ``map``, ``reduce`` or ``work list``.
        keys: where the keys of the units come from: names and types of columns, or a work list; empty if it is all the
            same.
        units: how many units it has; None if nobody knows.
        digest: of its input; empty if it has none that is fixed.
        batch: tells the batch of a stream from another one that has its number; empty if nothing does.
        absence: the version of the note of its absence from which it was begun; `ABSENT` if there was none.
        began_s: when it began, seconds since the epoch.
        ended_s: when it was finished; None if it is not.
        report: what was known about it at its end.
        ended_runs: those that have failed: nothing that still runs for them takes effect.
    """

    name: str
    id: int
    shards: int
    kind: str
    began_s: float
    keys: str = ""
    units: int | None = None
    digest: str = ""
    batch: str = ""
    absence: int = ABSENT
    ended_s: float | None = None
    report: Mapping[str, object] = field(default_factory=dict)
    ended_runs: Sequence[str] = ()

    @property
    def is_finished(self) -> bool:
        """Whether all units are done."""
        return self.ended_s is not None

    def to_bytes(self) -> bytes:
        """Return the value of the record."""
        found = {
            "id": self.id,
            "shards": self.shards,
            "kind": self.kind,
            "keys": self.keys,
            "units": self.units,
            "digest": self.digest,
            "batch": self.batch,
            "absence": self.absence,
            "began": self.began_s,
            "ended": self.ended_s,
            "report": dict(self.report),
            "ended_runs": list(self.ended_runs),
        }
        return json.dumps(found).encode()

    @staticmethod
    def of(key: bytes, record: Record) -> Job:
        """Return the job in a record.

        Raises:
            CorruptDataError: it is damaged.
        """
        name = key[len(JOB) :].decode(errors="replace")
        try:
            found = json.loads(record.value)
            ended, units = found["ended"], found["units"]
            return Job(
                name=name,
                id=int(found["id"]),
                shards=int(found["shards"]),
                kind=str(found["kind"]),
                keys=str(found["keys"]),
                units=None if units is None else int(units),
                digest=str(found["digest"]),
                batch=str(found.get("batch", "")),
                absence=int(found.get("absence", ABSENT)),
                began_s=float(found["began"]),
                ended_s=None if ended is None else float(ended),
                report=dict(found["report"]),
                ended_runs=tuple(map(str, found["ended_runs"])),
            )
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise CorruptDataError("the record of a job cannot be read: report it", job=name) from error


def planned_tasks(
    reader: SnapshotReader, name: str, *, kind: str, shards: int | None, default: int, keys: str = ""
) -> int:
    """Return how many tasks a job has, or will have: to know it before the input is read.

    Raises: like `begin_job`; but another number of tasks is an `InputChangedError`.
    """
    shards = None if shards is None else _checked_shards(shards)
    job = _find(reader, name)
    if job is None:
        return shards or default
    _require_same(reader, job, kind=kind, shards=shards, keys=keys)
    return job.shards


def begin_job(
    database: Backend,
    name: str,
    *,
    kind: str,
    shards: int,
    environment: Environment,
    keys: str = "",
    job_input: JobInput | None = None,
    batch: str = "",
    absence: int | None = None,
) -> Job:
    """Create a job, or return the one that has this name, to go on with it.

    Guarantee: all tasks of a job have a record of their progress, from its begin until it is forgotten. A job has the
    input with which it was created, and is returned for no other. That is durable, also if the database makes other
    commits durable later.

    Args:
        shards: number of tasks; see `planned_tasks`.
        keys, batch: see `Job`.
        job_input: all units; None if they are not known.
        absence: what `note_absence` has returned before the driver read its rows; None if nobody else knows the name.

    Raises:
        InvalidRequestError: the name is not valid.
        InputChangedError: the job exists with another input or other keys, or is of another kind.
        ConflictError: the job exists, and has another number of tasks.
        FencedError: since `note_absence`, the job was forgotten, or it began and was forgotten; also if another one has
            its name by now, unless that has the same input.
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """
    key = job_key(name)
    shards = _checked_shards(shards)
    new = Job(
        name=name,
        id=new_id(environment.ids),
        shards=shards,
        kind=kind,
        keys=keys,
        units=None if job_input is None else job_input.units,
        digest="" if job_input is None else job_input.digest,
        batch=batch,
        absence=ABSENT if absence is None else absence,
        began_s=environment.clock.now_s(),
    )

    def begin(transaction: Transaction) -> Job:
        found = _find(transaction, name)
        if found is not None:
            return found
        if absence is not None:
            require_absence(transaction, key, absence)
        transaction.insert(key, new.to_bytes())
        start = TaskProgress(statistics=Statistics()).to_bytes()
        for shard in range(new.shards):
            transaction.put(progress_key(new.id, shard), start)
        return new

    job = _durably(database, begin, environment, name, _stays)
    try:
        _require_begun(database, job, new)
    except (InputChangedError, ConflictError):
        if absence is not None and absence != job.absence:
            # The job that was seen, or noted as absent, was forgotten, and this one knows nothing of what it has done.
            raise FencedError(GONE, job=name) from None
        raise
    return job


def _require_begun(reader: SnapshotReader, job: Job, given: Job) -> None:
    """Check that the job that exists is the one that was to begin.

    Raises:
        InvalidRequestError, InputChangedError, ConflictError: see `begin_job`.
    """
    _require_same(reader, job, kind=given.kind, shards=None, keys=given.keys)
    if job.shards != given.shards:  # `planned_tasks` has found no job, or one that was forgotten since
        raise ConflictError(
            "another driver began the job meanwhile, with another number of tasks: run it again without a number, and "
            "it goes on",
            job=job.name,
            tasks=job.shards,
        )
    if job.digest != given.digest or _is_another_batch(job, given):
        raise other_rows(job, given=given.units)


def _is_another_batch(job: Job, given: Job) -> bool:
    """Return whether a batch has the keys of the one that has begun, but was made anew: its values may be others."""
    return "" not in (job.batch, given.batch) and job.batch != given.batch


def other_rows(job: Job, **variables: object) -> InputChangedError:
    """Return the error of a job that is given other rows than those with which it began."""
    sentence = (
        "the job is finished, and had other rows: run those that no job of this function had, and only those, under"
        " another name"
        if job.is_finished
        else "the job began with other rows, so nothing of these has run: finish it with the old ones, and run"
        " those that no job of this function had under another name"
    )
    if job.kind == REDUCE:
        sentence += "; if the function puts what it makes of all rows of a key, run all rows of these keys"
    return InputChangedError(sentence, job=job.name, **variables)


def _require_same(reader: SnapshotReader, job: Job, *, kind: str, shards: int | None, keys: str) -> None:
    """Check that a job is the one to be run.

    Raises:
        InvalidRequestError, InputChangedError: see `begin_job`.
    """
    shown: dict[str, object]
    if job.kind != kind:
        sentence, shown = "the job exists, and is of another kind: run it as it was", {"kind": job.kind}
    elif shards is not None and job.shards != shards:
        sentence = "the job has another number of tasks: leave the number out to go on with it"
        shown = {"tasks": job.shards}
    elif job.keys != keys:
        sentence = "the job has another key: give the columns, pairs or work list with which it began"
        shown = {"key": job.keys, "given": keys}
    else:
        return
    if WORK_LIST in (kind, job.kind):  # what was on a work list runs once, whatever the names of its jobs
        or_else = ", or choose another name"
    elif (job.is_finished and job.units != 0) or any(task.done for task in read_progress(reader, job)):
        or_else = "; choose another name only if this job does something else, since it would run again what is done"
    else:
        or_else = ", or, if nobody runs it, choose another name"
    raise InputChangedError(f"{sentence}{or_else}", job=job.name, **shown)


def _checked_shards(shards: object) -> int:
    number = integer_of(shards)
    if number is None or not 1 <= number <= _MOST_SHARDS:
        raise InvalidRequestError(f"a job has 1 to {_MOST_SHARDS} tasks: change the number", tasks=shards)
    return number


def end_job(
    database: Backend,
    job: Job,
    report: Mapping[str, object],
    environment: Environment,
    work: WorkList | None = None,
) -> Job:
    """Record that a job is finished; all its tasks have said so. The records of their progress are deleted.

    Guarantee: all its units have taken effect, and nothing is left on its work list, in the step in which it ends: what
    the tasks have said may have been undone. Attempts that still run fail with their next commit. The end is durable.

    Args:
        work: the work list, if it has one.

    Raises:
        ConflictError: units are left. The database has lost what a task had made durable, as a replica without it has
            taken over, or it was restored; or somebody has added to the list, or has forgotten the job. Run it again.
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """
    ended_s = environment.clock.now_s()

    def end(transaction: Transaction) -> Job:
        found = _find(transaction, job.name)
        if found is None or found.id != job.id:
            raise ConflictError(GONE if work is None else GONE_FROM_LIST, job=job.name)
        if found.is_finished:
            return found
        _require_end(transaction, job, work)
        ended = replace(found, ended_s=ended_s, report=report)
        transaction.put(job_key(job.name), ended.to_bytes())
        _delete_progress(transaction, job)
        return ended

    return _durably(database, end, environment, job.name, _stays)


def _require_end(transaction: Transaction, job: Job, work: WorkList | None) -> None:
    """Check that all units of a job are done, and see to it that the commit checks this, too.

    Raises:
        ConflictError: see `end_job`.
    """
    progress = transaction.get_many([progress_key(job.id, shard) for shard in range(job.shards)])
    if not all(TaskProgress.of(record.value).is_finished for record in progress.values()):
        raise ConflictError(
            "the database has lost units of the job, in a failover or a restore: run the job again with its name, and "
            "it goes on",
            job=job.name,
        )
    if work is not None and transaction.scan(*work.range, 1, guard=work.definition_key):
        raise ConflictError(
            "the work list is not empty: the database has lost units, in a failover or a restore, or somebody has added"
            " to the list meanwhile: run the job again with its name, and it goes on",
            job=job.name,
            list=work.name,
        )


def end_run(database: Backend, job: Job, run: str, environment: Environment) -> None:
    """Record that a run of a job has failed, so that its attempts at tasks stop.

    Guarantee: when this returns, no unit of a task's attempt in this run takes effect anymore, wherever it runs: the
    record of each task's progress has another version, and who reads it again finds that the run has ended. Workers of
    a work list get no new claims; those that they have are dissolved by `dissolve_all`. That is durable.

    Raises:
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """

    def is_over(found: Job | None) -> bool:
        # Without the records of the progress, nothing takes effect either.
        return found is None or found.id != job.id or found.is_finished or run in found.ended_runs

    def end(transaction: Transaction) -> None:
        found = _find(transaction, job.name)
        if found is None or is_over(found):
            return
        runs = (*found.ended_runs, run)[-_MOST_RUNS:]
        transaction.put(job_key(job.name), replace(found, ended_runs=runs).to_bytes())
        for shard in range(job.shards):
            transaction.add(progress_key(job.id, shard), 0)  # gives it another version, and reads nothing

    _durably(database, end, environment, job.name, lambda _ended, found: is_over(found))


def require_run(job: Job, run: str) -> None:
    """Check that a run goes on.

    Raises:
        FencedError: it has ended.
    """
    if run in job.ended_runs:
        raise FencedError("the run of the job has failed, and its other tasks stop")


def find_job(database: SnapshotReader, name: str) -> Job:
    """Return a job.

    Raises:
        NotFoundError: the database has no such job.
    """
    job = _find(database, name)
    if job is None:
        raise _missing(database, name)
    return job


def _find(reader: SnapshotReader | Transaction, name: str) -> Job | None:
    key = job_key(name)
    record = reader.get_many([key]).get(key)
    return None if record is None else Job.of(key, record)


def _missing(database: SnapshotReader, name: str) -> NotFoundError:
    known = [job.name for job in list_jobs(database)]
    hint = nearest(name, known) if known else "there are none"
    return NotFoundError(f"the database has no such job: {hint}", job=name)


def require_running(database: SnapshotReader, job: Job, run: str) -> int:
    """Return the version of the record of a work list's job that is not finished or forgotten, and whose run goes on.

    Raises:
        FencedError: it is.
    """
    key = job_key(job.name)
    record = database.get_many([key]).get(key)
    found = None if record is None else Job.of(key, record)
    if record is None or found is None or found.id != job.id:
        raise FencedError(GONE_FROM_LIST)
    if found.is_finished:
        raise FencedError("the job is finished: nothing is left to do")
    require_run(found, run)
    return record.version


def list_jobs(database: SnapshotReader) -> list[Job]:
    """Return all jobs, by name."""
    return [Job.of(key, record) for key, record in read_records(database, JOB, JOB + b"\xff")]


def read_progress(database: SnapshotReader, job: Job) -> list[TaskProgress]:
    """Return the progress of all tasks of a job that is not finished; for a work list, with what each has done."""
    found = [TaskProgress.of(record.value) for _key, record in read_records(database, *progress_range(job.id))]
    if job.kind != WORK_LIST:
        return found
    done = {key: record.number for key, record in read_records(database, *counter_range(job.id))}
    counts = [done.get(counter_key(job.id, slot), 0) for slot in range(len(found))]
    return [replace(one, done=count) for one, count in zip(found, counts, strict=True)]


def forget_job(database: Backend, name: str, environment: Environment) -> None:
    """Delete the records of a job, so that its name can be used again. What its units have written stays.

    Guarantee: tasks of the job that still run fail with their next commit; workers of a work list end the items that
    they have claimed first, and leave a record of their number. That is durable.

    Raises:
        NotFoundError: the database has no such job.
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """

    seen: set[int] = set()

    def forget(transaction: Transaction) -> None:
        job = _find(transaction, name)
        if job is None and not seen:
            raise _missing(database, name)
        if job is None or (seen and job.id not in seen):
            return  # the reply was lost, but the job is forgotten; another one may have its name by now
        seen.add(job.id)
        transaction.delete(job_key(name))
        _delete_progress(transaction, job)

    _durably(database, forget, environment, name, lambda _done, found: found is None or found.id not in seen)


def _delete_progress(transaction: Transaction, job: Job) -> None:
    for shard in range(job.shards):
        transaction.delete(progress_key(job.id, shard))
        transaction.delete(counter_key(job.id, shard))


def _stays(job: Job, found: Job | None) -> bool:
    """Whether the record of a job still says at least what a transaction has returned."""
    return found is not None and found.id == job.id and (found.is_finished or not job.is_finished)


def _durably(
    database: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    name: str,
    is_there: Callable[[T, Job | None], bool],
) -> T:
    """Repeat a transaction about a job until its effect is durable.

    A database that crashed before it was asked for that, and is up again, has perhaps lost the commit.

    Args:
        is_there: whether the effect is still there, given what the transaction has returned, and the job as it is now.

    Raises:
        UnavailableError: it loses one commit after the other.
    """
    for _ in range(_TRIES):
        result = run_until_known(database, function, environment, lost_replies=_TRIES)
        database.make_durable()
        if is_there(result, _find(database, name)):
            return result
    raise UnavailableError("the database loses what it has committed: repeat later", job=name)


def note_absence(database: Backend, job: bytes) -> int:
    """Note that a job does not exist; return the version of the note, or that of the one from which the job was begun.

    Args:
        job: the key of its record.

    Raises:
        UnavailableError: one reply after the other is lost.

    Crash: the note stays until a job with this name begins.
    """
    note = _note_key(job)
    for _ in range(_NOTE_TRIES):
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
