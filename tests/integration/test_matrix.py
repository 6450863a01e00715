"""Write and read every type, null pattern and nesting in every format, and compare with docs/reference/types.md.

The tables are in `tests/matrix`. Stock Spark's own writers and readers are the measure; Holdfast's side runs in this
process, as Spark's workers run it, and in the long variants through the workers too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from tests.matrix.cells import DIALECTS, Input, survey
from tests.matrix.judging import judge, refused_by
from tests.matrix.partitions import partition_columns, survey_partitions
from tests.matrix.shapes import columns_of
from tests.variants import variants

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]  # PySpark's imports warn about pandas

ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe")
SAMPLE: Mapping[str, Sequence[str]] = {"plain": ("none", "some"), "struct": ("mixed",), "array": ("mixed",)}
ROWS = 24  # more than any type has values; 7 and 5 below cut them unevenly


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """Return a session with the types that Spark hides by default."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    # The Python reader refuses shredded VARIANT (test_spark_types.py), which Spark writes if its sample suggests it.
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    return spark


@pytest.fixture(scope="module")
def sample(session: Any) -> Input:
    return Input.of(session, columns_of(cells=SAMPLE), ROWS, batch_rows=7)


@pytest.mark.parametrize("dialect", variants(DIALECTS, "parquet"))
def test_values_come_back_or_the_docs_say_what_happens(
    session: Any, sample: Input, tmp_path: Path, dialect: str
) -> None:
    found = survey(session, sample, DIALECTS[dialect], str(tmp_path), {"max_records_per_file": 5}, expected=refused_by)
    assert list(judge(found)) == []


@pytest.mark.slow
def test_partition_values_come_back_or_the_docs_say_what_happens(session: Any, tmp_path: Path) -> None:
    data = Input.of(session, partition_columns(), ROWS)
    assert list(judge(survey_partitions(session, data, str(tmp_path)))) == []


def dialects_in_zones(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pair each dialect with a time zone: all pairs would take an hour, and show nothing that these do not."""
    return list(zip(names, itertools.cycle(ZONES)))


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "zone"), dialects_in_zones(DIALECTS))
def test_every_nesting_and_null_pattern(session: Any, tmp_path: Path, dialect: str, zone: str) -> None:
    session.conf.set("spark.sql.session.timeZone", zone)
    data = Input.of(session, columns_of(), ROWS, batch_rows=None if zone == "UTC" else 7)
    options = {} if zone == "UTC" else {"max_records_per_file": 5}
    assert list(judge(survey(session, data, DIALECTS[dialect], str(tmp_path), options, expected=refused_by))) == []


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 2_000])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_few_and_many_rows(session: Any, tmp_path: Path, dialect: str, rows: int) -> None:
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    data = Input.of(session, columns_of(cells=SAMPLE), rows)
    found = survey(session, data, DIALECTS[dialect], str(tmp_path), {"max_records_per_file": 500}, expected=refused_by)
    few = rows <= 1  # too few for every deviation to show
    assert [line for line in judge(found) if not (few and "declared, but does not occur" in line)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "zone"), dialects_in_zones(name for name, one in DIALECTS.items() if one.ours))
def test_through_the_workers(session: Any, tmp_path: Path, dialect: str, zone: str) -> None:
    """Spark's workers run the data source on the same sample."""
    session.conf.set("spark.sql.session.timeZone", zone)
    data = Input.of(session, columns_of(cells=SAMPLE), ROWS)
    readers = ("python", "native") if DIALECTS[dialect].spark else ("python",)
    options = {"max_records_per_file": 5}
    found = survey(
        session,
        data,
        DIALECTS[dialect],
        str(tmp_path),
        options,
        expected=refused_by,
        readers=readers,
        through_spark=True,
    )
    assert list(judge(found)) == []


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_partition_values_in_every_zone(session: Any, tmp_path: Path, zone: str) -> None:
    session.conf.set("spark.sql.session.timeZone", zone)
    data = Input.of(session, partition_columns(), ROWS)
    assert list(judge(survey_partitions(session, data, str(tmp_path)))) == []
