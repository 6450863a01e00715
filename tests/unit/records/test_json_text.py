"""JSON of others is stored as it is, or not at all."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidRequestError
from holdfast.records.values import parse_json


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "[]",
        "{}",
        "[0.1, 1.10, -0.0, 1e2, 1E-3, 1.7976931348623157e308, 5e-324, 0e9]",
        "[12345678901234567890123, -1]",
        '{"a": {"a": [null, "0.12345678901234567890"]}, "b": false}',
    ],
)
def test_what_comes_back_equal_is_accepted(text: str) -> None:
    assert parse_json(text) == json.loads(text, parse_float=lambda number: pytest.approx(float(number), abs=0))
    assert json.loads(json.dumps(parse_json(text)), parse_float=Decimal) == json.loads(text, parse_float=Decimal)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[12345678901234567.1234]", "more digits than a float keeps.*number='12345678901234567.1234'"),
        ('{"a": [0.1000000000000000000001]}', "more digits"),
        ("[1e400]", "more digits"),
        ("[-1e-400]", "more digits"),
        ("[1e-99999999999999999999]", "more digits"),
        ("[9007199254740993.0]", "more digits"),
        ('[{"a": 1, "b": 2, "a": 1}]', "has a key twice.*key='a'"),
        ('{"a": 1, "\\u0061": 2}', "has a key twice"),
        ("[Infinity]", "no infinities"),
        ("[NaN]", "no infinities"),
        ("3", "a JSON value is a list"),
        ("null", "a JSON value is a list"),
        ("[1", "no JSON"),
        ("[" + "1" * 5000 + "]", "no JSON"),
        pytest.param("[" * 100_000, "no JSON", id="deep"),
    ],
)
def test_what_would_not_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parse_json(text)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_is_stored_as_the_same_number_or_refused(number: Decimal) -> None:
    text = f"[{number:f}]" if abs(number.adjusted()) < 400 else f"[{number:e}]"
    try:
        found = parse_json(text)
    except InvalidRequestError:
        return
    assert isinstance(found, list) and Decimal(json.dumps(found[0])) == number
