"""Sizes and lists of columns: what is understood, and what is refused."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.options.keywords import join_columns
from holdfast.options.write import parse_write_options


@pytest.mark.parametrize("size", ["", "m", "-1", "1.5g", "12parsecs", "1 x", "0", "9" * 30])
def test_a_size_is_refused(size: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a size"):
        parse_write_options({"path": "out", "targetFileSize": size}, overwrite=False)


@pytest.mark.parametrize(("size", "count"), [("7", 7), ("1k", 1024), ("2 MB", 2 << 20), ("3gib", 3 << 30), ("5B", 5)])
def test_a_size_is_understood(size: str, count: int) -> None:
    assert parse_write_options({"path": "out", "targetFileSize": size}, overwrite=False).target_file_size_bytes == count


@pytest.mark.parametrize("text", ["", ",", "a,,b", "`a", "a`b", "``", "a,"])
def test_a_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a list of column names"):
        parse_write_options({"path": "out", "partitionBy": text}, overwrite=False)


def test_a_column_is_named_once() -> None:
    with pytest.raises(InvalidRequestError, match="a column is named twice: name each once"):
        parse_write_options({"path": "out", "partitionBy": "a,b,`a`"}, overwrite=False)


@pytest.mark.parametrize("names", [("a",), ("a b", "c"), ("a,b",), ("`",), ("a`,`b", " x "), ("é\n",)])
def test_any_column_names_make_the_round_trip(names: tuple[str, ...]) -> None:
    given = {"path": "out", "partitionBy": join_columns(names)}
    assert parse_write_options(given, overwrite=False).partition_by == names


@pytest.mark.parametrize("option", ["path", "writeId", "partitionBy", "header", "caf\udce9"])
def test_a_value_that_no_record_could_hold_is_refused(option: str) -> None:
    with pytest.raises(InvalidRequestError, match="must be valid Unicode"):
        parse_write_options({"path": "out", option: "caf\udce9"}, overwrite=False)
