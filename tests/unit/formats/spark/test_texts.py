"""Test which numbers in text are exact as floats: those that readers read as the same number before."""

from __future__ import annotations

import pytest

from holdfast.formats.spark.texts import is_rounded

KEPT_BY_DOUBLES = [
    "5",
    "-0",
    "+7",
    "9007199254740992",
    "9007199254740994.",
    "1e300",
    "0.1",
    "1e400",
    "00000000000000005",
]
ROUNDED_BY_DOUBLES = ["9007199254740993", "-9007199254740993", "9007199254740993.", "123456789012345678901234567890"]
KEPT_BY_FLOATS = [
    "5",
    "16777216",
    "0.1",
    "0.10000000149011612",
    "1e20",
    "-0.0",
    "3.4028235e38",
    "1.4E-45",
    "1e400",
    "NaN",
]
ROUNDED_BY_FLOATS = ["16777217", "0.1234567890123", "0.123456789", "1e300", "-1e39", "1e-50", "100000000000000000000"]


@pytest.mark.parametrize("text", [*KEPT_BY_DOUBLES, "1" * 39, "9007199254740993.0"])
def test_doubles_keep_what_is_no_whole_number_and_whole_ones_that_they_have(text: str) -> None:
    """A whole number of more than 38 digits is read as a double anyway."""
    assert not is_rounded(text, float(text), single=False)


@pytest.mark.parametrize("text", ROUNDED_BY_DOUBLES)
def test_doubles_round_long_whole_numbers(text: str) -> None:
    assert is_rounded(text, float(text), single=False)


@pytest.mark.parametrize("text", KEPT_BY_FLOATS)
def test_floats_keep_the_digits_that_they_show(text: str) -> None:
    assert not is_rounded(text, float(text), single=True)


@pytest.mark.parametrize("text", [*ROUNDED_BY_FLOATS, *ROUNDED_BY_DOUBLES, "1" * 39])
def test_floats_round_all_others(text: str) -> None:
    assert is_rounded(text, float(text), single=True)


@pytest.mark.parametrize("text", ["2.60872824E14", "1.73927216E8", "7.4303357E10", "6.6435008E7"])
def test_floats_as_java_showed_them_before_its_version_19(text: str) -> None:
    """These have more digits than needed to identify the value."""
    assert not is_rounded(text, float(text), single=True)
