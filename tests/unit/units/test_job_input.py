"""Fix the input of a job, and hold attempts to it: a unit that is not in the input never runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from holdfast.errors import FencedError, InputChangedError, InvalidRequestError
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend
from holdfast.transactions.memory import MemoryBackend
from holdfast.units import job_input
from holdfast.units.job_input import JobInput, TaskInput, digest_task_units, iter_verified_units
from holdfast.units.jobs import MAP, REDUCE, Job, begin_job, end_job, find_job, forget_job, list_jobs, record_job_input
from holdfast.units.progress import progress_range
from holdfast.units.unit import Unit, encode_unit_id
from tests.clocks import CountingIds
from tests.forgetful_database import ForgetfulDatabase
from tests.units_world import Shaky, fail_at, finish


def survey(keys: Iterable[int], *, repeats: bool = False) -> TaskInput:
    return digest_task_units(map(encode_unit_id, keys), repeats=repeats)


def passed(keys: Iterable[int], expected: TaskInput, rows: int = 1) -> Iterator[object]:
    return (unit.key for unit in iter_verified_units(((Unit.of(key, None), rows) for key in keys), expected))


# --- the first pass ---------------------------------------------------------------------------------------------------
def test_other_units_have_another_digest() -> None:
    """A missing, a new or another unit changes it, and so does its task."""
    found = [
        [range(100), range(50)],
        [range(99), range(50)],
        [range(101), range(50)],
        [[*range(99), 100], range(50)],
        [range(50), range(100)],
        [range(100), []],
        [[], range(100)],
    ]
    assert len({JobInput([survey(keys) for keys in tasks]).digest for tasks in found}) == len(found)
    first, again = (JobInput([survey(keys) for keys in found[0]]) for _ in range(2))
    assert (first.digest, first.units) == (again.digest, 150)
    assert first.digest == "7851d13cdcb974da017820a9d9466968", "jobs that began before an upgrade go on after it"


def test_other_numbers_of_rows_have_another_digest() -> None:
    given = [[1, 2, 2, 3], [1, 2, 3, 3], [1, 2, 3], [1, 2, 2, 2, 3]]
    assert len({survey(keys, repeats=True) for keys in given}) == len(given)
    assert {survey(keys, repeats=True).units for keys in given} == {3}
    assert survey([1, 2, 3], repeats=True) == survey([1, 2, 3])


@pytest.mark.parametrize("keys", [[1, 1], [1, 1, 2], [1, 2, 2], [*range(200), 199]])
def test_a_key_that_occurs_twice_is_refused(keys: list[int]) -> None:
    with pytest.raises(InvalidRequestError, match=r"two units have the same key.* unit=\d+$"):
        survey(keys)


def test_another_order_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"not sorted.*unit=1 after=2"):
        survey([2, 1])


def test_the_input_of_a_task_becomes_bytes_and_back() -> None:
    for keys in ([], range(3), range(1000)):
        assert TaskInput.of(survey(keys).to_bytes()) == survey(keys)


def test_digests_of_many_units_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks grow: twice as many units need one more lot of digests."""
    monkeypatch.setattr(job_input, "_FIRST_ROWS", 4)
    monkeypatch.setattr(job_input, "_BLOCKS_OF_A_SIZE", 8)
    sizes = [len(survey(range(32 * (2**more - 1))).digests) for more in range(1, 8)]
    assert sizes == [8 * 8 * more for more in range(1, 8)]
    assert list(passed(range(4000), survey(range(4000)))) == list(range(4000))


# --- the second pass --------------------------------------------------------------------------------------------------
SIZES = (0, 1, 63, 64, 65, 128, 1000)


@pytest.mark.parametrize("size", SIZES)
def test_the_same_units_pass(size: int) -> None:
    assert list(passed(range(size), survey(range(size)))) == list(range(size))


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_units_of_many_rows_pass(rows: int) -> None:
    expected = survey((key for key in range(100) for _ in range(rows)), repeats=True)
    assert list(passed(range(100), expected, rows)) == list(range(100))
    with pytest.raises(InvalidRequestError, match="the rows have changed since"):
        list(passed(range(100), expected, rows + 1))


@pytest.mark.parametrize("size", SIZES)
def test_no_unit_passes_that_is_not_in_the_input(size: int) -> None:
    """Wherever the rows have changed: all units that pass before the error were seen by the first pass."""
    expected = survey(range(size))
    for at in {0, 1, 62, 63, 64, 65, size - 1, size} & set(range(size + 1)):
        rows = list(range(size))
        for changed in ([*rows[:at], 10_000], rows[:at] + rows[at + 1 :], [-1, *rows], [*rows, 10_000]):
            if changed == rows:
                continue
            seen: list[object] = []
            with pytest.raises(InvalidRequestError, match="the rows have changed since"):
                seen.extend(passed(sorted(changed), expected))  # keeps what came before the error
            assert set(seen) <= set(rows)
            assert len(seen) >= min(at, size) // 64 * 64 - 64 or changed[0] == -1


# --- the job ----------------------------------------------------------------------------------------------------------
def begin(database: Backend, keys: Iterable[int], kind: str = MAP) -> Job:
    found = JobInput([survey(keys)])
    return begin_job(database, "j", kind=kind, shards=1, job_input=found, environment=Environment())


def test_a_job_is_begun_with_one_input() -> None:
    db = MemoryBackend(CountingIds())
    job = begin(db, range(40))
    assert (job.units, begin(db, range(40))) == (40, job)
    with pytest.raises(InvalidRequestError, match=r"no job of this function had under another name job='j' given=60"):
        begin(db, range(60))
    finish(db, job)
    end_job(db, job, {}, Environment())
    with pytest.raises(
        InvalidRequestError, match=r"had other rows: run those that no job of this function had, and only.*given=60"
    ):
        begin(db, range(60))
    assert begin(db, range(40)).is_finished


@pytest.mark.parametrize("is_finished", [False, True])
def test_all_rows_of_a_key_are_advised_for_a_function_that_makes_one_value_of_them(*, is_finished: bool) -> None:
    db = MemoryBackend(CountingIds())
    job = begin(db, range(4), REDUCE)
    if is_finished:
        finish(db, job)
        end_job(db, job, {}, Environment())
    with pytest.raises(InvalidRequestError, match=r"under another name; if the function puts .*all rows of these keys"):
        begin(db, range(5), REDUCE)


def test_a_batch_that_was_made_anew_is_not_one_that_has_begun() -> None:
    """Its keys are the same, its values need not be: for keys that are done, they would be dropped."""
    db = MemoryBackend(CountingIds())

    def batch(made: str) -> Job:
        found = JobInput([survey(range(40))])
        return begin_job(db, "j", kind=MAP, shards=1, job_input=found, batch=made, environment=Environment())

    job = batch("1")
    assert [batch(made) for made in ("1", "")] == [job] * 2
    with pytest.raises(InputChangedError, match="began with other rows"):
        batch("2")
    finish(db, job)
    end_job(db, job, {}, Environment())
    assert [batch(made).is_finished for made in ("1", "")] == [True, True]
    with pytest.raises(InputChangedError, match="is finished, and had other rows"):
        batch("2")


@pytest.mark.parametrize("call", range(1, 5))
def test_of_two_drivers_with_different_rows_one_begins_the_job(call: int) -> None:
    db = MemoryBackend(CountingIds())
    other: list[object] = []

    def meanwhile(number: int, _name: str) -> None:
        if number == call:
            with suppress(InvalidRequestError):
                other.append(begin(db, range(60)).units)

    with suppress(InvalidRequestError):
        other.append(begin(Shaky(db, meanwhile), range(40)).units)
    assert other in ([40], [60])
    assert find_job(db, "j").units == other[0]


# --- between the begin and the input ----------------------------------------------------------------------------------
def begun(database: Backend, *, keys: str = "", shards: int | None = None) -> Job:
    return begin_job(database, "j", kind=MAP, keys=keys, shards=shards, environment=Environment())


def fixed(database: Backend, job: Job, rows: int = 4) -> Job:
    return record_job_input(database, job, JobInput([survey(range(rows))]), Environment())


def test_drivers_that_read_their_rows_at_the_same_time_share_a_job() -> None:
    db = MemoryBackend(CountingIds())
    first, second = begun(db), begun(db)
    assert first == second
    job = fixed(db, first)
    assert fixed(db, second) == job == begun(db)
    with pytest.raises(InputChangedError, match="the job began with other rows"):
        fixed(db, second, rows=5)


@pytest.mark.parametrize("was_fixed", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_job_that_was_forgotten_while_its_rows_were_read_is_not_begun_again(was_fixed: bool, again: bool) -> None:
    """What it has done is not known: also of another one that has its name by now, with the same rows."""
    db = MemoryBackend(CountingIds())
    job = begun(db)
    if was_fixed:
        fixed(db, begun(db))
    forget_job(db, "j", Environment())
    if again:
        fixed(db, begun(db))
    with pytest.raises(FencedError, match="look at what its units have written before you run it again"):
        fixed(db, job)
    assert len(list_jobs(db)) == again


@pytest.mark.parametrize("given", [{"keys": "another"}, {"shards": 3}])
def test_a_job_whose_rows_could_not_be_read_is_begun_anew_with_another_key(given: dict[str, Any]) -> None:
    db = MemoryBackend(CountingIds())
    first, second = begun(db), begun(db, **given)
    assert [job.id for job in list_jobs(db)] == [second.id]
    with pytest.raises(FencedError):
        fixed(db, first)
    fixed(db, second)
    with pytest.raises(InputChangedError, match="choose another name only if"):
        begun(db, keys="a third")
    assert len(db.scan(*progress_range(first.id), 9).records) == 0


@pytest.mark.parametrize("fault", ["lost with effect", "lost without effect"])
def test_a_reply_that_is_lost_changes_nothing(fault: str) -> None:
    inner = MemoryBackend(CountingIds())
    beginning, fixing = Shaky(inner), Shaky(inner)
    fail_at(beginning, 2, fault)
    fail_at(fixing, 2, fault)
    assert [fixed(fixing, begun(beginning))] == list_jobs(inner)
    assert (beginning.calls[1], fixing.calls[1]) == ("commit", "commit")


@pytest.mark.parametrize("lost", [1, 2])
def test_a_database_that_loses_the_input_or_the_begin(lost: int) -> None:
    """The input alone is fixed again; without the begin, it is not known whether there was a job."""
    database = ForgetfulDatabase(keeps=False)
    database.forget_nothing_before()
    job = begun(database)
    losses = [lost]

    def lose(_number: int, name: str) -> None:
        if name == "make_durable" and losses:
            database.forget(losses.pop())

    shaky = Shaky(database, lose)
    if lost == 1:
        assert [fixed(shaky, job)] == list_jobs(database)
    else:
        with pytest.raises(FencedError, match="or the database has lost it"):
            fixed(shaky, job)
    assert not losses
