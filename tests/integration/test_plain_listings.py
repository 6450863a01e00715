"""Sample plain listings of a namespace while jobs commit: a job is there as a whole, or not at all."""

from __future__ import annotations

import getpass
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.commit import TWO_PHASE, SaveMode, open_context
from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.runtime import ThreadExecutor, ThreadRunner
from tests.patience import wait_until
from tests.variants import variants

_JOBS, _TASKS, _PARTITIONS = 20, 3, 4


def _run_job(database: str, number: int) -> None:
    """Write one file to each partition in every task; each path tells its job."""
    ctx = open_context("holdfast://ns/table", threads=4)
    try:
        job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {})
        assert job is not None
        commits = []
        for task in range(_TASKS):
            with TWO_PHASE.setup_task(ctx, job, task) as attempt:
                for partition in range(_PARTITIONS):
                    sink = attempt.open(f"k={partition}/job-{number}-{attempt.file_name('.txt')}")
                    sink.write(f"{number} {task} {partition}".encode() * 30_000)
                    sink.close()
                commits.append(attempt.commit())
        assert TWO_PHASE.commit_job(ctx, job, commits, _TASKS).committed
    finally:
        ctx.store.close()


@pytest.mark.parametrize("backend", variants(["sqlite", "postgresql", "mysql"], "postgresql"))
def test_a_plain_listing_never_shows_a_part_of_a_job(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    urls: dict[str, Callable[[], str]] = {
        "sqlite": lambda: f"sqlite://{tmp_path}/ns.db",
        "postgresql": lambda: request.getfixturevalue("new_postgres_url")(),
        "mysql": lambda: request.getfixturevalue("new_mysql_url")(),
    }
    database = urls[backend]()
    monkeypatch.setenv("HOLDFAST_NAMESPACE_NS", database)
    configuration = Configuration(name="ns", data=str(tmp_path / "data"), superuser=getpass.getuser())
    init_namespace(configuration, database, register=False)
    over = threading.Event()
    seen: set[frozenset[str]] = set()

    counts: list[int] = []

    def sample() -> None:
        """List the table again and again."""
        with open_namespace(database) as namespace:
            while not over.wait(0):
                files = [entry.name for entry in namespace.walk("/") if entry.name.startswith("job-")]
                parts = Counter(name.rpartition("-part-")[0] for name in files)
                assert set(parts.values()) <= {_TASKS * _PARTITIONS}, parts
                seen.add(frozenset(parts))
                counts.append(len(parts))

    samplers = ThreadExecutor(2)
    try:
        for _ in range(2):
            samplers.submit(sample)
        list(ThreadRunner(4).map(lambda number: _run_job(database, number), range(_JOBS)))
        wait_until(lambda: any(len(jobs) == _JOBS for jobs in seen), "a listing after the last job")
    finally:
        over.set()
        samplers.drain()
        samplers.close()
    assert len(counts) > _JOBS
    assert len(seen) > 2
