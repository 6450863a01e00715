"""The examples of docs/how-to/write-files.md, in their order, in one session."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import SparkSession

from tests.acceptance.guides import python_examples, run_examples
from tests.integration.spark_session import assert_clean, visible

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the guide
]


def test_the_guide_runs_as_it_stands(spark: SparkSession, tmp_path: Path) -> None:
    assert len(python_examples("how-to/write-files.md")) == 3
    url = str(tmp_path / "images")
    names: dict[str, object] = {"spark": spark, "url": url}
    run_examples("how-to/write-files.md", names)
    assert len(visible(url)) == 1000
    assert (Path(url) / "7/0007.jpg").read_bytes() == b"picture 7"
    assert visible(url + "-shards") == [f"train-{number:06d}.tar" for number in range(4)]
    with tarfile.open(url + "-shards/train-000001.tar") as tar:
        assert tar.getnames()[:2] == ["000250.jpg", "000250.cls"]
    assert_clean(url)
    assert_clean(url + "-shards")
