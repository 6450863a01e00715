"""Divide tables of many shapes, and look how equal the parts are and how little is read."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import pytest

from holdfast.records.database import Database
from holdfast.records.keys import cells_range
from holdfast.records.row_keys import Row
from holdfast.records.splits import split_cell_range
from holdfast.records.tables import Table
from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.base import ScanPage
from holdfast.transactions.memory import MemoryBackend


class Counting(MemoryBackend):
    """A database that counts scans."""

    probes = 0

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self.probes += 1
        return super().scan(start, end, limit, guards)


def table_of(rows: Collection[Row], columns: int = 1) -> tuple[Counting, Table, list[bytes]]:
    database = Counting()
    db = Database(database, "memory://splits", Environment())
    table = db.create_table("t")
    names = list(rows)
    for start in range(0, len(names), 500):
        batch = names[start : start + 500]
        db.transact(
            lambda cells, batch=batch: [  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                cells.put("t", row, 1, column=f"c{number}") for row in batch for number in range(columns)
            ]
        )
    first, last = cells_range(table.id)
    keys = [key for key, _record in database.scan(first, last, 1_000_000).records]
    database.probes = 0
    return database, table, keys


def sizes(points: tuple[bytes, ...], keys: list[bytes]) -> list[int]:
    edges = [b"", *points, b"\xff"]
    return [sum(low <= key < high for key in keys) for low, high in pairwise(edges)]


_CHANCE = SeededRandom(13)
SHAPES: dict[str, list[Row]] = {
    "numbers": list(range(5000)),
    "negative numbers": list(range(-3000, 2000)),
    "padded digits behind a long beginning": [f"https://example.org/catalog/items/{n:09}" for n in range(5000)],
    "random digits": [f"{_CHANCE.fraction():.15f}" for _ in range(5000)],
    "bytes": [n.to_bytes(2, "big") + b"\0\xff" for n in range(0, 65536, 13)],
    "tuples": [("user", n, "day") for n in range(5000)],
    "texts, then numbers": [*(f"{n:05}" for n in range(2500)), *range(2500)],
    "words": ["".join(_CHANCE.pick("eeeeettttaaaooiinnsshrdluxyz") for _ in range(8)) for _ in range(5000)],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("parts", [2, 7])
def test_parts_are_about_equal_and_little_is_read(shape: str, parts: int) -> None:
    database, table, keys = table_of(SHAPES[shape])
    division = split_cell_range(database, table, *cells_range(table.id), parts)
    found = sizes(division.points, keys)
    assert len(found) == parts and sum(found) == len(keys)
    assert max(found) < 2.5 * len(keys) / parts, found
    assert database.probes < 80 * parts + 300, database.probes
    assert division.cells is None


def test_one_part_needs_no_point() -> None:
    database, table, _keys = table_of(range(100))
    assert split_cell_range(database, table, *cells_range(table.id), 1).points == ()


def test_an_empty_range() -> None:
    database, table, _keys = table_of([])
    division = split_cell_range(database, table, *cells_range(table.id), 4)
    assert (division.points, division.cells) == ((), 0)


def test_a_small_table_is_counted() -> None:
    database, table, keys = table_of(range(20))
    division = split_cell_range(database, table, *cells_range(table.id), 4)
    assert division.cells == 20
    assert max(sizes(division.points, keys)) <= 10


def test_the_cells_of_a_row_stay_together() -> None:
    database, table, keys = table_of(["a", "b", "c"], columns=300)
    division = split_cell_range(database, table, *cells_range(table.id), 8)
    found = sizes(division.points, keys)
    assert all(size % 300 == 0 for size in found) and sum(found) == 900
    assert 2 <= len(found) <= 3


def test_pieces_do_not_overlap_where_negative_integers_become_longer() -> None:
    rows = [(number, index) for number in range(-258, -250) for index in range(20)]
    database, table, keys = table_of(rows)
    found = sizes(split_cell_range(database, table, *cells_range(table.id), 80).points, keys)
    assert sum(found) == len(rows) and max(found) <= 8
    assert database.probes < 2000, database.probes


def test_rows_that_are_too_near_to_each_other_are_not_divided() -> None:
    database, table, _keys = table_of([b"a" + b"\xff" * 20 + number.to_bytes(2, "big") for number in range(100)])
    division = split_cell_range(database, table, *cells_range(table.id), 4)
    assert (division.points, division.cells) == ((), None)


def test_a_very_long_common_beginning_is_not_searched_to_its_end() -> None:
    database, table, _keys = table_of(["x" * 900 + f"{number:05}" for number in range(100)])
    assert split_cell_range(database, table, *cells_range(table.id), 2).cells is None
    assert database.probes < 1500, database.probes
