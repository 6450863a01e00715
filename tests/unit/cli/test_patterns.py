"""Patterns of names: what each of them matches."""

from __future__ import annotations

import pytest

from holdfast.cli.patterns import compile_word
from holdfast.errors import InvalidRequestError


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("[a&&b]", "ab&", "c["),
        ("[a||b]", "ab|", "c"),
        ("[a~~b]", "ab~", "c"),
        ("[[a]", "[a", "b]"),
        ("[[:a]", "[:a", "b]"),
        ("[!a&&b]", "c", "ab&"),
        ("[^a-c]", "d-^", "abc"),
        ("[a-c-]", "abc-", "d"),
        ("[-a]", "-a", "b"),
        ("[+--]", "+,-", "."),
        ("[!]]", "a!", "]"),
        ("[]a]", "]a", "["),
        ("[a^]", "a^", "b"),
        ("[\\d]", "\\d", "1"),
        ("***", "a", ""),
    ],
)
def test_sets(pattern: str, matching: str, others: str) -> None:
    compiled = compile_word(pattern)
    assert [letter for letter in matching + others if compiled.fullmatch(letter)] == list(matching)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("[b-a]", "a range in the pattern is invalid"),
        ("[a--b]", "a range in the pattern is invalid"),
        ("[]", "is not closed"),
        ("[!]", "is not closed"),
        ("[", "is not closed"),
        ("{a", "is not closed"),
    ],
)
def test_what_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        compile_word(pattern)
