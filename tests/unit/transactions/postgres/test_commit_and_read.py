"""Test reads in the round trip of a commit: they show what is there after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.transactions.base import Backend, Commit, Committed, Conflict, Record
from holdfast.transactions.registry import open_backend
from tests.database_servers import NewUrl
from tests.databases import needs_postgres
from tests.lossy_tcp_proxy import Fault, LossyTcpProxy

pytestmark = needs_postgres


@pytest.fixture
def backend(new_postgres_url: NewUrl) -> Iterator[Backend]:
    found = open_backend(f"{new_postgres_url()}?group=off", create=True)
    try:
        yield found
    finally:
        found.close()


def test_the_commit_is_seen(backend: Backend) -> None:
    backend.commit(Commit(puts={b"a": b"1", b"b": b"1", b"c": b"1"}))
    change = Commit(puts={b"a": b"2"}, deletes=[b"b"], adds={b"n": 5})
    outcome, records = backend.commit_and_read(change, [b"a", b"b", b"c", b"n", b"none"])
    assert isinstance(outcome, Committed)
    assert records == backend.get_many([b"a", b"b", b"c", b"n", b"none"])
    assert records[b"a"] == Record(outcome.version, b"2")
    assert records[b"n"] == Record(outcome.version, b"", 5)
    assert records.keys() == {b"a", b"c", b"n"}


def test_after_a_conflict_nothing_has_changed(backend: Backend) -> None:
    backend.commit(Commit(puts={b"a": b"1"}))
    before = backend.get_many([b"a"])
    outcome, records = backend.commit_and_read(Commit(reads={b"a": 7, b"x": 7}, puts={b"y": b""}), [b"a", b"x", b"y"])
    assert isinstance(outcome, Conflict)
    assert records == before == backend.get_many([b"a", b"x", b"y"])


def test_nothing_is_there(backend: Backend) -> None:
    outcome, records = backend.commit_and_read(Commit(puts={b"a": b"1"}), [b"x"])
    assert isinstance(outcome, Committed)
    assert records == {}
    assert backend.commit_and_read(Commit(), [b"a"])[1] is None, "a commit of nothing does not go to the server"


def test_a_lost_reply_loses_the_reads_only(new_postgres_url: NewUrl) -> None:
    url = new_postgres_url()
    open_backend(url, create=True).close()
    port = int(url.rpartition(":")[2].partition("/")[0])
    with LossyTcpProxy(port) as proxy:
        backend = open_backend(f"{url.replace(f':{port}/', f':{proxy.port}/')}?group=off")
        backend.commit_and_read(Commit(puts={b"a": b"1"}), [b"a"])  # prepares the statement
        proxy.interfere_once(lambda request: b"payload" in request, Fault.LOSE_REPLY)
        outcome, records = backend.commit_and_read(Commit(puts={b"a": b"payload"}), [b"a"])
        assert proxy.faults == [Fault.LOSE_REPLY]
        assert isinstance(outcome, Committed)
        assert records is None
        assert backend.get_many([b"a"])[b"a"] == Record(outcome.version, b"payload")
        backend.close()
