"""Parse the options with which tables of a database are read and loaded: ``format("holdfast-database")``."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.errors import InvalidRequestError
from holdfast.options.file_format import refuse_unknown
from holdfast.options.values import Condition, as_columns, parse_conditions
from holdfast.records.tables import check_table_name
from holdfast.stores.option_values import number
from holdfast.stores.provider import GivenOptions, OptionSource, OptionSpec

_TABLE_KEYS = ("url", "table", "rowColumn")
_READ = (
    OptionSpec("partitions", "partitions", number(1, 10_000)),
    OptionSpec("columns", "columns", as_columns),
    OptionSpec("filters", "conditions", parse_conditions),
)
_WRITE = (
    OptionSpec("jsonColumns", "json_columns", as_columns),
    OptionSpec("batchRows", "batch_rows", number(1, 10_000)),
)


@dataclass(frozen=True, kw_only=True)
class DatabaseTable:
    """The options that name a table.

    Attributes:
        url: of the database; not part of the repr, since it may contain a password.
        table: name of the table.
        row_columns: the columns with the names of the rows: several for names that are tuples. None for ``row``, or
            ``row_1``, ``row_2``, ….
    """

    url: str = field(repr=False)
    table: str
    row_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class DatabaseReadOptions:
    """The parsed options of a read.

    Attributes:
        source: the table.
        partitions: the number of partitions; None for as many as the size of the table suggests.
        columns: the columns of the table to read; None for all.
        conditions: which rows to read: conditions on the first row column.
    """

    source: DatabaseTable
    partitions: int | None = None
    columns: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DatabaseWriteOptions:
    """The parsed options of a write.

    Attributes:
        target: the table.
        json_columns: string columns whose texts are JSON, and are stored as such.
        batch_rows: rows in one transaction at most.
    """

    target: DatabaseTable
    json_columns: tuple[str, ...] = ()
    batch_rows: int = 300


def parse_database_read(options: OptionSource) -> DatabaseReadOptions:
    """Parse the options of ``spark.read.format("holdfast-database")``.

    Raises:
        InvalidRequestError: an option is unknown, missing or invalid; the message says how to fix it.
    """
    given = GivenOptions(options, (*_TABLE_KEYS, *(spec.name for spec in _READ)))
    return DatabaseReadOptions(source=_table(given), **given.fields(_READ))


def parse_database_write(options: OptionSource) -> DatabaseWriteOptions:
    """Parse the options of ``df.write.format("holdfast-database")``.

    Raises:
        InvalidRequestError: an option is unknown, missing or invalid; the message says how to fix it.
    """
    given = GivenOptions(options, (*_TABLE_KEYS, *(spec.name for spec in _WRITE)))
    return DatabaseWriteOptions(target=_table(given), **given.fields(_WRITE))


def _table(given: GivenOptions) -> DatabaseTable:
    for name in ("path", "paths"):
        if name in given.rest:
            raise InvalidRequestError(
                "a table of a database has no path: name it with the options url and table", option=name
            )
    refuse_unknown(given.rest, given.known)
    url = given.take("url", _url, secret=True)
    table = given.take("table", check_table_name)
    if url is None or table is None:
        raise InvalidRequestError(
            "the database or the table is not named: pass the options url and table",
            missing="url" if url is None else "table",
        )
    return DatabaseTable(url=url, table=table, row_columns=given.take("rowColumn", as_columns))


def _url(text: str) -> str:
    url = text.strip()
    if not url:
        raise InvalidRequestError("the url is empty: name a database such as sqlite:///directory/file.db")
    if url.lower().startswith("memory:"):
        raise InvalidRequestError("memory:// exists in one process only, and Spark's tasks run in others: use a file")
    return url
