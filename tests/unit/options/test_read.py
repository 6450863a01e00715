"""Options of a read, its conditions included."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.options.read import parse_read_options
from holdfast.options.values import Condition


def test_read_options() -> None:
    given = {"path": "in", "columns": "b,a", "filters": '[["a", "in", [1, 2]]]', "splitSize": "1m", "header": "true"}
    options = parse_read_options(given)
    assert (options.columns, options.split_size_bytes) == (("b", "a"), 1 << 20)
    assert options.conditions == (Condition("a", "in", (1, 2)),)
    assert options.format_options == {"header": "true"}
    with pytest.raises(InvalidRequestError, match="unknown option"):
        parse_read_options({**given, "fileFormat": "parquet"})


@pytest.mark.parametrize("text", ["", "{}x", "[1]", '[["a", "="]]', '[["a", "=", [1]]]', '[["a", "in", 1]]', "3"])
def test_conditions_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_read_options({"path": "in", "filters": text})
