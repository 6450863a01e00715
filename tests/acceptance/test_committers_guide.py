"""Run the example of docs/how-to/choose-a-committer.md."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.commit import CommitSettings, open_context, recover
from tests.acceptance.guides import python_examples, run_examples
from tests.integration.spark_session import new_session

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the guide
]


@pytest.mark.slow
def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    assert len(python_examples("how-to/choose-a-committer.md")) == 1
    names = {name: str(tmp_path / name) for name in ("url", "scratch", "shared", "reports")}
    run_examples("how-to/choose-a-committer.md", {**names, "spark": new_session()})
    assert len(list((tmp_path / "reports").glob("summary-*.json"))) == 1
    settings = CommitSettings(scratch_dir=names["scratch"], shared_dir=names["shared"])
    ctx = open_context(names["url"], settings=settings, staging=True)
    try:
        assert recover(ctx).jobs == []
    finally:
        ctx.close()
