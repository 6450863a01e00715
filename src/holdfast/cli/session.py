"""Open the namespaces that a command uses, and declare the options that say how."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.arguments import Reach, filled, on_store, reports, reports_errors, reports_lines
from holdfast.cli.output import Output
from holdfast.errors import HoldfastError, InvalidRequestError

if TYPE_CHECKING:
    from holdfast.namespace import Namespace


class Session:
    """The namespaces of one run of a command: each is opened when it is first needed, and closed at the end.

    Args:
        database: URL of the database, if neither the catalog nor the environment knows the namespace.
        user: in whose name to act; None for the user of this process.

    Attributes:
        reach: how to reach object stores: those of the namespaces' data, and others.
    """

    def __init__(self, database: str | None, user: str | None, reach: Reach) -> None:
        self._database = database
        self._user = user
        self.reach = reach
        self._opened: dict[str, Namespace] = {}

    def open(self, name: str) -> Namespace:
        """Return the namespace of this name.

        Raises:
            HoldfastError: see `holdfast.namespace.open_namespace`; or the database's URL contains a password.
        """
        from holdfast.namespace import open_namespace

        if name not in self._opened:
            if self._database is not None:
                refuse_password(self._database, name)
            self._opened[name] = open_namespace(
                f"holdfast://{name}",
                database=self._database,
                user=self._user,
                store_options=self.reach.options_of_any_store(),
            )
        return self._opened[name]

    def open_named(self, text: str) -> Namespace:
        """Return the namespace of a name, or of a URL in it."""
        from holdfast.namespace import split_url

        return self.open(split_url(text)[0] if "://" in text else text)

    def database_of(self, name: str) -> str:
        """Return the URL of a namespace's database, which may contain a password."""
        from holdfast.namespace.catalog import database_of

        return self._database or database_of(name)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failed: HoldfastError | None = None
        for namespace in self._opened.values():
            try:
                namespace.close()
            except HoldfastError as reason:
                failed = failed or reason
        if failed is not None and error is None:
            raise failed


def refuse_password(database: str, name: str) -> None:
    """Refuse the URL of a database with a password in it.

    Raises:
        InvalidRequestError: it contains a password (which the message does not show).
    """
    from holdfast.namespace.catalog import variable_of
    from holdfast.transactions.urls import has_password

    if has_password(database):
        raise InvalidRequestError(
            "a password does not belong on a command line, which every user of the machine can read: put the url of "
            f"the database in the environment variable {variable_of(name)}, or the password in a file of the "
            "database's client, such as ~/.pgpass"
        )


def on_namespaces(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how to reach namespaces, and those of `reports`; pass the command a `Session`."""
    return _with_session(command, reports)


def lists_from_namespaces(command: Callable[..., None]) -> Callable[..., None]:
    """Do what `on_namespaces` does, with `reports_lines`."""
    return _with_session(command, reports_lines)


def streams_from_namespaces(command: Callable[..., None]) -> Callable[..., None]:
    """Do what `on_namespaces` does, with `reports_errors`."""
    return _with_session(command, reports_errors)


def _with_session(
    command: Callable[..., None], reporting: Callable[[Callable[..., None]], Callable[..., None]]
) -> Callable[..., None]:
    @functools.wraps(command)
    def run(*args: Any, database: str | None, user: str | None, reach: Reach, out: Output, **given: Any) -> None:
        with Session(database, user, reach) as session:
            command(*args, session=session, out=out, **given)

    decorated = on_store(reporting(run))
    decorated = click.option("--user", type=filled, metavar="NAME", help="Act as this user.  [default: you]")(decorated)
    return click.option(
        "--database", type=filled, metavar="URL", help="Database of the namespace, if the catalog does not know it."
    )(decorated)
