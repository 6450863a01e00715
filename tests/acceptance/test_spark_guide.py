"""Run the examples of the guides to tables and SQL in order, in one session: each page continues the one before."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.namespace import open_namespace
from tests.acceptance.guides import python_examples, run_examples, shell_blocks
from tests.integration.spark_session import assert_clean, new_session
from tests.unit.cli.destinations import run

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the guide
]


PAGES = ("how-to/write-tables.md", "how-to/read-tables.md", "how-to/use-sql.md", "how-to/read-with-other-tools.md")

PAGES_WITH_BUCKET = ("index.md", "how-to/migrate-from-s3a.md")


def test_the_guide_runs_as_it_stands(tmp_path: Path) -> None:
    assert sum(len(python_examples(name)) for name in PAGES) >= 5
    url = str(tmp_path / "flights")
    spark = new_session()
    names: dict[str, object] = {"spark": spark, "url": url}
    for name in PAGES:
        run_examples(name, names)
    df = spark.range(24).selectExpr("id", "id % 12 + 1 as month")
    for name in PAGES_WITH_BUCKET:
        bucket = tmp_path / name.replace("/", "-")
        bucket.mkdir()
        run_examples(name, {"spark": spark, "df": df}, bucket)
        assert spark.read.parquet(str(bucket / "flights")).count() == 24
        assert_clean(bucket / "flights")
    assert spark.read.option("header", True).csv(url + "-csv").count() == 1000
    assert_clean(url)
    assert_clean(url + "-csv")


def test_the_readme_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, but for the bucket; test_install.py runs it on S3, with its commands."""
    monkeypatch.chdir(tmp_path)
    new_session()
    run_examples("README.md", {}, tmp_path)
    assert_clean(tmp_path / "flights")
    assert sorted(path.read_text() for path in (tmp_path / "images").glob("*.jpg")) == ["first", "second"]


def test_the_guide_to_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "how-to/use-a-namespace-with-spark.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "namespaces.json"))
    (create,) = shell_blocks(page)
    assert run(*shlex.split(os.path.expandvars(create))[1:]).exit_code == 0
    run_examples(page, {"spark": new_session()})
    with open_namespace(f"sqlite://{tmp_path}/lake.db") as namespace:
        assert namespace.exists("/flights/_SUCCESS")


def test_the_guide_to_tables_of_a_store(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/shop.db"
    run_examples("how-to/load-and-read-tables.md", {"spark": new_session(), "url": url})
