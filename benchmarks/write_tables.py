"""Define the tables of the write benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.read_tables import FLAT

__all__ = ["SCHEMAS", "Schema"]


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table.

    Attributes:
        columns: SQL expressions over ``id``, the number of the row.
        share: the rows of this table, for each row of the table `flat`: wide rows are fewer.
    """

    columns: Sequence[str]
    share: float

    @property
    def hashed(self) -> str:
        """The SQL expressions to hash for each row. Spark cannot hash maps."""
        names = {column.split()[-1]: column for column in self.columns}
        return ", ".join(f"to_json({name})" if sql.startswith("map(") else name for name, sql in names.items())


def _one_of(values: int, salt: int) -> str:
    """Return a random number below `values`, the same in each run."""
    return f"pmod(xxhash64(id, {salt}), {values})"


_CARRIERS = ", ".join(f"'{name}'" for name in ("DHL", "UPS", "FedEx", "GLS", "Hermes"))
_AT = f"timestamp_micros(1700000000000000 + id * 250000 + {_one_of(60_000_000, 2)})"
_PRICE = f"CAST({_one_of(10_000_000, 5)} / 100 AS DECIMAL(10, 2))"
_TEXT = ", ".join(f"'word', {_one_of(5000, salt)}, ' '" for salt in range(20, 32))

SCHEMAS: Mapping[str, Schema] = {
    "flat": Schema(columns=FLAT, share=1),
    "events": Schema(
        columns=(
            "id",
            f"CAST({_one_of(1_000, 1)} AS INT) AS quantity",
            "rand(7) AS weight",
            "rand(8) * 360 AS longitude",
            f"{_AT} AS at",
            f"element_at(array({_CARRIERS}), CAST({_one_of(5, 3)} AS INT) + 1) AS carrier",
            f"concat('key-', {_one_of(250_000, 4)}) AS key",
            f"{_PRICE} AS price",
            f"{_one_of(2, 6)} = 0 AS insured",
        ),
        share=0.8,
    ),
    "numeric": Schema(
        columns=(
            "id",
            f"CAST({_one_of(100, 1)} AS INT) AS grade",
            f"CAST({_one_of(1_000_000, 2)} AS INT) AS count",
            "CAST(id / 3 AS INT) AS parent",
            f"{_one_of(10**9, 3)} AS amount",
            "xxhash64(id, 4) AS hash",
            "rand(7) AS score",
            f"{_one_of(10_000, 5)} / 100 AS price",
            "CAST(rand(8) AS FLOAT) AS ratio",
            f"CAST({_one_of(10**9, 6)} / 10000 AS DECIMAL(18, 4)) AS balance",
        ),
        share=0.8,
    ),
    "strings": Schema(
        columns=(
            f"concat('tag', {_one_of(50, 1)}) AS tag",
            f"concat('city of ', {_one_of(20_000, 2)}) AS city",
            f"concat({_TEXT}) AS text",
            "md5(CAST(id AS STRING)) AS digest",
        ),
        share=0.25,
    ),
    "nested": Schema(
        columns=(
            "id",
            f"named_struct('x', rand(7), 'name', concat('v', {_one_of(1_000, 1)}), 'price', {_PRICE}) AS item",
            f"array(id, id + 1, {_one_of(1_000_000, 3)}) AS list",
            f"map('width', CAST({_one_of(500, 4)} AS INT), 'height', CAST({_one_of(500, 5)} AS INT)) AS sizes",
            f"array(named_struct('at', {_AT}, 'key', {_one_of(250_000, 6)})) AS visits",
        ),
        share=0.4,
    ),
}
