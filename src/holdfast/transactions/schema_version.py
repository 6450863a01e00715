"""Compare the schema of a database with the one of this release."""

from __future__ import annotations

from holdfast.errors import NotFoundError, UnsupportedError


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
