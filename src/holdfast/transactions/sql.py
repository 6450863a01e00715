"""Share what the backends of SQL databases have in common: SQL files, schemas, rows of records, lost replies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from itertools import count
from typing import Any, TypeVar

from holdfast.errors import HoldfastError, NotFoundError, OutcomeUnknownError, UnsupportedError
from holdfast.runtime import Backoff, Environment, Moment
from holdfast.transactions.base import Record, ScanPage
from holdfast.transactions.pool import Pool

T = TypeVar("T")

_BACKOFF = Backoff(first_s=0.004, longest_s=0.75)
_TRUSTED_S = 12 * 3600
"""How old a commit may be for "there is no outcome" to mean that it did not happen: outcomes are kept for a day."""


# --- files ------------------------------------------------------------------------------------------------------------
@functools.cache
def load_queries(package: str, file: str = "queries.sql") -> dict[str, str]:
    """Return the SQL queries of a package's file by name.

    In the file, a query begins with a line ``-- name: …``, which comments may follow.
    """
    queries: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (resources.files(package) / file).read_text("utf-8").splitlines():
        if line.startswith("-- name: "):
            lines = queries.setdefault(line.removeprefix("-- name: ").strip(), [])
        elif line.strip() and not line.startswith("--"):
            lines.append(line)
    return {name: "\n".join(body).rstrip(";") for name, body in queries.items()}


@functools.cache
def load_schema(package: str) -> tuple[str, ...]:
    """Return the SQL scripts that create the schema of a backend; script n leads from version n - 1 to n."""
    folder = resources.files(package) / "schema"
    return tuple(
        one.read_text("utf-8")
        for one in sorted(folder.iterdir(), key=lambda one: one.name)
        if one.name.endswith(".sql")
    )


def require_schema(found: int, present: int, *, create: bool, where: str) -> None:
    """Refuse a database that is empty, unless it may be created, or whose schema is newer than this release.

    Args:
        found: the version of the database's schema; 0 if it has no tables of Holdfast.
        present: the version that this release creates and migrates to.
        create: whether to accept an empty database.
        where: the database, without secrets, for messages.

    Raises:
        NotFoundError: the database is empty, and `create` is False.
        UnsupportedError: a newer release has migrated the database. Nothing was changed.
    """
    if found == 0 and not create:
        raise NotFoundError("the database has no tables of Holdfast: create them first", database=where)
    if found > present:
        raise UnsupportedError(
            f"the database has schema {found}, and this release of Holdfast knows {present}: upgrade Holdfast",
            database=where,
        )


# --- rows -------------------------------------------------------------------------------------------------------------
def records_of_rows(rows: Iterable[Sequence[Any]]) -> dict[bytes, Record]:
    """Return the records in the rows of a query, whose columns are key, version, value and number, by key."""
    return {key: Record(version, value, number) for key, version, value, number in rows}


def page_of_rows(rows: Sequence[Sequence[Any]], limit: int, guards: dict[bytes, Record]) -> ScanPage:
    """Build the result of a scan from the rows of a query that asked for one row more than the limit.

    Args:
        rows: columns key, version, value and number, in the order of the keys.
    """
    return ScanPage(list(records_of_rows(rows[:limit]).items()), len(rows) > limit, guards)


# --- servers that go away ---------------------------------------------------------------------------------------------
def iter_retries_until_timeout(environment: Environment, timeout_s: float) -> Iterator[None]:
    """Yield once for each attempt until the time is up, and sleep between attempts, with backoff and jitter."""
    deadline_s = environment.clock.elapsed_s() + timeout_s
    yield
    for number in count(1):
        if environment.clock.elapsed_s() >= deadline_s:
            return
        _BACKOFF.wait(number, environment.clock, environment.chance)
        yield


def find_outcome(
    ask: Callable[[], T | None], begun: Moment, pool: Pool[Any], environment: Environment, timeout_s: float, where: str
) -> T | None:
    """Ask a database for the outcome of a commit whose reply was lost; return None if the commit had no effect.

    Args:
        ask: asks the server on a new connection; when it returns None, the commit will not take effect later either.
            An error that it raises, even "wrong password" or "read-only", says nothing about the outcome.
        begun: a moment before the commit was sent.
        pool: once it is closed, the server is not asked again.
        timeout_s: for how many seconds to keep asking after errors.
        where: the database, without secrets, for messages.

    Raises:
        OutcomeUnknownError: the server does not answer in time; or so much time has passed since `begun`, as when this
            machine was suspended, that the server may have deleted the outcome.
    """
    cause: HoldfastError | None = None
    for _ in iter_retries_until_timeout(environment, timeout_s):
        if pool.is_closed:
            break
        try:
            found = ask()
        except HoldfastError as error:
            cause = error
            continue
        if found is not None or begun.age_s(environment.clock) < _TRUSTED_S:
            return found
        break
    raise OutcomeUnknownError(
        "the database went away during a commit and did not tell its outcome: read before repeating", database=where
    ) from cause
