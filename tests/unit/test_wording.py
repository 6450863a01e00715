"""Read numbers that are written in digits, and nothing else that Python takes for numbers."""

from __future__ import annotations

import pytest

from holdfast.wording import parse_digits


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1.0", "1_0", "٣", "²", "1" * 21, "9" * 5000])
def test_what_is_no_number_in_digits(text: str) -> None:
    assert parse_digits(text) is None


def test_numbers() -> None:
    assert (parse_digits("0"), parse_digits("007"), parse_digits("9" * 20)) == (0, 7, 10**20 - 1)
    assert (parse_digits("123", 3), parse_digits("1234", 3)) == (123, None)
