"""A namespace of one test, for the tests of ``holdfast fs``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.runtime import SystemIds


@pytest.fixture
def ns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Namespace]:
    """The namespace ``holdfast://ns``, opened by its superuser. Files above 100 bytes are in a local directory."""
    place = tmp_path / "ns"
    place.mkdir()
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(place / "catalog.json"))
    monkeypatch.setenv("LOGNAME", "root")
    configuration = Configuration(name="ns", data=str(place / "data"), superuser="root", inline_bytes=100)
    init_namespace(configuration, f"memory://{SystemIds().token()}")  # commands run in this process
    with open_namespace("holdfast://ns") as found:
        yield found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place
