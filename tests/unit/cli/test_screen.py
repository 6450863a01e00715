"""Control characters are escaped, and columns are aligned."""

from __future__ import annotations

import pytest

from holdfast.cli.screen import escape_controls, escape_to_one_line, plain_table


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\tb\rc\x00", "a\\tb\\rc\\x00"),
        ("\x7f\x85\x9b31m", "\\x7f\\x85\\x9b31m"),  # C1 has a CSI of one character
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\u2066a\u2069\u200f\u061c", "\\u2066a\\u2069\\u200f\\u061c"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("äé日🎈 \u0301", "äé日🎈 \u0301"),
    ],
)
def test_control_characters_are_escaped(text: str, safe: str) -> None:
    assert escape_controls(text) == escape_to_one_line(text) == safe


def test_line_feeds_are_escaped_in_cells_only() -> None:
    assert escape_controls("a\nb") == "a\nb"
    assert escape_to_one_line("a\nb") == "a\\nb"


def test_columns_are_aligned_with_wide_and_combining_characters() -> None:
    """A wide character takes two columns of a terminal, a combining one none."""
    rows = [["日本", "1"], ["e\u0301", "20"], ["ＦＷ", "300"], ["abcd", "4"]]
    assert plain_table(["name", "n"], rows, right=["n"]) == [
        "name    n",
        "日本    1",
        "e\u0301      20",
        "ＦＷ  300",
        "abcd    4",
    ]


def test_one_long_cell_does_not_widen_its_column() -> None:
    long = "x" * 101
    assert plain_table(["a", "b"], [[long, "1"], ["y", "2"]], right=[]) == ["a  b", f"{long}  1", "y  2"]
    shorter = "x" * 100
    assert plain_table(["a", "b"], [[shorter, "1"], ["y", "2"]], right=[])[2] == f"y{' ' * 101}2"


def test_a_cell_with_a_line_feed_stays_one_line() -> None:
    assert plain_table(["a"], [["x\ny"]], right=[]) == ["a", "x\\ny"]


def test_names_with_line_breaks_stay_legible() -> None:
    assert plain_table(["files\nseen", "two_\nphase"], [["1", "x"]], right=["files\nseen"]) == [
        "files seen  two_phase",
        "         1  x",
    ]
