"""Open stores."""

from __future__ import annotations

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.records.store import Store
from holdfast.runtime import Environment
from holdfast.transactions.registry import open_database


def open_store(url: str, *, create: bool = False, environment: Environment | None = None) -> Store:
    """Open a store of tables in a database.

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
        return Store(open_database(require_url(url), environment, create=create), url, environment)
    except NotFoundError as error:
        if create:
            raise
        what = error.message.partition(":")[0]
        hint = "check the url, or make the store with holdfast.open_store(url, create=True)"
        raise NotFoundError(f"{what}: {hint}", **error.variables) from error


def require_url(given: object) -> str:
    """Return what names a store, unless it is a path or another object.

    Raises:
        InvalidRequestError: it is no text.
    """
    if not isinstance(given, str):
        raise InvalidRequestError(
            "a store is named by the url of its database: pass a text such as 'sqlite:///directory/file.db'",
            type=type(given).__name__,
        )
    return given


def require_open_store(given: object) -> None:
    """Check that this is a store, and not its URL.

    Raises:
        InvalidRequestError: it is something else.
    """
    if not isinstance(given, Store):
        raise InvalidRequestError(
            "this is not an open store: pass what holdfast.open_store(url) returns", type=type(given).__name__
        )
