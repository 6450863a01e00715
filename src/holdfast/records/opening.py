"""Open stores."""

from __future__ import annotations

from holdfast.records.store import Store
from holdfast.runtime import Environment
from holdfast.transactions.registry import open_database

__all__ = ["open_store"]


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
    return Store(open_database(url, environment, create=create), url, environment)
