"""Locks: which ones, in which order, and on nothing but the keys of the group."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from holdfast.transactions.base import ABSENT, Commit, Committed, Conflict, Progress, RangeCount
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import Link, connect
from holdfast.transactions.mysql.locking import Group
from holdfast.transactions.mysql.options import MysqlOptions
from holdfast.transactions.steps import steps_of
from tests.unit.transactions.mysql.conftest import wait_for_no_lock


def locks_of(*commits: Commit) -> list[str]:
    """Return the lock statements of a group: the kind of each with its keys."""
    group = Group(commits, steps_of(commits), 1 << 40)
    found = []
    for statement in group.lock_statements():
        kind = next(
            name
            for mark, name in (
                ("LOCK IN SHARE MODE", "shared"),
                ("FOR UPDATE", "exclusive"),
                ("ON DUPLICATE", "claim"),
                ("NOT BETWEEN", "claimed"),
            )
            if mark in statement
        )
        keys = [bytes.fromhex(part.split("'")[0]).decode() for part in statement.split("x'")[1:]]
        found.append(f"{kind} {' '.join(key for key in keys if key and key.isupper())}")
    return found


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        (Commit(reads={b"A": 5}), ["shared A"]),
        (Commit(reads={b"A": ABSENT}), ["claim A", "claimed A"]),
        (Commit(inserts={b"A": b"x"}), ["claim A", "claimed A"]),
        (Commit(puts={b"A": b"x"}), ["claim A", "claimed A"]),
        (Commit(reads={b"A": 5}, puts={b"A": b"x"}), ["exclusive A"]),
        (Commit(reads={b"A": ABSENT}, puts={b"A": b"x"}), ["claim A", "claimed A"]),
        (Commit(deletes=[b"A"]), ["claim A", "claimed A"]),
        (Commit(reads={b"A": ABSENT}, deletes=[b"A"]), ["claim A", "claimed A"]),
        (Commit(adds={b"A": 1}), ["claim A", "claimed A"]),
        (Commit(reads={b"A": 5}, adds={b"A": 1}), ["exclusive A"]),
        (Commit(progress=Progress(b"A", 1)), ["claim A", "claimed A"]),
        (Commit(ranges=[RangeCount(b"A", b"b", b"c", 0)]), ["claim A", "claimed A"]),
        (Commit(reads={b"A": 5}, ranges=[RangeCount(b"A", b"b", b"c", 0)]), ["exclusive A"]),
    ],
)
def test_each_kind_of_step_has_its_lock(commit: Commit, expected: list[str]) -> None:
    assert locks_of(commit) == expected


def test_keys_are_locked_in_one_order_with_few_statements() -> None:
    first = Commit(reads={b"A": 5, b"D": 5}, puts={b"C": b"", b"B": b""})
    second = Commit(reads={b"A": 5, b"E": 5}, inserts={b"F": b""})
    assert locks_of(first, second) == ["shared A", "claim B C", "shared D E", "claim F", "claimed B C F"]


def test_the_strongest_lock_of_a_key_counts() -> None:
    assert locks_of(Commit(reads={b"A": 5}), Commit(reads={b"A": ABSENT})) == ["claim A", "claimed A"]


@pytest.fixture
def links(options: MysqlOptions) -> Iterator[tuple[Link, Link]]:
    pair = (connect(options, 1), connect(options, 2))
    yield pair
    for link in pair:
        link.close()


@pytest.mark.parametrize("records", [1, 3, 10, 100])
def test_no_statement_scans_a_small_table(backend: MysqlBackend, links: tuple[Link, Link], records: int) -> None:
    """A scan would wait for locks of records that the group does not touch."""
    backend.commit(Commit(inserts={b"K%04d" % number: b"" for number in range(records)}))
    link = links[0]
    link.send("ANALYZE TABLE holdfast_records")
    versions = {key: record.version for key, record in backend.scan(b"K", b"L", records).records}
    for count in {1, 2, records // 2 + 1, records}:
        keys = list(versions)[:count]
        groups = [
            Commit(reads={key: versions[key] for key in keys}),
            Commit(reads={key: versions[key] for key in keys}, puts=dict.fromkeys(keys, b"x")),
            Commit(puts=dict.fromkeys(keys, b"x")),
            Commit(reads={key: versions[key] for key in keys}, deletes=keys),
        ]
        for commit in groups:
            group = Group([commit], steps_of([commit]), 1 << 40)
            link.send("START TRANSACTION")
            statements = [one for one in group.lock_statements() if "INSERT" not in one]
            judgment = group.lock(link)
            statements += [one for one in group.write_statements(judgment) if one.startswith("DELETE")]
            for statement in statements:
                # The fourth column is the type; in MySQL, the fifth.
                plans = link.send(f"EXPLAIN FORMAT=TRADITIONAL {statement}")[0].rows
                assert all({"range", "const"} & set(plan[3:5]) for plan in plans), (statement, plans)
            link.reset()


@pytest.mark.parametrize("other", [Commit(reads={b"b": ABSENT}), Commit(deletes=[b"B"]), Commit(puts={b"c": b""})])
def test_groups_with_other_keys_do_not_wait(backend: MysqlBackend, links: tuple[Link, Link], other: Commit) -> None:
    backend.commit(Commit(inserts={b"A": b"", b"B": b"", b"C": b""}))
    seen = backend.get_many([b"A", b"C"])
    versions = {key: record.version for key, record in seen.items()}
    held = [
        Commit(reads=versions | {b"a": ABSENT}, deletes=[b"A"]),
        Commit(reads={b"AA": 77, b"bb": 77}, deletes=[b"d"]),
    ]
    for link, commits in zip(links, (held, [other]), strict=True):
        wait_for_no_lock(link)
        link.send("START TRANSACTION")
        group = Group(commits, steps_of(commits), 1 << 40)
        assert isinstance(group.lock(link).outcomes[0], Committed)


def test_readers_share_a_record_and_writers_do_not(backend: MysqlBackend, links: tuple[Link, Link]) -> None:
    backend.commit(Commit(inserts={b"A": b""}))
    version = backend.get_many([b"A"])[b"A"].version
    for link in links:
        wait_for_no_lock(link)
        link.send("START TRANSACTION")
        commit = Commit(reads={b"A": version})
        Group([commit], steps_of([commit]), 1 << 40).lock(link)
    links[1].send("ROLLBACK")
    links[1].send("START TRANSACTION")
    commit = Commit(reads={b"A": version}, puts={b"A": b""})
    with pytest.raises(pymysql.OperationalError, match="Lock wait timeout"):
        Group([commit], steps_of([commit]), 1 << 40).lock(links[1])


def test_what_is_claimed_is_hidden_and_leaves_no_trace(backend: MysqlBackend, links: tuple[Link, Link]) -> None:
    guard = RangeCount(b"G", b"g", b"h", 0)
    commits = [
        Commit(reads={b"A": ABSENT}, ranges=[guard], inserts={b"g1": b"x"}),
        Commit(reads={b"B": 77}, inserts={b"I": b"", b"J": b""}, adds={b"N": 1}, progress=Progress(b"P", 1)),
        Commit(puts={b"Q": b"put"}),
    ]
    link = links[0]
    link.send("START TRANSACTION")
    group = Group(commits, steps_of(commits), 1 << 40)
    judgment = group.lock(link)
    assert judgment.outcomes == [Committed(1 << 40), Conflict((b"B",)), Committed((1 << 40) + 2)]
    assert backend.scan(b"", b"z", 10, [b"G"]).records == []
    assert backend.get_many([b"A", b"G", b"I", b"N", b"P", b"g1"]) == {}
    writes = list(group.write_statements(judgment))
    assert not any(b"g1".hex() in statement for statement in writes), "an insert is written once"
    link.run([*writes, "COMMIT"])
    assert [key for key, _ in backend.scan(b"", b"z", 10).records] == [b"Q", b"g1"]
    assert link.send("SELECT COUNT(*) FROM holdfast_records")[0].rows == ((2,),)
