"""The examples of docs/spark.md, in their order, in one session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from tests.integration.spark_session import ROOT, assert_clean, spark_session

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the guide
]


def test_the_guide_runs_as_it_stands(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "spark.md").read_text(), re.DOTALL)
    assert len(examples) >= 5
    url = str(tmp_path / "flights")
    with spark_session() as spark:
        names = {"spark": spark, "url": url}
        for example in examples:
            exec(compile(example, "docs/spark.md", "exec"), names)
        assert spark.read.option("header", True).csv(url + "-csv").count() == 1000
    assert_clean(url)
    assert_clean(url + "-csv")
