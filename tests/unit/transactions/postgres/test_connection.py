"""Connections to PostgreSQL: URLs, rights, and settings of the server that must not change what a commit means."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from psycopg import conninfo

from holdfast.errors import AccessDeniedError, InvalidRequestError, UnavailableError
from holdfast.runtime import Environment
from holdfast.transactions.base import ABSENT, Commit, Committed, Conflict, RangeCount
from holdfast.transactions.postgres import backend as backend_module
from holdfast.transactions.postgres import connection as connection_module
from holdfast.transactions.postgres.backend import PostgresBackend
from holdfast.transactions.postgres.connection import PostgresAddress, connect, prepare_database
from holdfast.transactions.registry import open_backend
from tests.patience import PATIENCE_S, wait_until


@pytest.fixture
def url(new_postgres_url: Callable[[], str]) -> str:
    return new_postgres_url()


@pytest.fixture
def address(url: str) -> PostgresAddress:
    found, _ = PostgresAddress.parse(url)
    prepare_database(found, create=True)
    return found


@contextmanager
def _opened(address: PostgresAddress) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(address, Environment())
    try:
        yield backend
    finally:
        backend.close()


def _set(address: PostgresAddress, setting: str) -> None:
    with connect(address) as admin:
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET {setting}")


# --- urls -------------------------------------------------------------------------------------------------------------
def test_the_options_of_the_driver_arrive_unchanged() -> None:
    url = "postgresql://u@h/db?password=my%20secret&sslrootcert=/a+b%20c&schema=s&connections=3&options=-c%20a%3Db"
    address, connections = PostgresAddress.parse(url)
    found = conninfo.conninfo_to_dict(address.info)
    assert (found["password"], found["sslrootcert"], found["options"]) == ("my secret", "/a+b c", "-c a=b")
    assert (address.schema, connections) == ("s", 3)
    assert "secret" not in address.where


@pytest.mark.parametrize("password", ["can/ary", "can?ary", "can#ary", "can@ary", "1/canary", "1#canary"])
@pytest.mark.parametrize("scheme", ["postgresql", "mysql", "mariadb"])
def test_a_password_with_raw_separators_is_never_shown(scheme: str, password: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"write # as %23|percent-encode") as caught:
        open_backend(f"{scheme}://user:{password}@127.0.0.1:1/db")
    assert caught.value.__cause__ is None
    for part in ("can", "ary", "127.0.0.1"):
        assert part not in str(caught.value)


@pytest.mark.parametrize("name", ["", "$user", "pg_temp", "a" * 64, "ä" * 32, "x%00y"])
def test_a_schema_that_the_server_would_take_for_another_one_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="choose another one"):
        PostgresAddress.parse(f"postgresql://u@h/db?schema={name}")


def test_settings_in_the_url_count(address: PostgresAddress, url: str) -> None:
    options = "options=-c%20synchronous_commit%3Doff%20-c%20default_transaction_isolation%3Dserializable"
    given, _ = PostgresAddress.parse(f"{url}?application_name=mine&{options}")
    with connect(given) as connection:
        shown = [
            connection.execute(f"SHOW {name}").fetchone()
            for name in ("application_name", "synchronous_commit", "transaction_isolation", "lock_timeout")
        ]
    assert shown == [("mine",), ("off",), ("read committed",), ("30s",)]


# --- settings of the server -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_higher_isolation_level_lets_no_phantom_in(address: PostgresAddress, level: str) -> None:
    """A commit counts a range after it has locked the guard, and not in a snapshot from before."""
    _set(address, f"default_transaction_isolation = '{level}'")
    with _opened(address) as backend, ThreadPoolExecutor(2) as threads:
        backend.commit(Commit(puts={b"g": b"", b"z": b""}))
        guard = backend.get_many([b"g"])[b"g"].version
        with backend.begin_locking_transaction() as blocker:
            blocker.read([b"z"], exclusive=True)
            insert = Commit(reads={b"g": guard, b"x": ABSENT}, inserts={b"r/new": b""}, puts={b"z": b""})
            inserting = threads.submit(backend.commit, insert)
            wait_until(lambda: _waiting(address) == 1, "the insert waits for z")
            counting = threads.submit(
                backend.commit, Commit(ranges=[RangeCount(b"g", b"r/", b"r0", 0)], puts={b"x": b""})
            )
            wait_until(lambda: _waiting(address) == 2, "the count waits for its guard")
        assert isinstance(inserting.result(PATIENCE_S), Committed)
        assert counting.result(PATIENCE_S) == Conflict((b"g",))


def _waiting(address: PostgresAddress) -> int:
    with connect(address) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone()
    return int(row[0]) if row else 0


def test_reads_write_nothing(address: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that accepts no writes, such as a standby, serves every read."""
    monkeypatch.setattr(backend_module, "_SWEEP_SHARE", 1.0)
    with _opened(address) as backend:
        backend.commit(Commit(puts={b"a": b"1"}))
    _set(address, "default_transaction_read_only = on")
    for _ in range(2):
        with _opened(address) as backend:
            assert backend.get_many([b"a"])[b"a"].value == b"1"
            with backend.snapshot() as snapshot:
                assert len(snapshot.scan(b"a", b"b", 5).records) == 1
            for call in (lambda: backend.commit(Commit(puts={b"a": b"2"})), backend.make_durable):
                with pytest.raises(UnavailableError, match="or repeat when this one is the primary"):
                    call()


def test_a_transaction_that_did_nothing_for_too_long(address: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = connection_module._BOUNDS.replace("session_timeout=60s", "session_timeout=20ms")
    assert bounds != connection_module._BOUNDS
    monkeypatch.setattr(connection_module, "_BOUNDS", bounds)
    with _opened(address) as backend:
        with backend.begin_locking_transaction() as one:
            one.read([b"a"], exclusive=True)
            wait_until(lambda: _open_transactions(address) == 0, "the server ends the transaction")
            with pytest.raises(UnavailableError, match="did nothing for too long: repeat it"):
                one.apply(Commit(puts={b"a": b"1"}))
        assert isinstance(backend.commit(Commit(inserts={b"a": b"2"})), Committed)
        with backend.snapshot() as snapshot:
            with connect(address) as other:
                other.execute("SELECT pg_sleep(0.1)")
            assert snapshot.get_many([b"a"])[b"a"].value == b"2"


def test_a_limit_of_the_server_for_whole_transactions_does_not_count(address: PostgresAddress) -> None:
    """The server would end a connection in the middle of a snapshot, a locked transaction, or a commit that waits."""
    with connect(address) as admin:
        if admin.info.server_version < 17_00_00:
            pytest.skip("PostgreSQL has the limit since version 17")
    _set(address, "transaction_timeout = '50ms'")
    with _opened(address) as backend:
        backend.commit(Commit(puts={b"a": b"1"}))
        with backend.snapshot() as snapshot, backend.begin_locking_transaction() as one, connect(address) as other:
            one.read([b"a"], exclusive=True)
            other.execute("SELECT pg_sleep(0.1)")
            assert snapshot.get_many([b"a"])[b"a"].value == b"1"
            assert isinstance(one.apply(Commit(puts={b"a": b"2"})), Committed)


def _open_transactions(address: PostgresAddress) -> int:
    with connect(address) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%' AND datname = current_database()"
        ).fetchone()
    return int(row[0]) if row else 0


def test_a_server_that_says_nothing_is_not_waited_for_without_end(
    address: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_SILENCE_S", 0.3)
    with _opened(address) as backend:
        backend.commit(Commit(puts={b"a": b"1"}))
        with backend._pool.lease() as session:
            process = session.connection.info.backend_pid
        os.kill(process, signal.SIGSTOP)
        try:
            assert backend.get_many([b"a"])[b"a"].value == b"1", "another connection is used"
        finally:
            os.kill(process, signal.SIGCONT)


def test_transactions_begin_on_new_connections_after_a_restart(address: PostgresAddress) -> None:
    """A server that ends all connections is not noticed before they are used."""
    with _opened(address) as backend:
        backend.commit(Commit(puts={b"a": b"1"}))
        for begin in (backend.snapshot, backend.begin_locking_transaction):
            with ExitStack() as others:
                for _ in range(3):
                    others.enter_context(backend.snapshot())
            with connect(address) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            with begin():
                pass
        assert backend.get_many([b"a"])[b"a"].value == b"1"


# --- rights -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def role(url: str) -> Iterator[str]:
    """Create a user with no rights; return the URL with which it logs in."""
    with psycopg.connect(url, autocommit=True) as admin:
        name = f"app_{admin.info.dbname}"
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'a'")
    yield f"postgresql://{name}:a@{url.rpartition('@')[2]}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"DROP OWNED BY {name} CASCADE")
        admin.execute(f"DROP ROLE {name}")


def test_the_owner_of_a_schema_need_not_be_able_to_create_one(url: str, role: str) -> None:
    with pytest.raises(AccessDeniedError, match="too few rights"):
        open_backend(role, create=True)
    name = PostgresAddress.parse(role)[0].info.partition("//")[2].partition(":")[0]
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA holdfast AUTHORIZATION {name}")
    backend = open_backend(role, create=True)
    try:
        assert isinstance(backend.commit(Commit(puts={b"a": b""})), Committed)
    finally:
        backend.close()


def test_a_user_without_rights_on_the_schema_is_told(address: PostgresAddress, role: str) -> None:
    with pytest.raises(AccessDeniedError, match="grant USAGE"):
        open_backend(role)


def test_a_transaction_that_is_too_large_is_refused(address: PostgresAddress) -> None:
    with _opened(address) as backend, pytest.raises(InvalidRequestError, match="limited to 900 MB: split it"):
        backend.commit(Commit(puts=dict.fromkeys([b"%03d" % number for number in range(120)], bytes(8 << 20))))


def test_a_login_that_is_rejected_is_named(url: str) -> None:
    """Defect: with a URL without a user, libpq took that of the process, and no message said which."""
    with pytest.raises(AccessDeniedError, match="rejects the user or the password") as caught:
        open_backend(f"postgresql://nobody-here:canary@{url.rpartition('@')[2].removeprefix('postgresql://')}")
    assert caught.value.variables["user"] == "nobody-here"
    assert "canary" not in str(caught.value)
