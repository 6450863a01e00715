"""Hadoop's own contract suites, against the WebHDFS server: 546 cases, and what is expected of each."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop_contract.expectations import SUITES, baseline, expectations, reasons
from tests.hadoop_contract.suites import run_suite
from tests.hadoop_contract.toolchain import build_class_path, missing_tool
from tests.integration.served_namespace import ServedNamespace, serve_namespace


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNamespace]:
    """Serve one namespace to all suites: each leaves little behind, and the user of the JVMs is its superuser.

    In the end it is checked.
    """
    with serve_namespace(tmp_path_factory.mktemp("served"), superuser=getpass.getuser()) as running:
        yield running


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    missing = missing_tool()
    if missing:
        pytest.skip(missing)
    return build_class_path(tmp_path_factory.mktemp("classes"))


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_suite(suite: str, class_path: str, served: ServedNamespace, tmp_path: Path) -> None:
    expected = expectations(suite)
    results = run_suite(suite, served.url, class_path, tmp_path)
    assert sorted(one.case for one in results) == sorted(expected)
    others = [one for one in results if one.outcome != expected[one.case].outcome]
    assert others == [], f"not as expected; stack traces are in {tmp_path}"


def test_every_reason_belongs_to_a_case() -> None:
    for suite, lines in reasons().items():
        known = {case.partition("[")[0] for case in baseline()[suite]}
        assert set(lines) <= known | {"*"}
