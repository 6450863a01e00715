"""Find and open the databases that commands use."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.command import reports, reports_lines
from holdfast.cli.output import Output
from holdfast.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from holdfast.records import Database

_VARIABLE_PREFIX = "HOLDFAST_DATABASE_"


def on_database(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument ``URL`` and the options of `reports`; pass the command the open `Database` as `database`."""
    return _with_database(command, reports)


def lists_from_database(command: Callable[..., None]) -> Callable[..., None]:
    """Do what `on_store_of_tables` does, with `reports_lines`."""
    return _with_database(command, reports_lines)


def _with_database(
    command: Callable[..., None], reporting: Callable[[Callable[..., None]], Callable[..., None]]
) -> Callable[..., None]:
    @functools.wraps(command)
    def run(*args: Any, url: str, out: Output, **given: Any) -> None:
        with open_url(url) as database:
            command(*args, database=database, out=out, **given)

    return click.argument("url")(reporting(run))


def open_url(given: str, *, create: bool = False) -> Database:
    """Open the database at a URL, or at the URL in the variable of a name.

    Raises:
        HoldfastError: see `holdfast.records.open_database`; or the URL contains a password (which the message does not
            show), or belongs to this process only.
    """
    from holdfast.records import open_database

    url = _url_of(given)
    if url.startswith("memory://"):
        raise InvalidRequestError("memory:// exists in one process only, and ends with this command: name a database")
    try:
        return open_database(url, create=create)
    except NotFoundError as error:
        if create:
            raise
        what = error.message.partition(":")[0]
        hint = "check the url, or make the database with holdfast database create"
        raise NotFoundError(f"{what}: {hint}", **error.variables) from error


def _url_of(given: str) -> str:
    from holdfast.transactions.urls import has_password

    if "://" not in given and not given.startswith("sqlite:"):  # without its slashes, it is told how to have them
        return _url_in_variable(given)
    if has_password(given):
        raise InvalidRequestError(
            "a password does not belong on a command line, which every user of the machine can read: put the url in a "
            f"variable such as {_VARIABLE_PREFIX}SHOP and give shop in its place, or the password in a file of the "
            "database's client, such as ~/.pgpass"
        )
    return given


def _url_in_variable(name: str) -> str:
    if not name.replace("-", "_").isidentifier():
        raise InvalidRequestError(
            "a database is named by its url: write sqlite:///directory/file.db for a file", given=name
        )
    variable = _VARIABLE_PREFIX + name.upper().replace("-", "_")
    url = os.environ.get(variable, "")
    if url and "://" not in url:  # not shown: it may hold a password
        raise InvalidRequestError(
            "the variable holds no url of a database: set it to one, such as sqlite:///directory/file.db",
            variable=variable,
        )
    if not url:
        raise InvalidRequestError(
            f"no such database: give its url, such as sqlite:///directory/file.db, or set {variable} to it",
            given=name,
        )
    return url
