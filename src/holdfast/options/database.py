"""Parse the options with which tables of a database are read: ``format("holdfast-database")``."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.errors import InvalidRequestError
from holdfast.options.file_format import refuse_unknown_options
from holdfast.options.values import Condition, parse_columns, parse_conditions
from holdfast.records.tables import check_table_name
from holdfast.stores.provider import GivenOptions, OptionSource, OptionSpec, make_number_parser


def _parse_database_url(text: str) -> str:
    url = text.strip()
    if not url:
        raise InvalidRequestError("the url is empty: name a database such as sqlite:///directory/file.db")
    if url.lower().startswith("memory:"):
        raise InvalidRequestError("memory:// exists in one process only, and Spark's tasks run in others: use a file")
    return url


_SPECS = (
    OptionSpec("url", "url", _parse_database_url, secret=True),
    OptionSpec("table", "table", check_table_name),
    OptionSpec("rowColumn", "row_columns", parse_columns),
    OptionSpec("partitions", "partitions", make_number_parser(1, 10_000)),
    OptionSpec("filters", "conditions", parse_conditions),
)


@dataclass(frozen=True, kw_only=True)
class DatabaseReadOptions:
    """The parsed options of a read from a table of a database.

    Attributes:
        url: of the database; not part of the repr, since it may contain a password.
        table: name of the table.
        row_columns: the columns with the names of the rows: several for names that are tuples.
        partitions: the number of partitions; None for as many as the size of the table suggests.
        conditions: which rows to read: conditions on the first row column.
    """

    url: str = field(repr=False)
    table: str
    row_columns: tuple[str, ...] = ("row",)
    partitions: int | None = None
    conditions: tuple[Condition, ...] = ()


def parse_database_read(options: OptionSource) -> DatabaseReadOptions:
    """Parse the options of ``spark.read.format("holdfast-database")``.

    Raises:
        InvalidRequestError: an option is unknown, missing or invalid; the message says how to fix it.
    """
    given = GivenOptions(options, (spec.name for spec in _SPECS))
    for name in ("path", "paths"):
        if name in given.rest:
            raise InvalidRequestError(
                "a table of a database has no path: name it with the options url and table", option=name
            )
    refuse_unknown_options(given.rest, given.known)
    fields = given.fields(_SPECS)
    for name in ("url", "table"):
        if name not in fields:
            raise InvalidRequestError(
                "the database or the table is not named: pass the options url and table", missing=name
            )
    return DatabaseReadOptions(**fields)
