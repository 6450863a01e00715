"""Run the examples of docs/how-to/use-the-namespace-from-python.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.fs import NamespaceFileSystem
from holdfast.namespace.catalog import read_catalog
from tests.acceptance.guides import run_examples

pytestmark = pytest.mark.acceptance

PAGE = "how-to/use-the-namespace-from-python.md"


@pytest.mark.parametrize("place", ["files", "memory"])
def test_the_examples_run_as_they_stand(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "namespaces.json"))
    database = f"sqlite:///{tmp_path}/lake.db" if place == "files" else "memory://guide"
    data = str(tmp_path / "data") if place == "files" else "memory://guide"
    run_examples(PAGE, {"database": database, "data": data})
    assert read_catalog() == {"lake": database}
    fs = NamespaceFileSystem(user="ada")
    assert fs.find("lake") == [
        "lake/both.zip",
        "lake/home/eve/a",
        *(f"lake/model/{name}" for name in ("sales/part-0.parquet", "settings.json", "weights")),
        "lake/notes/today.txt",
        "lake/one.parquet",
        "lake/sales.csv",
        "lake/wide.csv",
    ]
    NamespaceFileSystem.clear_instance_cache()
