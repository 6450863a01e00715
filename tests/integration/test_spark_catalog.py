"""Run SQL and the catalog of classic Spark: a statement works wholly, or fails with one sentence."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import holdfast
from holdfast.spark import register
from tests.integration.catalog_statements import MADE, OUTCOMES, outcomes
from tests.integration.spark_session import ROOT, visible

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the outcome
]


def expect_outcomes(found: dict[str, str], base: Path) -> None:
    """Compare the outcomes with the table, and check that refused statements leave nothing behind."""
    for name, outcome in OUTCOMES.items():
        assert ("works" if outcome == MADE else outcome) in found[name], name
    assert found["tables left"] == "[]"
    assert found["rows left"] == "['7']"
    assert all(visible(base / name) == [] for name in ("ctas", "saved", "parted", "created", "directory", "plain"))


@pytest.mark.slow
def test_statements(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    expect_outcomes(outcomes(spark, tmp_path), tmp_path)


def test_the_documented_table_is_this_one() -> None:
    page = (ROOT / "docs" / "reference" / "spark.md").read_text()
    table = page[page.index("## SQL statements") :]
    rows = re.findall(r"^\| `+ ?(.+?) ?`+ \| (works|refused)", table[: table.index("\n## ", 1)], re.MULTILINE)
    done = ("works", MADE)
    assert dict(rows) == {name: "works" if outcome in done else "refused" for name, outcome in OUTCOMES.items()}


def test_a_stream_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    holdfast.write(spark.range(3), str(tmp_path / "t"))
    rows = spark.readStream.format("holdfast").load(str(tmp_path / "t"))
    query = rows.writeStream.format("memory").queryName("back").start()
    with pytest.raises(PySparkException, match="streamReader") as caught:
        query.awaitTermination(60)
    assert "streamReader" in str(caught.value)


def test_sessions_in_threads(spark: SparkSession, tmp_path: Path) -> None:
    """Each call uses its DataFrame's session and leaves the thread's active session unchanged."""
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    rows = other.range(10).selectExpr("id", "timestamp'2026-01-01 00:00:00' as t", "id % 2 as k")
    found: dict[str, Any] = {}

    def run(name: str) -> None:
        found[name] = holdfast.write(rows, str(tmp_path / name), partition_by="k").rows
        read = holdfast.read(other, str(tmp_path / name))
        found[name] += len([row for row in read.collect() if row in expected])
        found[f"{name} active"] = SparkSession.getActiveSession()

    expected = rows.collect()
    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found["a"], found["b"]) == (20, 20)
    before = SparkSession.getActiveSession()
    assert before is not None
    run("c")
    after = found["c active"]
    assert after is not None and after._jsparkSession.equals(before._jsparkSession)
