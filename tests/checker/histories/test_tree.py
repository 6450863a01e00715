"""Rows that are a tree, and everything that can be wrong with them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_checker.histories.effects import Row, what_is_no_tree

ROOT = Row(0, None, "")
A = Row(1, 0, "a")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], ["there is no root"]),
        ([ROOT, Row(9, None, "other")], ["there are several roots: '' (id 0), 'other' (id 9)"]),
        ([Row(0, None, "", is_directory=False)], ["the root is a file"]),
        ([ROOT, A, Row(1, 0, "b")], ["two rows have the id 1: 'a' and 'b'"]),
        ([ROOT, Row(2, 7, "x")], ["'x' (id 2) is an orphan: directory 7 does not exist"]),
        ([ROOT, A, Row(2, 1, "f", is_directory=False), Row(3, 2, "x")], ["/a/f/x (id 3) is in a file"]),
        ([ROOT, A, Row(2, 1, "x"), Row(3, 1, "x")], ["/a/x exists twice: ids 2 and 3"]),
        (
            [ROOT, A, Row(2, 3, "b"), Row(3, 2, "c"), Row(4, 3, "below")],
            ["a cycle that the root does not reach: 'b' (id 2) in 'c' (id 3) in 'b' (id 2)"],
        ),
        ([ROOT, Row(5, 5, "self")], ["a cycle that the root does not reach: 'self' (id 5) in 'self' (id 5)"]),
        (
            [ROOT, Row(2, 7, "x"), Row(3, 2, "y"), Row(4, 2, "y")],
            ["'x' (id 2) is an orphan: directory 7 does not exist", "…/x/y exists twice: ids 3 and 4"],
        ),
    ],
)
def test_what_is_wrong_is_said(rows: list[Row], words: list[str]) -> None:
    assert what_is_no_tree(rows) == words


@given(st.lists(st.integers(0, 10**6), max_size=30), st.randoms(use_true_random=False))
def test_trees_are_right_in_any_order_of_rows(parents: list[int], chance: random.Random) -> None:
    rows = [ROOT, *(Row(n, parent % n, f"n{n}") for n, parent in enumerate(parents, start=1))]
    chance.shuffle(rows)
    assert what_is_no_tree(rows) == []


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30))
def test_as_walking_up_from_every_row(parents: list[int]) -> None:
    """Parents are arbitrary rows; the expected result walks from each row to the root."""
    rows = [ROOT, *(Row(n, parent, f"n{n}") for n, parent in enumerate(parents, start=1))]
    above = {row.id: row.parent for row in rows}

    def leads_to_root(row: Row) -> bool:
        at = row.id
        for _ in rows:
            at = at if at == 0 else above.get(at)
        return at == 0

    assert (what_is_no_tree(rows) == []) is all(map(leads_to_root, rows))


def test_a_deep_tree() -> None:
    """Needs neither deep recursion nor quadratic time."""
    rows = [ROOT, *(Row(n, n - 1, "d") for n in range(1, 50_001))]
    assert what_is_no_tree(rows) == []
