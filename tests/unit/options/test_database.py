"""Options with which tables of a database are read."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.options.database import parse_database_read
from holdfast.options.values import Condition

URL = "postgresql://me:hunter2@db/shop"
GIVEN = {"url": URL, "table": "words"}


def test_read_options() -> None:
    options = parse_database_read({**GIVEN, "rowcolumn": "a,`b,c`", "partitions": "7", "filters": '[["a", ">", 1]]'})
    assert (options.table, options.row_columns) == ("words", ("a", "b,c"))
    assert options.partitions == 7
    assert options.conditions == (Condition("a", ">", 1),)


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
def test_options_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        parse_database_read(given)
    assert "hunter2" not in str(caught.value)


def test_the_password_is_not_shown() -> None:
    assert "hunter2" not in repr(parse_database_read(GIVEN))
