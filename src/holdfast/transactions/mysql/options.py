"""Parse the url of a MySQL or MariaDB database into options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from holdfast.errors import InvalidRequestError
from holdfast.transactions.urls import options_of, split_url
from holdfast.wording import nearest

_FORM = "mysql://user:password@host:port/database"
_MOST_CONNECTIONS = 1000
_TLS = ("off", "prefer", "require", "verify")


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlOptions:
    """Where the database is, and how to connect.

    Attributes:
        password: the password; not part of the repr.
        ssl: ``off``; ``prefer`` encrypts if the server can; ``require`` refuses a server that cannot; ``verify`` also
            checks its certificate and name. Only ``verify`` protects against a machine in the middle.
        ssl_ca: path of the certificates to trust instead of the system's; only with ``verify``.
        connections: how many connections a process opens at most. Commits and reads that find none free wait.
        timeout_s: how long a call waits for a connection, for locks or for a server that went away.
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
        """Return the url of the database without user and password, for messages."""
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
    given = _options(parts.query)
    if "ssl_ca" in given and given.setdefault("ssl", "verify") != "verify":
        raise InvalidRequestError("ssl_ca has no effect without ssl=verify: change one of them")
    return MysqlOptions(
        host=parts.hostname,
        port=port or 3306,
        user=unquote(parts.username),
        password=unquote(parts.password or ""),
        database=database,
        **given,
    )


def _options(query: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, text in options_of(query):
        if name not in _PARSERS:
            raise InvalidRequestError(f"the database url has an unknown option: {nearest(name, _PARSERS)}", option=name)
        field_name, parse = _PARSERS[name]
        if field_name in given:
            raise InvalidRequestError("the database url has an option twice: leave one of them out", option=name)
        given[field_name] = parse(text)
    return given


def _connections(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST_CONNECTIONS:
        raise InvalidRequestError(f"connections is a number from 1 to {_MOST_CONNECTIONS}", value=text)
    return int(text)


def _timeout_s(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 3600:
        raise InvalidRequestError("timeout is a number of seconds, above 0 and at most 3600", value=text)
    return value


def _ssl(text: str) -> str:
    if text not in _TLS:
        raise InvalidRequestError(f"ssl is one of {', '.join(_TLS)}", value=text)
    return text


def _ssl_ca(text: str) -> str:
    if not text:
        raise InvalidRequestError("ssl_ca is the path of a file with certificates")
    return text


_PARSERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "connections": ("connections", _connections),
    "ssl": ("ssl", _ssl),
    "ssl_ca": ("ssl_ca", _ssl_ca),
    "timeout": ("timeout_s", _timeout_s),
}
