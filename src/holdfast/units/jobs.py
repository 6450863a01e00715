"""Keep the jobs of a database as records: name, kind, input, and whether the job is finished."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from holdfast.errors import (
    MALFORMED,
    ConflictError,
    CorruptDataError,
    FencedError,
    InputChangedError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from holdfast.records.batches import iter_records
from holdfast.records.keys import JOB, new_table_id
from holdfast.records.row_keys import to_python_integer
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Record, SnapshotReader
from holdfast.transactions.transaction import Transaction, run_transaction, run_until_known
from holdfast.units.job_input import JobInput
from holdfast.units.progress import (
    GONE,
    GONE_FROM_LIST,
    Statistics,
    TaskProgress,
    progress_key,
    progress_range,
    worker_unit_count_key,
    worker_unit_counts_range,
)
from holdfast.units.work_list import WorkList
from holdfast.wording import suggest_nearest

T = TypeVar("T")

MAP, REDUCE, WORK_LIST = "map", "reduce", "work list"
"""Kinds of jobs."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
_MOST_SHARDS = 100_000
_TRIES = 10
_MOST_RUNS = 100
"""Failed runs that are remembered: the attempts of older ones are dead."""


def job_key(name: object) -> bytes:
    """Return the key of the record of the job with a name.

    Raises:
        InvalidRequestError: no job can have such a name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError(
            "the name of a job has 1 to 128 letters, digits, points, colons, hyphens and underscores: change it",
            job=name,
        )
    return JOB + name.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The database's record of a job, which runs computation units.

    Attributes:
        id: distinguishes it from a forgotten job with the same name.
        shards: number of tasks.
        kind: ``map``, ``reduce`` or ``work list``.
        keys: where the keys of the units come from: names and types of columns, or a work list; empty if that does not
            matter.
        units: how many units it has; None if that is not known (yet).
        digest: of its input; empty if that is not fixed.
        batch: identifies a stream's batch, whose number alone may be used again; empty if the job is not a batch.
        began_s: when it began, seconds since the epoch.
        ended_s: when it was finished; None if it is not.
        report: the report at its end, as JSON values.
        ended_runs: ids of the runs that have failed: tasks that still run for them have no effect.
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
    ended_s: float | None = None
    report: Mapping[str, object] = field(default_factory=dict)
    ended_runs: Sequence[str] = ()

    @property
    def is_finished(self) -> bool:
        """Return whether all units are done, and the end is recorded."""
        return self.ended_s is not None

    @property
    def is_input_fixed(self) -> bool:
        """Return whether the job accepts no other input anymore: its input is fixed, or it has none (a work list)."""
        return self.units is not None or self.kind == WORK_LIST

    def to_bytes(self) -> bytes:
        """Return the value of the job's record."""
        found = {
            "id": self.id,
            "shards": self.shards,
            "kind": self.kind,
            "keys": self.keys,
            "units": self.units,
            "digest": self.digest,
            "batch": self.batch,
            "began": self.began_s,
            "ended": self.ended_s,
            "report": dict(self.report),
            "ended_runs": list(self.ended_runs),
        }
        return json.dumps(found).encode()

    @staticmethod
    def of(key: bytes, record: Record) -> Job:
        """Decode the job in a record.

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
                began_s=float(found["began"]),
                ended_s=None if ended is None else float(ended),
                report=dict(found["report"]),
                ended_runs=tuple(map(str, found["ended_runs"])),
            )
        except MALFORMED as error:
            raise CorruptDataError("the record of a job cannot be read: report it", job=name) from error


def begin_job(
    database: Backend,
    name: str,
    *,
    kind: str,
    environment: Environment,
    shards: int | None = None,
    default: int = 1,
    keys: str = "",
    batch: str = "",
    job_input: JobInput | None = None,
) -> Job:
    """Create a job, or return the existing job with this name, to go on with it.

    The driver then reads its rows, and calls `record_job_input`. Until a driver has called that, a call with
    another kind, number of tasks, key or batch starts the job anew.

    Guarantee: each task of a job has a progress record until the job is finished or forgotten. This is durable on
    return, even if the database delays the durability of its commits.

    Args:
        shards: number of tasks; None for the existing job's number, or `default` for a new job.
        keys, batch: see `Job`.
        job_input: all units, if they are known already.

    Raises:
        InvalidRequestError: the name or the number is not valid.
        InputChangedError: the job has begun with another input, kind, key, batch or number of tasks.
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """
    key = job_key(name)
    number = None if shards is None else _check_shards(shards)
    new = Job(
        name=name,
        id=new_table_id(environment.ids),
        shards=number or default,
        kind=kind,
        keys=keys,
        units=None if job_input is None else job_input.units,
        digest="" if job_input is None else job_input.digest,
        batch=batch,
        began_s=environment.clock.now_s(),
    )

    def insert_or_read_job(transaction: Transaction) -> Job:
        found = _find_job_record(transaction, name)
        if found is not None and (found.is_input_fixed or _different_job_error(found, new, number) is None):
            return found
        if found is not None:
            _delete_progress(transaction, found)
        transaction.put(key, new.to_bytes())
        start = TaskProgress(statistics=Statistics()).to_bytes()
        for shard in range(new.shards):
            transaction.put(progress_key(new.id, shard), start)
        return new

    job = _transact_durably(database, insert_or_read_job, environment, name, _is_effect_preserved)
    error = _different_job_error(job, new, number)
    if error is not None:
        raise error
    return job if job_input is None else record_job_input(database, job, job_input, environment)


def record_job_input(database: Backend, job: Job, job_input: JobInput, environment: Environment) -> Job:
    """Record the input of a job, unless it is recorded already, and return the job.

    Guarantee: a job has only one input, durably; the job is returned only if this is `job_input`.

    Raises:
        InputChangedError: the job has another input.
        FencedError: the job was forgotten since it was begun, even if a new job has its name.
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """

    def set_input(transaction: Transaction) -> Job:
        found = _find_job_record(transaction, job.name)
        if found is None or found.id != job.id:
            raise FencedError(GONE, job=job.name)
        if not found.is_input_fixed:
            found = replace(found, units=job_input.units, digest=job_input.digest)
            transaction.put(job_key(job.name), found.to_bytes())
        return found

    if not job.is_input_fixed:
        job = _transact_durably(database, set_input, environment, job.name, _is_effect_preserved)
    if job.digest != job_input.digest:
        raise changed_input_error(job, given=job_input.units)
    return job


def _different_job_error(job: Job, given: Job, shards: int | None) -> InputChangedError | None:
    """Return the error that a job is not the one to be run; None if it is."""
    shown: dict[str, object]
    if job.kind != given.kind:
        sentence, shown = "the job exists, and is of another kind: run it as it was", {"kind": job.kind}
    elif shards is not None and job.shards != shards:
        sentence = "the job has another number of tasks: leave the number out to go on with it"
        shown = {"tasks": job.shards}
    elif job.keys != given.keys:
        sentence = "the job has another key: give the columns, pairs or work list with which it began"
        shown = {"key": job.keys, "given": given.keys}
    elif "" not in (job.batch, given.batch) and job.batch != given.batch:
        return changed_input_error(job)  # Spark has made a batch anew that had this number: its values may be others
    else:
        return None
    return InputChangedError(
        f"{sentence}; choose another name only if this job does something else, since it would run again what is done",
        job=job.name,
        **shown,
    )


def changed_input_error(job: Job, **variables: object) -> InputChangedError:
    """Return the error for a job that is run with other rows than those with which it began."""
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


def _check_shards(shards: object) -> int:
    number = to_python_integer(shards)
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
    """Record that a job is finished, after all its tasks have reported their end, and delete the tasks' progress.

    Guarantee: the transaction that records the end checks that all units have taken effect and the work list is empty,
    since a failover may have undone what tasks have reported. Attempts that still run fail with their next commit. The
    end is durable.

    Args:
        report: what to keep about the job, as JSON values.
        work: the work list, if it has one.

    Raises:
        ConflictError: units are left, because the database has lost durable commits in a failover or restore, or the
            list has new items; or the job was forgotten. Run the job again.
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """
    ended_s = environment.clock.now_s()

    def mark_ended(transaction: Transaction) -> Job:
        found = _find_job_record(transaction, job.name)
        if found is None or found.id != job.id:
            raise ConflictError(GONE if work is None else GONE_FROM_LIST, job=job.name)
        if found.is_finished:
            return found
        _require_all_units_done(transaction, job, work)
        ended = replace(found, ended_s=ended_s, report=report)
        transaction.put(job_key(job.name), ended.to_bytes())
        _delete_progress(transaction, job)
        return ended

    return _transact_durably(database, mark_ended, environment, job.name, _is_effect_preserved)


def _require_all_units_done(transaction: Transaction, job: Job, work: WorkList | None) -> None:
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
            "the work list is not empty: the database has lost units, in a failover or a restore, or items were "
            "added meanwhile: run the job again with its name, and it goes on",
            job=job.name,
            list=work.name,
        )


def record_run_failure(database: Backend, job: Job, run: str, environment: Environment) -> None:
    """Record that a run of a job has failed, so that its attempts at tasks stop.

    Guarantee: when this returns, no unit of a task's attempt in this run takes effect anymore, wherever it runs: the
    record of each task's progress has another version, and an attempt that reads it again finds that the run has ended.
    Workers of a work list get no new claims; those that they have are released by `release_all_claims`. That is
    durable.

    Raises:
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """

    def is_job_over(found: Job | None) -> bool:
        # Without the records of the progress, nothing takes effect either.
        return found is None or found.id != job.id or found.is_finished or run in found.ended_runs

    def record_failure(transaction: Transaction) -> None:
        found = _find_job_record(transaction, job.name)
        if found is None or is_job_over(found):
            return
        runs = (*found.ended_runs, run)[-_MOST_RUNS:]
        transaction.put(job_key(job.name), replace(found, ended_runs=runs).to_bytes())
        for shard in range(job.shards):
            transaction.add(progress_key(job.id, shard), 0)  # gives it another version, and reads nothing

    _transact_durably(database, record_failure, environment, job.name, lambda _ended, found: is_job_over(found))


def require_running_run(job: Job, run: str) -> None:
    """Check that a run of a job has not ended.

    Raises:
        FencedError: it has ended.
    """
    if run in job.ended_runs:
        raise FencedError("the run of the job has failed, and its other tasks stop")


def find_job(database: SnapshotReader, name: str) -> Job:
    """Return the job with a name.

    Raises:
        NotFoundError: the database has no such job.
    """
    job = _find_job_record(database, name)
    if job is None:
        raise _missing_job_error(database, name)
    return job


def _find_job_record(reader: SnapshotReader | Transaction, name: str) -> Job | None:
    key = job_key(name)
    record = reader.get_many([key]).get(key)
    return None if record is None else Job.of(key, record)


def _missing_job_error(database: SnapshotReader, name: str) -> NotFoundError:
    known = [job.name for job in list_jobs(database)]
    hint = suggest_nearest(name, known) if known else "there are none"
    return NotFoundError(f"the database has no such job: {hint}", job=name)


def require_running_job(database: SnapshotReader, job: Job, run: str) -> int:
    """Check that a work list's job is not finished or forgotten, and its run goes on; return the version of its record.

    Raises:
        FencedError: it is finished or forgotten, or its run has ended.
    """
    key = job_key(job.name)
    record = database.get_many([key]).get(key)
    found = None if record is None else Job.of(key, record)
    if record is None or found is None or found.id != job.id:
        raise FencedError(GONE_FROM_LIST)
    if found.is_finished:
        raise FencedError("the job is finished: nothing is left to do")
    require_running_run(found, run)
    return record.version


def list_jobs(database: SnapshotReader) -> list[Job]:
    """Return all jobs of a database, by name."""
    return [Job.of(key, record) for key, record in iter_records(database, JOB, JOB + b"\xff")]


def read_task_progress(database: SnapshotReader, job: Job) -> list[TaskProgress]:
    """Return the progress of each task of a job that is not finished.

    For a work list, it has the number of units that each worker has done.
    """
    found = [TaskProgress.of(record.value) for _key, record in iter_records(database, *progress_range(job.id))]
    if job.kind != WORK_LIST:
        return found
    done = {key: record.number for key, record in iter_records(database, *worker_unit_counts_range(job.id))}
    counts = [done.get(worker_unit_count_key(job.id, slot), 0) for slot in range(len(found))]
    return [replace(one, done=count) for one, count in zip(found, counts, strict=True)]


def forget_job(database: Backend, name: str, environment: Environment) -> None:
    """Delete the records of a job, so that its name can be used again. What its units have written stays.

    Guarantee: tasks of the job that still run fail with their next commit; workers of a work list first finish their
    claimed items, and leave a record with their unit count. The deletion is durable.

    Raises:
        NotFoundError: the database has no such job.
        UnavailableError: the database went away, or loses what it has committed. Repeat later.
    """

    seen: set[int] = set()

    def delete_job(transaction: Transaction) -> None:
        job = _find_job_record(transaction, name)
        if job is None and not seen:
            raise _missing_job_error(database, name)
        if job is None or (seen and job.id not in seen):
            return  # the reply was lost, but the job is forgotten; another one may have its name by now
        seen.add(job.id)
        transaction.delete(job_key(name))
        _delete_progress(transaction, job)

    _transact_durably(
        database, delete_job, environment, name, lambda _done, found: found is None or found.id not in seen
    )


def delete_job_without_input(database: Backend, job: Job, environment: Environment) -> None:
    """Delete the records of a job whose rows were refused, unless another driver has fixed its input meanwhile."""

    def delete_if_without_input(transaction: Transaction) -> None:
        found = _find_job_record(transaction, job.name)
        if found is not None and found.id == job.id and not found.is_input_fixed:
            transaction.delete(job_key(job.name))
            _delete_progress(transaction, found)

    run_transaction(database, delete_if_without_input, environment)


def _delete_progress(transaction: Transaction, job: Job) -> None:
    for shard in range(job.shards):
        transaction.delete(progress_key(job.id, shard))
        transaction.delete(worker_unit_count_key(job.id, shard))


def _is_effect_preserved(job: Job, found: Job | None) -> bool:
    """Whether the record of a job still says at least what a transaction has returned."""
    return (
        found is not None
        and found.id == job.id
        and (found.is_finished or not job.is_finished)
        and job.digest in ("", found.digest)
    )


def _transact_durably(
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
        if is_there(result, _find_job_record(database, name)):
            return result
    raise UnavailableError("the database loses what it has committed: repeat later", job=name)
