"""Options with which tables of a database are read and loaded."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.options.database import parse_database_read, parse_database_write
from holdfast.options.values import Condition

URL = "postgresql://me:hunter2@db/shop"
GIVEN = {"url": URL, "table": "words"}


def test_read_options() -> None:
    options = parse_database_read(
        {**GIVEN, "rowcolumn": "a,`b,c`", "partitions": "7", "columns": "x", "filters": '[["a", ">", 1]]'}
    )
    assert (options.source.table, options.source.row_columns) == ("words", ("a", "b,c"))
    assert (options.partitions, options.columns) == (7, ("x",))
    assert options.conditions == (Condition("a", ">", 1),)


def test_write_options() -> None:
    options = parse_database_write({**GIVEN, "jsonColumns": "x,y", "batch_rows": "10"})
    assert (options.json_columns, options.batch_rows) == (("x", "y"), 10)
    assert parse_database_write(GIVEN).batch_rows == 300


@pytest.mark.parametrize("parse", [parse_database_read, parse_database_write])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"table": "words"}, "missing='url'"),
        ({"url": URL}, "missing='table'"),
        ({**GIVEN, "rowColum": "x"}, "did you mean rowColumn"),
        ({**GIVEN, "path": "x"}, "has no path"),
        ({**GIVEN, "table": "a/b"}, "name of a table"),
        ({**GIVEN, "url": " "}, "url is empty"),
        ({**GIVEN, "url": "memory://x"}, "one process only"),
    ],
)
def test_options_are_refused(parse: object, given: dict[str, str], message: str) -> None:
    assert callable(parse)
    with pytest.raises(InvalidRequestError, match=message) as caught:
        parse(given)
    assert "hunter2" not in str(caught.value)


def test_the_password_is_not_shown() -> None:
    assert "hunter2" not in repr(parse_database_read(GIVEN)) + repr(parse_database_write(GIVEN))
