"""Run MariaDB, or MySQL, as a child process on a loopback port.

Worked composition::

    with MariadbServer() as server:
        url = server.create_database("flights")      # mysql://holdfast:…@127.0.0.1:41234/flights
        server.kill()                                # a power failure
        server.start()                               # the server recovers; the url stays valid
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import pymysql

from holdfast.errors import UnsupportedError
from tests.servers.database_process import DatabaseProcess

_PLACES = "/usr/sbin:/usr/local/sbin:/usr/local/mysql/bin"
"""Where the server may be besides the PATH, which has no ``sbin`` for some users."""

_CONNECT_S = 5


def _find(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=_PLACES)


def find_mariadb() -> str:
    """Return the path of the server.

    Raises:
        UnsupportedError: it is not installed.
    """
    found = _find("mariadbd") or _find("mysqld")
    if found is None:
        raise UnsupportedError(
            "neither MariaDB nor MySQL is installed: apt-get install mariadb-server-core mariadb-client-core"
        )
    return found


class MariadbServer:
    """A MariaDB or MySQL server with its data in a directory, for clients on this machine that have the password.

    Guarantee: after `start`, clients can log in. After `stop`, or after the thread that started the server has died, no
    process is left. A new start on the same directory finds the same data at the same port. Commits are durable unless
    `settings` say otherwise.

    Args:
        directory: directory for the data; None for a temporary one that `stop` removes.
        user: name of the user with all rights.
        password: password of the user.
        buffer_pool: memory for pages.
        settings: further settings of the server, such as ``innodb_flush_log_at_trx_commit``. There is no binary log
            unless they name one (``log_bin``).
        start_timeout_s: how long `start` waits.
        server: path of ``mariadbd`` or ``mysqld``, installed or in an unpacked archive; None to search for it.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        user: str = "holdfast",
        password: str = "holdfast-secret",  # a loopback server's password protects nothing
        buffer_pool: str = "128M",
        settings: Mapping[str, str] | None = None,
        start_timeout_s: float = 60.0,
        server: Path | str | None = None,
    ) -> None:
        self._user = user
        self._password = password
        # Without TLS, like MariaDB before 11.4: newer ones make certificates of their own. MySQL 9 has no option `ssl`.
        without_tls = {"loose_ssl": "OFF", "tls_version": ""}
        self._settings = {"innodb_buffer_pool_size": buffer_pool, **without_tls, **(settings or {})}
        self._server = None if server is None else str(server)
        self._process = DatabaseProcess("MariaDB", directory, (password,), start_timeout_s)

    # --- use ----------------------------------------------------------------------------------------------------------
    def url(self, database: str = "mysql") -> str:
        """Return the url of a database, with the password."""
        login = f"{quote(self._user, safe='')}:{quote(self._password, safe='')}"
        return f"mysql://{login}@127.0.0.1:{self._process.port}/{quote(database, safe='')}"

    @property
    def socket(self) -> Path:
        """Return the path of the Unix socket."""
        return self._process.sockets / "mysql.sock"

    @property
    def port(self) -> int:
        """Return the TCP port; 0 before the first start."""
        return self._process.port

    @property
    def pid(self) -> int | None:
        """Return the server's process id; None if the server is not running."""
        return self._process.pid

    def connect(self, database: str = "mysql") -> pymysql.Connection:
        """Return a new connection of the user with all rights, in autocommit mode; the caller closes it."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self._process.port,
            user=self._user,
            password=self._password.encode(),
            database=database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=_CONNECT_S,
            ssl_disabled=True,
        )

    def create_database(self, name: str) -> str:
        """Create a database and return its url; do nothing else if it exists."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE DATABASE IF NOT EXISTS {_identifier(name)}")
        finally:
            connection.close()
        return self.url(name)

    # --- life ---------------------------------------------------------------------------------------------------------
    def __enter__(self) -> MariadbServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> MariadbServer:
        """Start the server, unless it runs, and wait until clients can log in.

        Raises:
            InvalidRequestError: the server's user cannot reach the directory.
            UnavailableError: the server ended or did not answer in time; the message contains the end of its log.
            UnsupportedError: the server is not installed.
        """
        if self._process.pid is not None:
            return self
        server = self._server or find_mariadb()
        process = self._process
        process.make_directories()
        data = process.home / "data"
        if not (process.home / "initialized").exists():
            shutil.rmtree(data, ignore_errors=True)  # of a set-up that was interrupted
            for directory in (data, process.home / "temporary"):
                directory.mkdir(mode=0o700, exist_ok=True)
                process.give(directory)
            process.run(_set_up_command(server, data, process.home / "temporary"))
            (process.home / "initialized").touch()
        process.start(self._command(server, data), self._can_log_in)
        return self

    def _command(self, server: str, data: Path) -> list[str]:
        settings = {
            "datadir": str(data),
            "tmpdir": str(self._process.home / "temporary"),
            "socket": str(self.socket),
            "port": str(self._process.port),
            "bind_address": "127.0.0.1",
            "pid_file": str(self._process.home / "server.pid"),
            # MySQL does not start without this directory, whose default is one that only an installation creates.
            "secure_file_priv": str(self._process.home / "temporary"),
            "init_file": str(self._process.write_secret("users.sql", self._users())),
            **self._settings,
        }
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        return [
            server,
            "--no-defaults",
            *_base_directory(server),
            *flags,
            "--skip-name-resolve",
            *([] if "log_bin" in settings else ["--skip-log-bin"]),
            "--loose-mysqlx=OFF",
        ]

    def _users(self) -> str:
        """Return the statements that the server carries out at each start, one per line."""
        user = f"{_text(self._user)}@'%'"
        return (
            f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY {_text(self._password)};\n"
            f"GRANT ALL PRIVILEGES ON *.* TO {user} WITH GRANT OPTION;\n"
        )

    def _can_log_in(self) -> bool:
        try:
            self.connect().close()
        except pymysql.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill the server at once, like a power failure; the data stay for the next `start`."""
        self._process.kill()

    def stop(self) -> None:
        """Stop the server, first with SIGTERM, and remove a temporary directory. Safe to call twice."""
        self._process.stop()


def _base_directory(server: str) -> list[str]:
    """Return the option that tells the programs of an unpacked archive where their files are."""
    base = Path(server).parent.parent
    return [f"--basedir={base}"] if (base / "scripts").is_dir() else []


def _set_up_command(server: str, data: Path, temporary: Path) -> list[str]:
    """Return the command that creates the system tables: MariaDB has a script for it, MySQL a flag.

    Two servers that are set up at the same time must not share a directory for temporary tables.
    """
    version = subprocess.run([server, "--no-defaults", "--version"], capture_output=True, text=True, check=True).stdout
    base = _base_directory(server)
    if "MariaDB" not in version:
        return [server, "--no-defaults", *base, f"--datadir={data}", f"--tmpdir={temporary}", "--initialize-insecure"]
    installer = _find("mariadb-install-db")
    if base:
        installer = str(Path(server).parent.parent / "scripts" / "mariadb-install-db")
    if installer is None:
        raise UnsupportedError(
            "MariaDB's mariadb-install-db is not installed: apt-get install mariadb-server-core mariadb-client-core"
        )
    return [
        installer,
        "--no-defaults",
        *base,
        f"--datadir={data}",
        f"--tmpdir={temporary}",
        "--auth-root-authentication-method=socket",
        "--skip-name-resolve",
        "--skip-test-db",
    ]


def _text(value: str) -> str:
    """Return an SQL string."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _identifier(value: str) -> str:
    """Return a quoted name."""
    return "`" + value.replace("`", "``") + "`"
