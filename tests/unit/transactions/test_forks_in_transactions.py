"""A process forks in the middle of a transaction: the child neither uses nor ends what is its parent's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Backend, Commit, Committed, Conflict
from holdfast.transactions.registry import open_backend
from tests.children import Child
from tests.database_servers import NewUrl
from tests.databases import needs_mariadb, needs_postgres


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=needs_postgres),
        pytest.param("mysql", marks=needs_mariadb),
    ]
)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    if request.param == "sqlite":
        url = f"sqlite://{tmp_path}/records.db"
    else:
        new_url: NewUrl = request.getfixturevalue(f"new_{request.param}_url")
        url = new_url()
    found = open_backend(url, create=True)
    found.commit(Commit(puts={b"k": b"0"}))
    yield found
    found.close()


def _refusal(act: Callable[[], object]) -> str:
    try:
        return f"no error: {act()!r}"
    except UnavailableError as error:
        return error.message


def test_a_child_cannot_apply_what_its_parent_applies(backend: Backend) -> None:
    with backend.locked() as transaction:
        transaction.read([b"k"], exclusive=True)
        commit = Commit(inserts={b"once": b""}, adds={b"n": 1})
        for act in (
            lambda: transaction.read([b"k"], exclusive=True),
            lambda: transaction.scan(b"a", b"z", 5),
            lambda: transaction.apply(commit),
        ):
            assert "belongs to the process that began it" in Child(lambda act=act: _refusal(act)).result()  # type: ignore[misc]  # mypy infers no types for defaults of lambdas
        assert isinstance(transaction.apply(commit), Committed)
    assert backend.get_many([b"n"])[b"n"].number == 1


def test_a_child_that_leaves_a_transaction_leaves_it_to_its_parent(backend: Backend) -> None:
    block = backend.locked()
    transaction = block.__enter__()
    version = transaction.read([b"k"], exclusive=True)[b"k"].version
    Child(lambda: block.__exit__(None, None, None)).result()
    assert isinstance(transaction.apply(Commit(reads={b"k": version}, puts={b"k": b"1"})), Committed)
    block.__exit__(None, None, None)
    assert isinstance(backend.commit(Commit(reads={b"k": version}, puts={b"k": b"2"})), Conflict)
    assert backend.get_many([b"k"])[b"k"].value == b"1"


def test_a_child_leaves_a_snapshot_as_it_is(backend: Backend) -> None:
    block = backend.snapshot()
    snapshot = block.__enter__()
    for act in (lambda: snapshot.get_many([b"k"]), lambda: snapshot.scan(b"a", b"z", 5)):
        assert "belongs to the process that began it" in Child(lambda act=act: _refusal(act)).result()  # type: ignore[misc]  # mypy infers no types for defaults of lambdas
    Child(lambda: block.__exit__(None, None, None)).result()
    backend.commit(Commit(puts={b"k": b"later"}))
    assert snapshot.get_many([b"k"])[b"k"].value == b"0"
    block.__exit__(None, None, None)
    assert backend.get_many([b"k"])[b"k"].value == b"later"
