"""Rows and their keys: the bytes sort as the rows do, no key begins with another one, and ranges are exact."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.records.keys import cell_key, cells_range, column_bytes, history_range, parse_cell_key, row_prefix
from holdfast.records.row_keys import (
    Part,
    Row,
    decode_row,
    encode_row,
    end_of_prefix,
    find_key_between_rows,
    prefix_range,
)

_LARGEST = 2**64 - 1
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.text("a\0\x01é", max_size=4)
_bytes = st.binary(max_size=5) | st.lists(st.sampled_from([0, 1, 0xFE, 0xFF]), max_size=4).map(bytes)
_integers = st.integers(-_LARGEST, _LARGEST) | st.sampled_from(
    [sign * (2**bits + step) for bits in range(0, 64, 8) for step in (-1, 0, 1) for sign in (-1, 1)]
)
_parts = st.one_of(_texts, _bytes, _integers)
_rows: st.SearchStrategy[Row] = _parts | st.lists(_parts, min_size=2, max_size=4).map(tuple)
_columns = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4)


def _parts_of(row: Row) -> tuple[Part, ...]:
    return row if isinstance(row, tuple) else (row,)


def _order(row: Row) -> list[tuple[int, bytes, int]]:
    """Return what sorts as the documents say: bytes, texts by code points, integers; part by part."""
    return [
        (0, part, 0)
        if isinstance(part, bytes)
        else (1, part.encode("utf-32-be"), 0)
        if isinstance(part, str)
        else (2, b"", part)
        for part in _parts_of(row)
    ]


@given(_rows, _rows)
def test_keys_sort_as_rows_do(one: Row, other: Row) -> None:
    assert (encode_row(one) < encode_row(other)) == (_order(one) < _order(other))
    assert (encode_row(one) == encode_row(other)) == (_order(one) == _order(other))


@given(_rows, _rows, _columns, _columns)
def test_no_key_begins_with_the_key_of_another_row(one: Row, other: Row, column: str, second: str) -> None:
    assert encode_row(one) == encode_row(other) or not encode_row(one).startswith(encode_row(other))
    cell, prefix = cell_key(7, one, column.encode()), row_prefix(7, other)
    assert cell.startswith(prefix) == (_order(one) == _order(other))
    other_cell = cell_key(7, other, second.encode())
    first, last = history_range(cell)
    assert (first <= history_range(other_cell)[0] < last) == (cell == other_cell)


@given(_rows, _columns, st.binary(max_size=9))
def test_rows_come_back_equal(row: Row, column: str, before: bytes) -> None:
    encoded = encode_row(row)
    found, end = decode_row(before + encoded + column.encode(), len(before))
    assert (found, end) == (row, len(before) + len(encoded))
    assert list(map(type, _parts_of(found))) == list(map(type, _parts_of(row)))
    assert parse_cell_key(cell_key(2**62, row, column.encode())) == (row, column)


@given(_rows, _parts)
def test_the_range_of_a_text_or_bytes_is_exact(row: Row, prefix: Part) -> None:
    first, last = prefix_range(prefix)
    part = _parts_of(row)[0]
    if isinstance(prefix, int) or isinstance(part, int):
        begins = type(part) is type(prefix) and part == prefix
    else:
        begins = type(part) is type(prefix) and part.startswith(prefix)  # type: ignore[arg-type] # of one type
    assert (first <= encode_row(row) < last) == begins


@given(_rows, st.lists(_parts, max_size=3).map(tuple))
def test_the_range_of_parts_is_exact(row: Row, prefix: tuple[Part, ...]) -> None:
    first, last = prefix_range(prefix)
    begins = _order(row)[: len(prefix)] == _order(prefix)
    assert (first <= encode_row(row) < last) == begins


@given(_rows, _columns)
def test_all_cells_of_a_table_are_in_its_range(row: Row, column: str) -> None:
    for table, other in product((0, 1, 255, 2**48 - 1, 2**63 - 1), repeat=2):
        first, last = cells_range(table)
        assert (first <= cell_key(other, row, column.encode()) < last) == (table == other)


@given(st.binary(max_size=12))
def test_damaged_keys_are_refused(key: bytes) -> None:
    try:
        row, _end = decode_row(key)
        parse_cell_key(b"Sc" + bytes(8) + key)
    except CorruptDataError:
        return
    assert _parts_of(row)


@pytest.mark.parametrize("row", ["a", b"a", 5, -(2**40), ("a", 5)])
def test_a_row_without_its_end_is_refused(row: Row) -> None:
    encoded = encode_row(row)
    for length in range(len(encoded)):
        with pytest.raises(CorruptDataError, match="names no row"):
            decode_row(encoded[:length])


def test_a_text_that_is_not_valid_is_refused() -> None:
    with pytest.raises(CorruptDataError, match="names no row"):
        decode_row(encode_row("a").replace(b"a", b"\xff"))


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_integer_of_more_than_64_bits_is_refused(sign: int) -> None:
    code = encode_row(0)[0] + sign * 9
    with pytest.raises(CorruptDataError, match="names no row"):
        decode_row(bytes([code]) + b"\x01" * 9 + b"\0")


def test_the_middle_of_two_integers_is_found_although_the_greater_key_is_cut() -> None:
    low, high = encode_row(65536), encode_row(5 << 16)[:2]
    middle = find_key_between_rows(low, high, 0)
    assert middle is not None and decode_row(middle + b"\0")[0] == 3 << 16


def test_the_middle_below_an_integer_of_eight_bytes() -> None:
    middle = find_key_between_rows(encode_row(0), encode_row(2**63), 0)
    assert middle is not None and decode_row(middle + b"\0")[0] == 2**62


@pytest.mark.parametrize(
    ("prefix", "end"), [(b"a", b"b"), (b"a\xff", b"b"), (b"\xff", b"\xff\xff"), (b"\xff\xff", b"\xff\xff\xff")]
)
def test_the_end_of_a_prefix_is_greater_than_it(prefix: bytes, end: bytes) -> None:
    assert end_of_prefix(prefix) == end > prefix + b"\0"


def test_integers_of_numpy_are_integers() -> None:
    for number in (np.int64(-7), np.uint64(_LARGEST), np.int8(0)):
        assert encode_row(number) == encode_row(int(number))  # type: ignore[arg-type] # what pandas iterates over
        assert prefix_range(number) == prefix_range(int(number))  # type: ignore[arg-type] # the same


_NO_ROWS = [None, True, 1.0, np.True_, [1], bytearray(b"a"), "\ud800", 2**64, -(2**64), 1 << 20_000]
_NO_ROWS += [np.array(5), np.array(5.5), np.array([1, 2])]
_NO_TUPLES = [(), ("a",), ("a", None), ("a", ("b", "c")), ("a", 2**64)]


@pytest.mark.parametrize("row", [*_NO_ROWS, *_NO_TUPLES], ids=lambda row: type(row).__name__)
def test_other_rows_are_refused(row: Row) -> None:
    with pytest.raises(InvalidRequestError, match="row"):
        encode_row(row)


@pytest.mark.parametrize("column", ["", "a\0b", "\ud800", 1, None, b"a"])
def test_wrong_columns_are_refused(column: object) -> None:
    with pytest.raises(InvalidRequestError, match="column"):
        column_bytes(column)


def test_row_and_column_are_limited_together() -> None:
    column = b"c" * 10
    longest = next(length for length in range(1024, 0, -1) if len(encode_row("r" * length) + column) == 998)
    assert len(cell_key(1, "r" * longest, column)) <= 1024 - 16
    with pytest.raises(InvalidRequestError, match="at most 998 bytes together"):
        cell_key(1, "r" * (longest + 1), column)
