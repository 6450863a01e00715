"""Run the examples of docs/how-to/write-streams.md in order, in one session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from tests.acceptance.guides import python_examples, run_examples
from tests.integration.spark_session import assert_clean, new_session

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the guide
]


def test_the_streaming_guide_runs_as_it_stands(tmp_path: Path) -> None:
    assert len(python_examples("how-to/write-streams.md")) >= 3
    inbox, url = tmp_path / "inbox", str(tmp_path / "flights")
    inbox.mkdir()
    for day in range(2):
        rows = [{"id": day * 10 + row, "month": row % 3, "delay": row / 2} for row in range(10)]
        (inbox / f"{day}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spark = new_session()
    names: dict[str, object] = {
        "spark": spark,
        "url": url,
        "inbox": str(inbox),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    run_examples("how-to/write-streams.md", names)
    assert sorted(row["id"] for row in spark.read.parquet(url).collect()) == [*range(20)]
    assert names["written"] == 10
    assert_clean(url)
