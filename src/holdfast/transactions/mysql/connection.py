"""Parse the URL of a MySQL or MariaDB database, connect to it, and run many statements in one round trip."""

from __future__ import annotations

import math
import os
import ssl
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

import pymysql
from pymysql.constants import CLIENT

from holdfast.errors import InvalidRequestError
from holdfast.runtime.process import require_same_process
from holdfast.transactions.registry import parse_connections, parse_known_options, split_url
from holdfast.transactions.sql import load_queries

_SQL = load_queries(__package__)

_FORM = "mysql://user:password@host:port/database"
_TLS = ("off", "prefer", "require", "verify")
_OPTIONS = ("connections", "ssl", "ssl_ca", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlOptions:
    """The address of a MySQL or MariaDB database, and how to connect to it.

    Attributes:
        password: the password; not part of the repr.
        ssl: ``off``; ``prefer`` encrypts if the server supports TLS; ``require`` refuses a server without TLS;
            ``verify`` also checks its certificate and name, and alone protects against a machine in the middle.
        ssl_ca: path of the certificates to trust instead of the system's; only with ``verify``.
        connections: how many connections a process opens at most. Commits and reads that find none free wait.
        timeout_s: how many seconds a call waits for a connection, for locks or for a server that went away.
    """

    host: str
    port: int = 3306
    user: str
    password: str = field(default="", repr=False)
    database: str
    ssl: str = "prefer"
    ssl_ca: str | None = None
    connections: int = 8
    timeout_s: float = 30.0

    @property
    def where(self) -> str:
        """Return the URL of the database without user and password, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"mysql://{host}:{self.port}/{self.database}"


def parse_mysql_url(url: str) -> MysqlOptions:
    """Parse ``mysql://user:password@host:port/database?connections=8&ssl=verify&ssl_ca=PATH&timeout=30``.

    ``mariadb://`` means the same. Special characters in user, password and database are percent-encoded. The timeout is
    in seconds.

    Raises:
        InvalidRequestError: the url has another form, or an option is unknown or invalid. The message never contains
            the user, the password or the host.
    """
    parts = split_url(url)
    try:
        port = parts.port
    except ValueError:  # its message repeats a part of the url
        raise InvalidRequestError(f"the port of the database url is not a number below 65536: write {_FORM}") from None
    database = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname or not parts.username:
        raise InvalidRequestError(
            f"the url of the database is invalid: write {_FORM}, with special characters percent-encoded"
        )
    if not database or "/" in database:
        raise InvalidRequestError(f"the url names no database: write {_FORM}")
    given = parse_known_options(parts.query, _OPTIONS)
    tls, ssl_ca = given.get("ssl", "verify" if "ssl_ca" in given else "prefer"), given.get("ssl_ca")
    if tls not in _TLS:
        raise InvalidRequestError(f"ssl is one of {', '.join(_TLS)}", value=tls)
    if ssl_ca == "":
        raise InvalidRequestError("ssl_ca is the path of a file with certificates")
    if ssl_ca is not None and tls != "verify":
        raise InvalidRequestError("ssl_ca has no effect without ssl=verify: change one of them")
    return MysqlOptions(
        host=parts.hostname,
        port=port or 3306,
        user=unquote(parts.username),
        password=unquote(parts.password or ""),
        database=database,
        ssl=tls,
        ssl_ca=ssl_ca,
        connections=parse_connections(given.get("connections", "8")),
        timeout_s=_parse_timeout_s(given.get("timeout", "30")),
    )


def _parse_timeout_s(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 3600:
        raise InvalidRequestError("timeout is a number of seconds, above 0 and at most 3600", value=text)
    return value


# --- connections -----------------------------------------------------------------------------------------------------
_CONNECT_S = 10.0
_IDLE_S = 60
"""After so long without a statement, the server ends a connection, and rolls back its transaction."""

_SNAPSHOT_IDLE_S = 3600
"""The same for a snapshot, which holds no locks, and whose caller may work for long between two pages."""

_LOCK_WAIT_S = 10
"""How long a statement waits for one lock at most. Deadlocks are found at once; this is for clients that vanished."""

_PACKET_BYTES = 4 * 1024 * 1024
"""So much is sent at a time: larger packets save nothing, and the server holds each one in memory."""

_PACKET_MARGIN = 1024
_HEX_BYTES = 64 * 1024
_KEYS_PER_STATEMENT = 500
"""MariaDB turns a list of 1,000 and more into a join, which need not lock in the order of the keys."""

_STATEMENT_BYTES = 256 * 1024


class StatementReply(NamedTuple):
    """The result of one statement.

    Attributes:
        affected: number of rows that it changed.
        rows: the rows that it returned.
    """

    affected: int
    rows: Sequence[tuple[Any, ...]]


class MysqlSession:
    """A connection to MySQL or MariaDB that runs many statements per round trip, and that no forked child may use.

    Outside a transaction, every statement commits by itself.

    Attributes:
        thread: the connection's id in the server.
        id: the id of this connection's row in the table of sessions.
        is_new: whether nothing was committed on the connection yet.
        pid: the id of the process that opened the connection.
    """

    def __init__(self, raw: pymysql.Connection, options: MysqlOptions, number: int) -> None:
        self._raw = raw
        self._where = options.where
        self.id = number
        self.is_new = True
        self.pid = os.getpid()
        self._is_in_step = True
        self._is_patient = False
        self._longest_wait_s = self._wait_s = self._next_wait_s = _lock_wait_s(options)
        settings = _SQL["set_up"].format(lock_wait_s=self._wait_s, idle_s=_IDLE_S)
        self.thread, limit_bytes = self.send(settings)[-1].rows[0]
        self._limit_bytes = limit_bytes - _PACKET_MARGIN

    @property
    def is_open(self) -> bool:
        """Return whether the connection can be used: it is not closed or broken, and no call was interrupted."""
        return bool(self._raw.open) and self._is_in_step

    def run(self, statements: Iterable[str]) -> list[StatementReply]:
        """Run statements in as few round trips as their size allows, and return their replies.

        The first error ends the run.
        """
        return [reply for packet in self.join_into_packets(statements) for reply in self.send(packet)]

    def join_into_packets(self, statements: Iterable[str]) -> Iterator[str]:
        """Yield the statements joined by semicolons into texts, each below the server's limit for a packet.

        Raises:
            InvalidRequestError: a single statement exceeds the limit.
        """
        packet: list[str] = []
        size = 0
        for statement in statements:
            if len(statement) > self._limit_bytes:
                raise InvalidRequestError(
                    "the server's limit for packets is too small for a value: set max_allowed_packet to at least 16M",
                    database=self._where,
                    bytes=len(statement),
                )
            if packet and size + len(statement) > min(_PACKET_BYTES, self._limit_bytes):
                yield ";".join(packet)
                packet, size = [], 0
            packet.append(statement)
            size += len(statement) + 1
        if packet:
            yield ";".join(packet)

    def send(self, packet: str) -> list[StatementReply]:
        """Send one packet of statements, and return a reply for each of them."""
        require_same_process(self.pid)
        is_new_limit = self._next_wait_s != self._wait_s
        if is_new_limit:
            packet = f"SET SESSION innodb_lock_wait_timeout = {self._next_wait_s};{packet}"
            self._wait_s = self._next_wait_s
        self._is_in_step = False  # until all replies are here, the next statement would get one of them
        try:
            with self._raw.cursor() as cursor:
                cursor.execute(packet)
                replies = [StatementReply(cursor.rowcount, cursor.fetchall() if cursor.description else ())]
                while cursor.nextset():
                    replies.append(StatementReply(cursor.rowcount, cursor.fetchall() if cursor.description else ()))
        except pymysql.MySQLError:
            self._is_in_step = True  # an error is the last reply, unless it closes the connection
            raise
        self._is_in_step = True
        return replies[1:] if is_new_limit else replies

    def limit_lock_wait(self, lock_wait_s: int | None) -> None:
        """Set the most seconds to wait for one lock, from the next packet on; None for the limit of the options."""
        self._next_wait_s = self._longest_wait_s if lock_wait_s is None else min(lock_wait_s, self._longest_wait_s)

    def reset(self) -> None:
        """Roll back an open transaction, unless it is the parent process's; close the connection if that fails."""
        if self.pid != os.getpid():
            return
        if not self._is_in_step:
            self.close()
            return
        try:
            self.send("ROLLBACK")
            if self._is_patient:
                self._set_idle(_IDLE_S)
                self._is_patient = False
        except pymysql.MySQLError:
            self.close()

    def allow_long_idle(self) -> None:
        """Raise the server's idle timeout until `reset`, for a transaction with long pauses between its statements."""
        self._is_patient = True
        self._set_idle(_SNAPSHOT_IDLE_S)

    def _set_idle(self, idle_s: int) -> None:
        self.send(f"SET SESSION wait_timeout = {idle_s}")

    def close(self) -> None:
        """Close the connection, unless it is the parent process's; the server rolls back an open transaction.

        Safe to call twice.
        """
        if self.pid != os.getpid():
            return
        with suppress(pymysql.Error):  # it is closed already
            self._raw.close()


def connect(options: MysqlOptions, number: int) -> MysqlSession:
    """Open a connection to a MySQL or MariaDB server, with Holdfast's settings.

    Args:
        number: a random number of 63 bits, the id of the session.

    Raises:
        pymysql.MySQLError: it failed.
    """
    raw = pymysql.connect(
        host=options.host,
        port=options.port,
        user=options.user,
        password=options.password.encode(),
        database=options.database,
        charset="utf8mb4",
        autocommit=True,
        client_flag=CLIENT.MULTI_STATEMENTS,
        connect_timeout=_CONNECT_S,
        read_timeout=2 * options.timeout_s + _lock_wait_s(options),
        write_timeout=2 * options.timeout_s + _lock_wait_s(options),
        ssl_disabled=options.ssl == "off",
        ssl=_make_tls_context(options),
        program_name="holdfast",
    )
    try:
        return MysqlSession(raw, options, number)
    except BaseException:
        raw.close()
        raise


def _lock_wait_s(options: MysqlOptions) -> int:
    return min(_LOCK_WAIT_S, math.ceil(options.timeout_s))


def _make_tls_context(options: MysqlOptions) -> ssl.SSLContext | None:
    """Return what the server is checked with; None for ``off``, and for ``prefer``, which PyMySQL does by itself."""
    if options.ssl not in ("require", "verify"):
        return None
    try:
        context = ssl.create_default_context(cafile=options.ssl_ca)
    except OSError as error:
        raise InvalidRequestError(
            "the certificates of ssl_ca cannot be read: check the path", path=options.ssl_ca
        ) from error
    # Python 3.13 and newer check the form of certificates, and refuse those that MySQL makes for itself.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if options.ssl == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def sql_literal(value: bytes) -> str:
    """Return bytes as an SQL literal.

    Long values are in base64, which keeps the longest one below the server's smallest default limit for a packet.
    """
    if len(value) <= _HEX_BYTES:
        return f"x'{value.hex()}'"
    return f"FROM_BASE64('{b2a_base64(value, newline=False).decode()}')"


def join_sql_in_chunks(texts: Iterable[str]) -> Iterator[str]:
    """Join SQL literals or rows by commas; yield as many at a time as one statement should have."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        if chunk and (len(chunk) == _KEYS_PER_STATEMENT or size + len(text) > _STATEMENT_BYTES):
            yield ",".join(chunk)
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield ",".join(chunk)
