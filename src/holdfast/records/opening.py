"""Open databases."""

from __future__ import annotations

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.records.database import Database
from holdfast.runtime import Environment
from holdfast.transactions.registry import open_backend


def open_database(url: str, *, create: bool = False, environment: Environment | None = None) -> Database:
    """Open a database of tables.

    Args:
        url: ``sqlite:///directory/file.db``, ``postgresql://user:password@host:port/database?schema=holdfast`` or
            ``mysql://…``; see docs/reference/options.md.
        create: whether to create the database's tables if there are none.

    Raises:
        InvalidRequestError: the URL is wrong.
        NotFoundError: the database does not exist or is empty, and `create` is False.
        UnsupportedError: the driver is not installed, or a newer release has made the tables.
        AccessDeniedError, UnavailableError: the database cannot be used; see the message.
    """
    environment = environment or Environment()
    try:
        return Database(open_backend(require_url(url), environment, create=create), url, environment)
    except NotFoundError as error:
        if create:
            raise
        what = error.message.partition(":")[0]
        hint = "check the url, or make the database with holdfast.open_database(url, create=True)"
        raise NotFoundError(f"{what}: {hint}", **error.variables) from error


def require_url(given: object) -> str:
    """Return what names a database, unless it is a path or another object.

    Raises:
        InvalidRequestError: it is no text.
    """
    if not isinstance(given, str):
        raise InvalidRequestError(
            "a database is named by its url: pass a text such as 'sqlite:///directory/file.db'",
            type=type(given).__name__,
        )
    return given


def require_open_database(given: object) -> None:
    """Check that this is a database, and not its URL.

    Raises:
        InvalidRequestError: it is something else.
    """
    if not isinstance(given, Database):
        raise InvalidRequestError(
            "this is not an open database: pass what holdfast.open_database(url) returns", type=type(given).__name__
        )
