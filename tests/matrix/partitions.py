"""Test every type as a partition column: directories name the values, and every reader must return them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import StructType

from tests.matrix.cells import Cell, Input, Outcome, Outcomes, narrowed, outcome, readable, write_most
from tests.matrix.in_process import read_table, write_batches
from tests.matrix.kinds import KINDS
from tests.matrix.readers import Found, in_halves, spark_found, table_found
from tests.matrix.shapes import NESTINGS, PATTERNS, Column, Nesting

__all__ = ["PARTITION", "partition_columns", "survey_partitions"]

PARTITION = Nesting("partition", "partition column", NESTINGS["plain"].sql, NESTINGS["plain"].make, ("some",))
_TOGETHER = 4  # columns of one table; each row is a file, so more columns do not add files


def partition_columns() -> list[Column]:
    """Return a column for every type that Spark allows as a partition column."""
    return [Column(kind, PARTITION, PATTERNS["some"]) for kind in KINDS if kind.partition]


def survey_partitions(spark: Any, data: Input, place: str) -> Outcomes:
    """Test each column as a partition column of a Parquet table, with all writers and readers."""
    found: Outcomes = {}
    for number, start in enumerate(range(0, len(data.columns), _TOGETHER)):
        columns = data.columns[start : start + _TOGETHER]
        for writer in ("holdfast", "spark"):
            url = f"{place}/{number}-{writer}"
            write = _write_ours if writer == "holdfast" else _write_theirs
            refused = write_most(functools.partial(write, data), columns, url)
            found |= {Cell(f"{writer}>partitions>-", one): Outcome(error=text) for one, text in refused.items()}
            left = [one for one in columns if one not in refused]
            if left:
                found |= _read(spark, data, left, url, writer)
    return found


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _write_ours(data: Input, columns: Sequence[Column], url: str) -> None:
    chosen = data.frame.select("id", *_names(columns))
    options = {"path": url, "partitionBy": ",".join(_names(columns))}
    batches = (batch.select(["id", *_names(columns)]) for batch in data.batches)
    write_batches([batches], chosen.schema, options)


def _write_theirs(data: Input, columns: Sequence[Column], url: str) -> None:
    chosen = data.frame.select("id", *_names(columns))
    chosen.write.mode("overwrite").partitionBy(*_names(columns)).parquet(url)


def _read(spark: Any, data: Input, columns: Sequence[Column], url: str, writer: str) -> Outcomes:
    by_name = {column.name: column for column in columns}
    schema = StructType([readable(field) for field in data.frame.select("id", *by_name).schema])
    options = {"path": url}

    def ours(names: Sequence[str]) -> dict[str, Found]:
        chosen, table = read_table(options, None if writer == "holdfast" else narrowed(schema, names))
        return table_found(table, names, chosen)

    def theirs(names: Sequence[str]) -> dict[str, Found]:
        return spark_found(spark.read.schema(schema).parquet(url), names)

    found: Outcomes = {}
    for reader, read in (("holdfast", ours), ("spark", theirs)):
        for name, one in in_halves(list(by_name), read).items():
            cell = Cell(f"{writer}>partitions>{reader}", by_name[name])
            found[cell] = outcome(data.frame, by_name[name], one, data.rows, types=True)
    return found
