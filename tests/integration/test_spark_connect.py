"""Test Spark Connect with a real local server and a client in its own process, one for all tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")
pytest.importorskip("grpc")

from tests.integration.spark_session import PYTHONPATH, assert_clean, jobs_seen
from tests.integration.test_spark_catalog import expect_outcomes
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # its server takes half a minute

IDS = [i for i in range(100) if i % 3 != 1 or i < 10]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def found(base: Path) -> dict[str, Any]:
    """Return the client's results."""
    return client(base, "write and read", "errors", "units")


def client(base: Path, *parts: str) -> dict[str, Any]:
    settings = {"PYTHONPATH": PYTHONPATH, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.integration.connect_client", str(base), *parts],
        env={**os.environ, **settings, "SPARK_TESTING": "1"},  # a free port instead of 15002
        cwd=base,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    document: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return document


def test_write_and_read(found: dict[str, Any], base: Path) -> None:
    result = found["write and read"]
    assert (result["rows"], result["finished"]) == ([100, 3], [True, True])
    assert (result["ids"], result["some"]) == (IDS, [1, 4, 7])
    assert result["types"] == [["id", "bigint"], ["k", "int"], ["v", "string"]]
    assert result["files"] == [[50, 50], 2], "files of `holdfast.job`"
    assert result["setting"] == "2147483647"
    assert len(jobs_seen(base / "write and read" / "t")) == 2
    assert_clean(base / "write and read" / "t")


def test_errors_are_our_own(found: dict[str, Any], base: Path) -> None:
    errors = found["errors"]
    expected = {
        "exists": ("DestinationExistsError", "choose mode append or overwrite"),
        "column": ("InvalidRequestError", "no such column to partition by"),
        "nothing": ("NotFoundError", "there is nothing to read"),
        "relative": ("InvalidRequestError", "pass an absolute path or a URL"),
        "relative read": ("InvalidRequestError", "pass an absolute path or a URL"),
        "ignore": ("no error", "job=None"),
    }
    for name, (kind, sentence) in expected.items():
        assert errors[name][0] == kind and sentence in errors[name][1], errors[name]
    assert "injected" in errors["task"][1], "the query's own error is Spark's"
    assert_clean(base / "errors" / "errors")
    assert_clean(base / "errors" / "errors-task")


def test_units(found: dict[str, Any]) -> None:
    units = found["units"]
    assert units["map"] == [60, 8]
    assert units["seen"] == [[number, f"v{number}"] for number in range(60)]
    assert units["reduce"] == [20, 3]
    assert units["sizes"] == [[key, 3 * key + 60] for key in range(20)]
    assert units["work list"] == [99, 2]
    assert units["visits"] == [[key, 1] for key in range(1, 100)]
    now = {"reordered": [[1, "v"]], "retyped": [[1, "v"]], "key": [["1", "v"]], "field": [[1, "Row(b=1)"]]}
    assert {name: units[f"replaced: {name}"] for name in now} == now
    assert (units["no rows"], units["few rows"]) == ([0, 3], [1, 5])
    assert (units["dropped lines"], units["placed rows"]) == ([40, 2], [60, 2])
    expected = {
        "pairs": "DataFrame",
        "null": "the key of a unit is null",
        "no text": "that is not UTF-8: cast the column to binary, or decode it",
        "failing": "the function of a unit failed",
    }
    for name, sentence in expected.items():
        assert units[name][0] == "InvalidRequestError" and sentence in units[name][1], units[name]
        assert "\n" not in units[name][1]
    assert units["dotted"][0] == "AnalysisException" and "UTF-8" not in units["dotted"][1].partition("\n")[0]


@pytest.mark.slow
def test_streams(base: Path) -> None:
    streams = client(base, "streams")["streams"]
    assert (streams["writeStream"], streams["foreachBatch"]) == ("ended", "ended")
    assert streams["stream"] == streams["each"] == [*range(20)]
    assert "streamReader" in streams["readStream"]
    assert_clean(base / "streams" / "stream")
    assert_clean(base / "streams" / "each")


@pytest.mark.slow
def test_statements(base: Path) -> None:
    """Statements have the same outcomes as in classic Spark."""
    expect_outcomes(client(base, "tables")["tables"], base / "tables")
