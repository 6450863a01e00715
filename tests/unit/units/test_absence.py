"""A job that comes and goes while a driver reads its rows is noticed, whatever replies and commits are lost."""

from __future__ import annotations

import pytest

from holdfast.errors import FencedError, InputChangedError, OutcomeUnknownError, UnavailableError
from holdfast.records.keys import ABSENCE
from holdfast.runtime import Environment
from holdfast.runtime.simulated import CountingIds, StillClock
from holdfast.transactions.base import ABSENT, Backend
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.job_input import JobInput, TaskInput
from holdfast.units.jobs import MAP, Job, begin_job, forget_job, job_key, list_jobs, note_absence
from tests.forgetful_database import ForgetfulDatabase
from tests.units_world import Shaky, fail_at

KEY = job_key("job")
ENVIRONMENT = Environment(clock=StillClock(), ids=CountingIds())


def begin(database: Backend, absence: int | None, *, rows: int = 0, keys: str = "") -> Job:
    found = JobInput([TaskInput(rows)])
    return begin_job(
        database, "job", kind=MAP, shards=1, environment=ENVIRONMENT, keys=keys, job_input=found, absence=absence
    )


def forget(database: Backend) -> None:
    forget_job(database, "job", ENVIRONMENT)


def test_drivers_that_read_their_rows_at_the_same_time_share_a_job() -> None:
    db = MemoryBackend(CountingIds())
    first, second = note_absence(db, KEY), note_absence(db, KEY)
    job = begin(db, first)
    assert begin(db, second) == job
    assert note_absence(db, KEY) == first == job.absence
    assert begin(db, ABSENT) == job, "as if a failover had lost the note"
    assert db.scan(ABSENCE, ABSENCE + b"\xff", 1).records == []


@pytest.mark.parametrize("noted", ["before the job", "during the job"])
@pytest.mark.parametrize("others", [False, True])
def test_nobody_begins_a_job_again_that_was_forgotten_meanwhile(noted: str, others: bool) -> None:
    db = MemoryBackend(CountingIds())
    absence = note_absence(db, KEY)
    begin(db, absence)
    if noted == "during the job":
        absence = note_absence(db, KEY)
    forget(db)
    newer = note_absence(db, KEY) if others else None
    with pytest.raises(FencedError, match="the job was forgotten meanwhile"):
        begin(db, absence)
    assert list_jobs(db) == []
    begin(db, note_absence(db, KEY) if newer is None else newer)


@pytest.mark.parametrize("noted", ["before the job", "during the job"])
def test_a_job_that_was_forgotten_and_has_begun_anew_with_other_rows_is_none_to_go_on_with(noted: str) -> None:
    """What the old job has done is not known: to run "those that it did not have" would double some of them."""
    db = MemoryBackend(CountingIds())
    absence = note_absence(db, KEY)
    begin(db, absence, rows=5)
    if noted == "during the job":
        absence = note_absence(db, KEY)
    forget(db)
    again = begin(db, note_absence(db, KEY), rows=3)
    for rows, keys in ((5, ""), (3, "another")):
        with pytest.raises(FencedError, match="look at what its units have written before you run it again"):
            begin(db, absence, rows=rows, keys=keys)
    assert begin(db, absence, rows=3) == again
    with pytest.raises(InputChangedError, match="the job began with other rows"):
        begin(db, again.absence, rows=5)


@pytest.mark.parametrize("fault", ["lost with effect", "lost without effect"])
def test_a_reply_that_is_lost_changes_nothing(fault: str) -> None:
    inner = MemoryBackend(CountingIds())
    noting, beginning = Shaky(inner), Shaky(inner)
    fail_at(noting, 2, fault)
    absence = note_absence(noting, KEY)
    fail_at(beginning, 3, fault)
    assert [begin(beginning, absence)] == list_jobs(inner)
    assert (noting.calls[1], beginning.calls[2]) == ("commit", "commit")


def test_a_database_that_loses_each_reply_is_given_up() -> None:
    shaky = Shaky(MemoryBackend(CountingIds()))

    def lose(_number: int, name: str) -> None:
        if name == "commit":
            raise OutcomeUnknownError("the reply was lost")

    shaky.before = lose
    with pytest.raises(UnavailableError, match="run the job again later"):
        note_absence(shaky, KEY)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_database_that_loses_the_note_or_the_begin(lost: int) -> None:
    """The begin alone is done again; without the note, nobody knows whether there was a job."""
    database = ForgetfulDatabase(keeps=False)
    database.forget_nothing_before()
    absence = note_absence(database, KEY)
    losses = [lost]

    def lose(_number: int, name: str) -> None:
        if name == "make_durable" and losses:
            database.forget(losses.pop())

    shaky = Shaky(database, lose)
    if lost == 1:
        assert [begin(shaky, absence)] == list_jobs(database)
    else:
        with pytest.raises(FencedError, match="or the database has lost it"):
            begin(shaky, absence)
    assert not losses
