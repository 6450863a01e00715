"""Run the examples of docs/how-to/run-units.md."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from tests.acceptance.guides import run_examples
from tests.integration.spark_session import new_session

pytestmark = [pytest.mark.spark, pytest.mark.acceptance]


def test_the_examples_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples("how-to/run-units.md", {"url": f"sqlite://{tmp_path}/shop.db", "spark": new_session()})
