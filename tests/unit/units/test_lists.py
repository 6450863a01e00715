"""Lists: what is added, dropped and made, by others too, and on a database that forgets."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pytest

from holdfast.errors import ConflictError, CorruptDataError, NotFoundError
from holdfast.records.batches import iter_records
from holdfast.records.database import Database
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit
from holdfast.units.work_list import create_work_list, drop_work_list, find_work_list, list_work_lists, open_work_list
from tests.forgetful_database import ForgetfulDatabase
from tests.unit.records.databases import memory_db
from tests.units_world import Death, Shaky, change_at, fail_at, refused_after_failovers


def test_what_a_failover_loses_while_items_are_added_is_no_success() -> None:
    def add(db: Database) -> None:
        items = open_work_list(db, "list")
        assert items.add_many((key, key) for key in range(1100)) == 1100
        assert items.counts() == (1100, 0)

    def prepare(db: Database) -> None:
        open_work_list(db, "list", create=True)

    assert refused_after_failovers(prepare, add, "call it again with the same values") > 6


@pytest.mark.parametrize("count", [0, 100])
def test_a_list_whose_drop_a_failover_undoes_is_not_reported_as_dropped_and_loses_nothing(count: int) -> None:
    def prepare(db: Database) -> None:
        open_work_list(db, "list", create=True).add_many((key, None) for key in range(count))

    def drop(db: Database) -> None:
        items = open_work_list(db, "list")
        assert items.counts() == (count, 0)
        items.drop()
        with db.snapshot() as seen:
            assert not list_work_lists(seen.reader)

    assert refused_after_failovers(prepare, drop, "drop it again") > 0


def test_a_failover_leaves_nothing_of_a_dropped_list_that_is_not_collected() -> None:
    """Before each call, with each number of lost commits: as many as the drop makes, also those that delete items."""
    left = 0
    quiet, _db = _list_to_drop()
    for call in range(1, len(quiet.calls) + 1):
        for lost in range(1, quiet.calls.count("commit") + 1):
            shaky, db = _list_to_drop(call, lost)
            left += bool(db.backend.scan(b"S", b"T", 1).records)
            db.collect()
            for found in list_work_lists(db.backend):
                open_work_list(db, found.name).drop()
            assert not db.backend.scan(b"S", b"T", 1).records, f"{lost} lost before {shaky.calls[call - 1]} {call}"
    assert left > 3


def _list_to_drop(call: int = 0, lost: int = 0) -> tuple[Shaky, Database]:
    """Drop a list on a database that loses commits before a call."""
    database = ForgetfulDatabase(keeps=False)
    db = Database(database, "memory://", Environment())
    open_work_list(db, "list", create=True).add_many((key, "x" * 100) for key in range(500))
    list_ = find_work_list(database, "list")
    database.commit(Commit(puts={list_.heartbeat_key(list_.claim_key(1, "token")): b""}))
    database.forget_nothing_before()
    shaky = Shaky(database, change_at(call, lambda: database.forget(min(lost, database.newest))))
    with suppress(ConflictError):  # the drop itself is lost
        drop_work_list(shaky, "list", Environment())
    return shaky, db


def test_what_the_death_of_its_process_left_of_a_dropped_list_is_collected() -> None:
    for call in count(1):
        db = memory_db()
        open_work_list(db, "list", create=True).add_many((key, None) for key in range(300))
        shaky = Shaky(db.backend)
        fail_at(shaky, call, "dies later")
        with suppress(Death):
            drop_work_list(shaky, "list", db.environment)
            break
        if not list_work_lists(db.backend):
            db.collect()
            assert not db.backend.scan(b"S", b"T", 1).records, call
    assert call > 5


def test_a_list_that_others_make_while_one_of_its_name_is_dropped_stays() -> None:
    other = memory_db()
    shaky = Shaky(other.backend)
    items = open_work_list(Database(shaky, "memory://", Environment()), "list", create=True)
    items.add("a")
    old = find_work_list(shaky, "list")
    shaky.commit(Commit(puts={old.heartbeat_key(old.claim_key(1, "token")): b""}))
    shaky.calls.clear()

    def make(_number: int, name: str) -> None:
        if name == "commit" and shaky.calls.count(name) == 1:
            open_work_list(other, "list", create=True).add("b")

    shaky.after = make
    items.drop()
    assert open_work_list(other, "list").counts() == (1, 0)
    assert not [*iter_records(shaky, *old.range), *iter_records(shaky, *old.heartbeats_range)]


def test_of_two_who_drop_a_list_one_is_told_that_it_is_gone() -> None:
    other = memory_db()
    shaky = Shaky(other.backend)
    items = open_work_list(Database(shaky, "memory://", Environment()), "list", create=True)
    shaky.calls.clear()
    shaky.before = change_at(2, open_work_list(other, "list").drop)
    with pytest.raises(NotFoundError, match="dropped meanwhile"):
        items.drop()


def test_a_work_list_that_exists_is_returned_if_that_is_allowed() -> None:
    db = memory_db()
    created = create_work_list(db.backend, "todo", db.environment)
    assert create_work_list(db.backend, "todo", db.environment, exist_ok=True) == created
    with pytest.raises(ConflictError, match="the work list exists"):
        create_work_list(db.backend, "todo", db.environment)


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"id": true}', b'{"id": -1}', b'{"id": %d}' % 2**63])
def test_a_damaged_definition_is_told(value: bytes) -> None:
    db = memory_db()
    created = create_work_list(db.backend, "todo", db.environment)
    db.backend.commit(Commit(puts={created.definition_key: value}))
    with pytest.raises(CorruptDataError, match="definition of a work list"):
        find_work_list(db.backend, "todo")
