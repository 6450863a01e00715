"""Check that `import holdfast` loads nothing heavy, and that Spark's processes load only what they need.

Programs that only need the version or the errors must not wait for Spark. Each process that Spark starts for a job
loads what it needs and no more, because the user waits for all of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.formats import FORMATS
from tests.patience import PATIENCE_S
from tests.tidy.source_tree import ROOT

_HEAVY = ["boto3", "botocore", "fastavro", "pandas", "pyarrow", "pyspark"]


@pytest.mark.parametrize("statement", ["import holdfast", "import holdfast.errors", "import holdfast.runtime"])
def test_the_import_is_light(statement: str) -> None:
    program = f"import sys\n{statement}\nprint(*sorted(set({_HEAVY!r}) & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (run.returncode, run.stderr, run.stdout.strip()) == (0, "", "")


def test_every_exported_name_is_there() -> None:
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None
    assert dir(holdfast) == holdfast.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'reed'"):
        holdfast.reed  # noqa: B018  # reading the attribute is the test


@pytest.mark.parametrize("module", ["holdfast.formats", "holdfast.spark.source", "holdfast.spark.writer"])
def test_what_spark_loads_to_plan_or_to_commit_is_light(module: str) -> None:
    assert _loaded("-c", f"import sys, {module}\nprint(*sorted(sys.modules))").isdisjoint({*_HEAVY} - {"pyspark"})


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_processes_of_a_spark_job_load_what_they_need(tmp_path: Path, file_format: str) -> None:
    """The process of the commit matters most: when it starts, the rest of the job is over."""
    loaded = {step: _loaded("-m", "tests.tidy.spark_process", step, str(tmp_path), file_format) for step in _STEPS}
    formats = {f"holdfast.formats.{name}" for name in FORMATS}
    for step in ("plan", "task"):
        assert loaded[step] & formats == {f"holdfast.formats.{file_format}"}, step
        assert not loaded[step] & {"boto3", "botocore", "fastavro", "pyarrow.dataset", "pyarrow.orc"}, step
        assert "holdfast.spark.reader" not in loaded[step], step
        assert not loaded[step] & ({"pandas"} if file_format == "parquet" else {"pyarrow.parquet"}), step
    for step in ("commit", "again", "abort"):
        assert not loaded[step] & {*_HEAVY, *formats} - {"pyspark"}, step
    assert len([*(tmp_path / "table").glob(f"part-*.{file_format}")]) == 2


_STEPS = ("plan", "task", "commit", "plan", "task", "again", "plan", "abort")


def _loaded(*command: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-W", "error", *command], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (run.returncode, run.stderr) == (0, "")
    return set(run.stdout.split())
