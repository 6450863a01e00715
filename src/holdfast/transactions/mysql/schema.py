"""Create and migrate the tables of a MySQL or MariaDB database."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import pymysql

from holdfast.errors import UnavailableError, UnsupportedError
from holdfast.transactions.mysql.connection import Link, connect
from holdfast.transactions.mysql.failures import is_missing_table, mysql_errors
from holdfast.transactions.mysql.options import MysqlOptions
from holdfast.transactions.schema_version import require_schema
from holdfast.transactions.sql_files import load_queries, load_schema

_SQL = load_queries(__package__)
_OLDEST_MYSQL = (8, 0)
_OLDEST_MARIADB = (10, 6)


def prepare_database(options: MysqlOptions, *, create: bool) -> None:
    """Check server and schema, and bring the schema to the present version.

    Args:
        create: whether to create the tables if the database has none.

    Raises:
        AccessDeniedError: the server refuses the user, or the user may not create tables.
        NotFoundError: there is no such database, or it has no tables and `create` is False.
        UnavailableError: the server cannot be reached, or another process migrates for too long.
        UnsupportedError: the server is too old or of a kind that cannot lock, or the schema is newer than this release.

    Crash: repeat; every statement of a migration can be repeated.
    """
    where = options.where
    with mysql_errors(where):
        link = connect(options, session=0)
        try:
            variables = dict(link.send(_SQL["cluster"])[0].rows)
            check_server(str(link.send(_SQL["server"])[0].rows[0][0]), variables, where)
            scripts = load_schema(__package__)
            found = _version(link)
            require_schema(found, len(scripts), create=create, where=where)
            if found < len(scripts):
                _migrate(link, scripts, options)
        finally:
            link.close()


def check_server(version: str, variables: Mapping[str, str], where: str) -> None:
    """Refuse servers on which the locks of the transactions would not hold.

    Args:
        version: what the server calls itself.
        variables: settings that tell whether several servers accept writes.

    Raises:
        UnsupportedError: the server is such a one.
    """
    number = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)", version)
    oldest = _OLDEST_MARIADB if "MariaDB" in version else _OLDEST_MYSQL
    if "TiDB" in version or number is None or (int(number[1]), int(number[2])) < oldest:
        raise UnsupportedError(
            "this server is not supported: use MySQL 8.0 or MariaDB 10.6, or a newer one",
            database=where,
            server=version,
        )
    if variables.get("wsrep_on") == "ON" or variables.get("group_replication_single_primary_mode") == "OFF":
        raise UnsupportedError(
            "the servers of this cluster all accept writes, and do not see each other's shared locks: use a single"
            " server, or a cluster with one primary",
            database=where,
        )


def _migrate(link: Link, scripts: tuple[str, ...], options: MysqlOptions) -> None:
    """Carry out the scripts that are missing, while no other process does."""
    if link.send(f"SELECT GET_LOCK('{lock_name(options)}', {int(options.timeout_s) + 1})")[0].rows[0][0] != 1:
        raise UnavailableError(
            "another process migrates the database for too long: repeat later", database=options.where
        )
    found = _version(link)  # now that nobody else migrates; the lock ends with the connection
    for number, script in enumerate(scripts[found:], found + 1):
        for statement in script.split(";\n"):
            if re.sub(r"^--.*$", "", statement, flags=re.MULTILINE).strip():
                link.send(statement)
        link.send(_SQL["save_schema_version"].format(version=number))


def lock_name(options: MysqlOptions) -> str:
    """Return the name of the lock that migrations hold; such locks belong to the server, not to a database."""
    return "holdfast-" + hashlib.sha256(options.database.encode()).hexdigest()[:32]


def _version(link: Link) -> int:
    """Return the version of the schema; 0 if there is none."""
    try:
        rows = link.send(_SQL["schema_version"])[0].rows
    except pymysql.ProgrammingError as error:
        if not is_missing_table(error):
            raise
        return 0
    return int(rows[0][0]) if rows else 0
