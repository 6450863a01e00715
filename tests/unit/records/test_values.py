"""Values come back equal and of the same type, others are refused, and damaged bytes do nothing but say so."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import CorruptDataError, HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.records.values import (
    _DEEPEST,
    MAX_ENCODED_BYTES,
    Value,
    decode_value,
    encode_value,
    encoded_type_name,
)
from holdfast.transactions.base import MAX_NUMBER
from tests.unit.records.databases import memory_db

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)
_values: st.SearchStrategy[Any] = st.one_of(
    st.binary(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(),
    st.integers(-(2**2000), 2**2000),
    st.floats(),
    st.booleans(),
    st.lists(_json, max_size=3),
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), _json, max_size=3),
)
_DTYPES = ["i1", "u1", "<i2", ">i2", "<u4", ">i8", "<u8", "<f2", "<f4", ">f8", "<c8", ">c16"]
_ARRAYS = [
    *(np.arange(6, dtype=name).reshape(2, 3) for name in _DTYPES),
    np.array([True, False]),
    np.array(5),
    np.array([[math.nan, math.inf], [-0.0, 1.5]]),
    np.empty((0, 3), "<U4"),
    np.array(["é", "", "ab\0c", "\U0010ffff"]),
    np.array(["a", "bc"], ">U2"),
    np.array([b"a", b"\xff\x00b"]),
    np.array(["2013-01-01", "NaT"], "M8[ns]"),
    np.array(["2013-01-01T05"], "M8[25s]"),
    np.array([3, -1], "m8[D]"),
    np.arange(12).reshape(3, 4)[:, ::2],
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.zeros((1,) * 32),
]


def _is_same(one: object, other: object) -> bool:
    """Check whether two values have the same type and are equal, also inside; NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_is_same, one.values(), other.values()))
    if isinstance(one, float) and isinstance(other, float):
        return one.hex() == other.hex()
    return one == other


@given(_values)
@example(-(2**63))
@example(127)
@example(128)
@example([-0.0, 0, False, None, "", 1e308])
def test_values_come_back(value: Value) -> None:
    assert _is_same(decode_value(encode_value(value)), value)


@pytest.mark.parametrize("array", _ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
def test_arrays_come_back(array: np.ndarray[Any, Any]) -> None:
    found = decode_value(encode_value(array))
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.dtype.str, found.shape) == (array.dtype, array.dtype.str, array.shape)
    assert found.tobytes() == array.tobytes()
    found[...] = found[...]  # callers may change it


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (np.int16(-5), -5),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abc")[::2], b"ac"),
    ],
)
def test_other_types_become_pythons(value: object, meant: Value) -> None:
    assert _is_same(decode_value(encode_value(value)), meant)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None is no value"),
        ((1, 2), "convert it type='tuple'"),
        ({1, 2}, "convert it type='set'"),
        (decimal.Decimal(1), "convert it type='Decimal'"),
        (datetime.date(2013, 1, 1), "convert it type='date'"),
        (datetime.timedelta(1), "convert it type='timedelta'"),
        (1j, "convert it type='complex'"),
        (np.array([object()]), "astype"),
        (np.zeros(2, "i4,f8"), "astype"),
        (np.zeros(2, [("a", "S0"), ("b", "i4")])["a"], "astype"),
        (np.zeros(2, np.longdouble), "astype"),
        (np.zeros(2, np.dtype(np.longdouble).newbyteorder()), "astype"),
        (np.ma.array([1, 2], mask=[True, False]), "fill it"),
        (np.zeros((1,) * 33) if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else None, "32 dim|None"),
        (np.datetime64("2013-01-01"), "store an array"),
        (np.timedelta64(5, "ns"), "store an array"),
        (np.timedelta64(5, "D"), "store an array"),
        (np.complex128(1), "store an array"),
        (np.longdouble(1), "store an array"),
        ("\ud800", "lone surrogates"),
        (["\ud800"], "lone surrogates"),
        ({"\ud800": 1}, "lone surrogates"),
        *(
            (value, "a JSON value consists of")
            for value in ([math.nan], {"a": [-math.inf]}, [10**5000], {1: 2}, {None: 2}, [(1,)], [np.int64(1)], [b"a"])
        ),
        (bytes(MAX_ENCODED_BYTES), "split it"),
        ("a" * MAX_ENCODED_BYTES, "split it"),
        (np.zeros(MAX_ENCODED_BYTES // 8), "split it"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_is_refused(value: object, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        encode_value(value)


def test_deep_and_endless_values_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidRequestError, match="levels deep"):
        encode_value(endless)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["list", "dictionary"])
def test_a_value_is_stored_up_to_the_documented_depth(wrap: Callable[[object], object]) -> None:
    value: object = 1
    for _ in range(_DEEPEST - 1):
        value = wrap(value)
    assert decode_value(encode_value(value)) == value
    with pytest.raises(InvalidRequestError, match=f"at most {_DEEPEST} levels deep"):
        encode_value(wrap(value))


@given(st.sampled_from("btifja").flatmap(lambda kind: st.binary(max_size=40).map(lambda rest: kind.encode() + rest)))
@example(b"jnull")
@example(b"j3")
@example(b"jNaN")
@example(b"j" + "[1]".encode("utf-16"))
@example(b"j" + b"[" * 100_000)
@example(b"i")
@example(b"f" + bytes(7))
@example(b"?")
def test_damaged_bytes_are_refused_or_mean_a_value(encoded: bytes) -> None:
    _decode(encoded)


_ODD_DTYPES = [
    "",
    "O",
    "a3",
    "|S0",
    "<U1",
    "<i4",
    "<f16",
    "i4,i4",
    "(2,i4",
    "2i4",
    "V4",
    "<M8[",
    "<M8[xx]",
    "S99999999999",
]


@given(
    st.sampled_from(_ODD_DTYPES) | st.text(max_size=6),
    st.lists(st.sampled_from([0, 1, 2, 2**40, 2**63, 2**64 - 1]), max_size=34),
    st.binary(max_size=24),
)
def test_damaged_arrays_are_refused_or_mean_an_array(dtype: str, shape: list[int], data: bytes) -> None:
    name = dtype.encode()
    header = bytes([len(name), *name, len(shape)]) + b"".join(length.to_bytes(8, "big") for length in shape)
    _decode(b"a" + header + data)


def test_an_array_of_texts_holds_code_points() -> None:
    encoded = encode_value(np.array(["a", "b"]))
    assert encoded.endswith(b"b\0\0\0")
    with pytest.raises(CorruptDataError, match="a stored value cannot be read"):
        decode_value(encoded[:-4] + b"\0\0\x11\0")


def _decode(encoded: bytes) -> None:
    try:
        found = decode_value(encoded)
    except (CorruptDataError, UnsupportedError):
        return
    assert found is not None
    assert repr(found)
    if not isinstance(found, float):
        encode_value(found)


def test_what_was_added_counts_for_integers_only() -> None:
    assert decode_value(encode_value(2), 3) == 5
    assert decode_value(b"", -3) == -3
    for value in ("2", 2.0, True, b"", [2]):
        with pytest.raises(CorruptDataError, match="a number was added to what is no integer"):
            decode_value(encode_value(value), 3)


@pytest.mark.parametrize(
    ("value", "name"),
    [(b"", "bytes"), ("", "text"), (0, "int"), (0.0, "float"), (True, "json"), ({}, "json"), (np.zeros(1), "array")],
)
def test_types_have_names(value: object, name: str) -> None:
    assert encoded_type_name(encode_value(value)) == name


def test_without_numpy_an_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = encode_value(np.zeros(1))
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    with pytest.raises(HoldfastError, match="pip install numpy"):
        decode_value(encoded)
    assert decode_value(encode_value([1])) == [1]


@pytest.mark.parametrize("history", [0, 2])
def test_integers_are_added_and_nothing_else(history: int) -> None:
    db = memory_db()
    db.create_table("t", history=history)
    for amount in (2.5, True, np.True_, np.float64(2), np.array(2.5), np.array([1, 2]), "1", None):
        with pytest.raises(InvalidRequestError, match="an amount is an integer"):
            db.add("t", "a", amount)  # type: ignore[arg-type] # what is refused
    db.add("t", "a", np.uint64(5))  # type: ignore[arg-type] # it is an integer
    assert db.get("t", "a") == 5


def test_a_counter_at_its_limit_is_told_from_a_conflict() -> None:
    db = memory_db()
    db.create_table("t")
    db.add("t", "a", MAX_NUMBER)
    for add in (lambda cells: cells.add("t", "a"), lambda cells: (cells.get("t", "a"), cells.add("t", "a"))):
        with pytest.raises(InvalidRequestError, match="would leave the range of 62 bits: put a new value"):
            db.transact(add)
    db.put("t", "a", MAX_NUMBER)
    db.add("t", "a")
    assert db.get("t", "a") == MAX_NUMBER + 1
