"""Load SQL from the files beside a backend: named queries, and the steps of its schema, which a database must have."""

from __future__ import annotations

import functools
from importlib import resources

from holdfast.errors import NotFoundError, UnsupportedError


@functools.cache
def load_queries(package: str, file: str = "queries.sql") -> dict[str, str]:
    """Return the queries of a file by name. A query begins with a line ``-- name: …``; the comments below say why."""
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
    """Return the scripts that bring an empty database to the present schema; script n leads from version n - 1 to n."""
    folder = resources.files(package) / "schema"
    return tuple(
        one.read_text("utf-8")
        for one in sorted(folder.iterdir(), key=lambda one: one.name)
        if one.name.endswith(".sql")
    )


def require_schema(found: int, present: int, *, create: bool, where: str) -> None:
    """Refuse a database that is empty or newer than this release.

    Args:
        found: the version of the database's schema; 0 if it has no tables of Holdfast.
        present: the version that this release creates and migrates to.
        create: whether an empty database is welcome.
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
