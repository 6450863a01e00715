"""Read tables whose files differ with plain readers: the table in docs/how-to/read-with-other-tools.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import holdfast

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn
]

Rows = list[dict[str, Any]]

STEPS = {
    "alike": ["select 1 as id, 'a' as s, 1 as k", "select 2 as id, 'b' as s, 2 as k"],
    "added": ["select 1 as id, 1 as k", "select 2 as id, 'b' as s, 2 as k"],
    "lacking": ["select 1 as id, 'a' as s, 1 as k", "select 2 as id, 2 as k"],
    "widened": [
        "select 1 as id, cast(1.5 as float) as f, 1.25BD as d, 1 as k",
        "select 5000000000 as id, 2.1D as f, 123456789.25BD as d, 2 as k",
    ],
    "field": [
        "select 1 as id, named_struct('a', 1) as st, 1 as k",
        "select 2 as id, named_struct('a', 2, 'b', 'x') as st, 2 as k",
    ],
}
EXPECTED: dict[str, Rows] = {
    "alike": [{"id": 1, "s": "a", "k": 1}, {"id": 2, "s": "b", "k": 2}],
    "added": [{"id": 1, "s": None, "k": 1}, {"id": 2, "s": "b", "k": 2}],
    "lacking": [{"id": 1, "s": "a", "k": 1}, {"id": 2, "s": None, "k": 2}],
    "widened": [
        {"id": 1, "f": 1.5, "d": Decimal("1.25"), "k": 1},
        {"id": 5000000000, "f": 2.1, "d": Decimal("123456789.25"), "k": 2},
    ],
    "field": [
        {"id": 1, "st": {"a": 1, "b": None}, "k": 1},
        {"id": 2, "st": {"a": 2, "b": "x"}, "k": 2},
    ],
}


def by_spark(spark: Any, url: str, **options: Any) -> Rows:
    schema = options.pop("schema", None)
    reader = spark.read.options(**options)
    frame = (reader if schema is None else reader.schema(schema)).parquet(url)
    return [row.asDict(recursive=True) for row in frame.collect()]


def by_duckdb(url: str, union_by_name: bool) -> Rows:
    with duckdb.connect() as connection:
        query = f"from read_parquet('{url}/**/*.parquet', union_by_name={union_by_name}, hive_partitioning=true)"
        return connection.execute(query).to_arrow_table().to_pylist()


def arrow_schema(url: str) -> pa.Schema:
    found = ds.dataset(url, format="parquet", partitioning="hive")
    files = [each.physical_schema for each in found.get_fragments()]
    return pa.unify_schemas([*files, found.schema], promote_options="permissive")


def by_pyarrow(url: str, schema: pa.Schema | None = None) -> Rows:
    return ds.dataset(url, format="parquet", partitioning="hive", schema=schema).to_table().to_pylist()


def by_pandas(url: str, schema: pa.Schema | None = None) -> Rows:
    frame = pd.read_parquet(url, schema=schema, dtype_backend="pyarrow")
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    missing = value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return None if missing else value


def by_polars(url: str) -> Rows:
    return pl.scan_parquet(f"{url}/**/*.parquet", hive_partitioning=True).collect().to_dicts()


def by_polars_one_by_one(url: str) -> Rows:
    files = sorted(map(str, Path(url).glob("**/*.parquet")))
    each = [pl.scan_parquet(file, hive_partitioning=True) for file in files]
    return pl.concat(each, how="diagonal_relaxed").collect().to_dicts()


# The cases that each reader gets right; in the others it raises an error or silently omits the column.
RIGHT: dict[str, str] = {
    "spark": "alike lacking",
    "spark mergeSchema": "alike added lacking field",
    "spark schema": "alike added lacking widened field",
    "duckdb": "alike",
    "duckdb union_by_name": "alike added lacking widened field",
    "pyarrow": "alike lacking",
    "pyarrow schema": "alike added lacking widened field",
    "pandas": "alike lacking",
    "pandas schema": "alike added lacking widened field",
    "polars": "alike",
    "polars concat": "alike added lacking widened field",
}
HIDDEN: dict[str, str] = dict.fromkeys(("spark", "duckdb", "pyarrow", "pandas"), "added field")


def readers(spark: Any, url: str) -> dict[str, Callable[[], Rows]]:
    return {
        "spark": lambda: by_spark(spark, url),
        "spark mergeSchema": lambda: by_spark(spark, url, mergeSchema=True),
        "spark schema": lambda: by_spark(spark, url, schema=holdfast.read(spark, url).schema),
        "duckdb": lambda: by_duckdb(url, False),
        "duckdb union_by_name": lambda: by_duckdb(url, True),
        "pyarrow": lambda: by_pyarrow(url),
        "pyarrow schema": lambda: by_pyarrow(url, arrow_schema(url)),
        "pandas": lambda: by_pandas(url),
        "pandas schema": lambda: by_pandas(url, arrow_schema(url)),
        "polars": lambda: by_polars(url),
        "polars concat": lambda: by_polars_one_by_one(url),
    }


@pytest.mark.parametrize("case", STEPS)
def test_what_plain_readers_need(spark: Any, tmp_path: Path, case: str) -> None:
    url = str(tmp_path / "t")
    for step in STEPS[case]:
        holdfast.write(spark.sql(step), url, partition_by="k", merge_schema=True)
    for name, read in readers(spark, url).items():
        try:
            found = sorted(read(), key=lambda row: int(row["id"]))
        except Exception as error:  # noqa: BLE001  # the errors of five libraries
            found = [{"error": error}]
        assert (found == EXPECTED[case]) == (case in RIGHT[name].split()), (name, found)
        silent = found != EXPECTED[case] and "error" not in found[0]
        assert silent == (case in HIDDEN.get(name, "").split()), (name, found)
