"""Define the tables of the read benchmarks and the queries on them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FLAT", "READS", "Read", "TableSizes"]

# The table of the write benchmark: two longs, a random double, a string of 1,000 values, one of 100,000, a date.
FLAT = (
    "id",
    "pmod(xxhash64(id), 1000000000000) AS amount",
    "rand(7) AS score",
    "concat('product-', pmod(xxhash64(id, 1), 1000)) AS product",
    "concat('customer-', pmod(xxhash64(id, 2), 100000)) AS customer",
    "date_add(DATE'2013-01-01', CAST(pmod(id, 3650) AS INT)) AS day",
)
_NESTED = (
    "id",
    "named_struct('a', id, 'b', concat('v', id % 100)) AS pair",
    "array(id, id + 1, id + 2) AS list",
    "map('k', id) AS map",
    "timestamp_micros(1500000000000000 + id * 1000003) AS at",
)
_WIDE = ("id", *(f"id * {number} AS c{number}" for number in range(1, 50)))
_LINKS = 10_000  # file systems limit the number of links to a file


@dataclass(frozen=True, kw_only=True)
class TableSizes:
    """The sizes of the tables.

    Attributes:
        rows: rows of the large tables.
        partitions: directories of the partitioned table, with a hundred rows each.
        files: files of the table of many files, with a hundred rows each.
    """

    rows: int
    partitions: int
    files: int


@dataclass(frozen=True, kw_only=True)
class Read:
    """A query on a table.

    Attributes:
        title: a description in a few words.
        make: writes the table with Spark's own writer.
        columns: the columns to read; None for all.
        count: whether to read only the number of rows.
        partition_by: the partition columns of the table.
    """

    title: str
    make: Callable[[SparkSession, Path, TableSizes], None]
    columns: Sequence[str] | None = None
    count: bool = False
    partition_by: Sequence[str] = ()


def _rows_of(columns: Sequence[str], share: int = 1) -> Callable[[SparkSession, Path, TableSizes], None]:
    def make(spark: SparkSession, target: Path, sizes: TableSizes) -> None:
        frame = spark.range(0, max(sizes.rows // share, 1), 1, 2).selectExpr(*columns)
        frame.write.parquet(str(target))

    return make


def _partitions(spark: SparkSession, target: Path, sizes: TableSizes) -> None:
    frame = spark.range(0, 100 * sizes.partitions, 1, 2).selectExpr(*FLAT, f"id % {sizes.partitions} AS part")
    frame.repartition(2, "part").write.partitionBy("part").parquet(str(target))


def _files(spark: SparkSession, target: Path, sizes: TableSizes) -> None:
    """Write one small file under many names, to measure the cost per file."""
    seed = target.parent / f"{target.name}-seed"
    spark.range(0, 100, 1, 1).selectExpr(*FLAT).write.parquet(str(seed))
    (written,) = seed.glob("*.parquet")
    target.mkdir()
    for number in range(sizes.files):
        path = target / f"part-{number:06}.parquet"
        if number % _LINKS == 0:
            shutil.copy(written, path)
            first = path
        else:
            os.link(first, path)
    shutil.rmtree(seed)


READS: Mapping[str, Read] = {
    "read-all": Read(title="all columns of the flat table", make=_rows_of(FLAT)),
    "read-one": Read(title="one string column of the flat table", make=_rows_of(FLAT), columns=("customer",)),
    "read-count": Read(title="count() of the flat table", make=_rows_of(FLAT), count=True),
    "read-nested": Read(title="structs, lists, maps and INT96 timestamps", make=_rows_of(_NESTED, 4)),
    "read-wide": Read(title="50 columns of longs", make=_rows_of(_WIDE, 8)),
    "read-partitions": Read(title="partition directories of 100 rows", make=_partitions, partition_by=("part",)),
    "read-files": Read(title="files of 100 rows", make=_files),
}
