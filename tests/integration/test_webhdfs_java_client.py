"""Hadoop's client of WebHDFS, as PySpark brings it, against the server; and what HDFS answers to the same calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.webhdfs_calls import WebHdfsCalls
from tests.integration.webhdfs_clients import HadoopClients, hadoop_clients
from tests.unit.namespace.hdfs_cases import FILES, Case, read_cases

pytestmark = pytest.mark.spark

CASES = {
    file.stem: [case for case in read_cases(file) if all(map(WebHdfsCalls.can_run, case.steps))]
    for file in FILES
    if file.stem != "append"  # streams: below
}

_ILLEGAL = {"HadoopIllegalArgumentException", "IllegalArgumentException", "IOException"}
"""What HDFS raises for a bad argument; which of them is an accident of its code."""


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopClients]:
    with hadoop_clients(tmp_path_factory.mktemp("served")) as clients:
        yield clients
    clients.served.check()


def _run(case: Case, hadoop: HadoopClients) -> list[str]:
    hadoop.calls.clear()
    wrong = []
    for step in case.steps:
        answer = hadoop.calls.answer(step)
        if answer != step.ours and not {answer, step.ours} <= _ILLEGAL:
            wrong.append(f"{case.title}: {step.call} -> {answer}, and HDFS {step.ours}")
    return wrong


@pytest.mark.parametrize("kind", CASES)
def test_recorded_cases_of_hdfs(kind: str, hadoop: HadoopClients) -> None:
    assert [one for case in CASES[kind] for one in _run(case, hadoop)] == []


def test_most_recorded_cases_are_run() -> None:
    assert sum(map(len, CASES.values())) > 100
