"""Divide a range of cells into parts of about the same size, without reading all of it.

The keys are bisected like numbers: each probe reads a few cells behind the middle of the piece that is probably the
largest. Two halves that both hold cells count as equally large, unless a probe reads one of them to its end. That is
about right for numbers, for digits and letters, and for random keys, but not if some keys are much denser than others.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from holdfast.records.keys import cells_range, parse_cell_key, row_prefix
from holdfast.records.row_keys import find_key_between_rows
from holdfast.records.tables import Table
from holdfast.transactions.base import SnapshotReader

_PROBE = 8
"""Cells that one probe reads at most."""
_PIECES = 4
"""Pieces for each part: more make the parts more equal, and cost more probes."""
_EMPTY, _EMPTY_EACH = 1000, 40
"""Probes that may find nothing, altogether and for each piece: keys with a long common beginning need eight a byte."""
_WIDTH = 16
"""Bytes behind the common beginning of two keys that count for the middle between them."""


@dataclass(frozen=True, slots=True)
class CellRangeSplit:
    """Keys that divide a range of cells into parts.

    Attributes:
        points: keys in ascending order, each the first possible one of a row: `n` points divide the range into `n + 1`
            parts. All of a row's cells are in one part.
        cells: the number of cells; None if they are too many to be counted cheaply.
    """

    points: tuple[bytes, ...]
    cells: int | None


@dataclass(order=True, slots=True)
class _RangePiece:
    """A part of the range with more cells than one probe reads.

    Attributes:
        rank: the share of the whole that is expected here, negative, so that a heap has the largest piece on top.
        start: the first cell.
        seen: the last cell that is known.
        end: where the piece ends.
    """

    rank: float
    start: bytes
    seen: bytes = field(compare=False)
    end: bytes = field(compare=False)


def split_cell_range(reader: SnapshotReader, table: Table, first: bytes, last: bytes, parts: int) -> CellRangeSplit:
    """Find keys that divide a range of a table's cells into about `parts` parts of similar size.

    Args:
        first, last: the range: where it starts, and where it ends.
        parts: how many parts are wanted; there are fewer if there are not enough rows.
    """
    pieces, counted = _count_cells_by_piece(reader, table, first, last, _PIECES * parts)
    smallest = min((-piece.rank for piece in pieces), default=0.0)
    # A piece of unknown size has more cells than a probe reads.
    sizes = {start: count * smallest / _PROBE if pieces else float(count) for start, count in counted.items()}
    sizes |= {piece.start: -piece.rank for piece in pieces}
    total = sum(sizes.values())
    starts: list[bytes] = []  # of the parts
    before, part = 0.0, -1
    for start, size in sorted(sizes.items()):
        number = int(before * parts / total)
        if number > part:
            row = row_prefix(table.id, parse_cell_key(start)[0])
            if row not in starts[-1:]:
                starts.append(row)
            part = number
        before += size
    return CellRangeSplit(tuple(starts[1:]), None if pieces else sum(counted.values()))


def _count_cells_by_piece(
    reader: SnapshotReader, table: Table, first: bytes, last: bytes, wanted: int
) -> tuple[list[_RangePiece], dict[bytes, int]]:
    """Return pieces of unknown size, and the number of cells in the others by their first cell."""
    heap: list[_RangePiece] = []
    counted: dict[bytes, int] = {}
    rows_at = len(cells_range(table.id)[0])

    def add_piece(start: bytes, end: bytes, share: float) -> bool:
        page = reader.scan(start, end, _PROBE)
        keys = [key for key, _record in page.records]
        if page.more:
            heapq.heappush(heap, _RangePiece(-share, keys[0], keys[-1], end))
        elif keys:
            counted[keys[0]] = len(keys)
        return bool(keys)

    add_piece(first, last, 1.0)
    indivisible: list[_RangePiece] = []
    empty = _EMPTY + wanted * _EMPTY_EACH
    while heap and empty and len(heap) + len(indivisible) + len(counted) < wanted:
        piece = heapq.heappop(heap)
        middle = find_key_between_rows(piece.seen, piece.end, rows_at) or _find_middle_key(piece.seen, piece.end)
        if middle is None:
            indivisible.append(piece)
        elif add_piece(middle, piece.end, -piece.rank / 2):
            add_piece(piece.start, middle, -piece.rank / 2)
        else:
            empty -= 1
            piece.end = middle
            heapq.heappush(heap, piece)
    return heap + indivisible, counted


def _find_middle_key(low: bytes, high: bytes) -> bytes | None:
    """Return a key in the middle between two others, None if they are too near to each other."""
    same = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    start, end = (int.from_bytes(key[same : same + _WIDTH].ljust(_WIDTH, b"\0"), "big") for key in (low, high))
    middle = (start + end) // 2
    return high[:same] + middle.to_bytes(_WIDTH, "big").rstrip(b"\0") if middle > start else None
