"""Kill PostgreSQL and MariaDB with SIGKILL while clients work: nothing acknowledged is lost, nothing is half done."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.errors import UnsupportedError
from holdfast.namespace import Configuration, init_namespace, open_namespace
from tests.patience import PATIENCE_S, wait_until
from tests.servers.mariadb_server import MariadbServer, find_mariadb
from tests.servers.postgres_server import PostgresServer, find_postgres
from tests.variants import variants

_WORKERS = 3
_SERVERS = {"postgresql": (PostgresServer, find_postgres), "mysql": (MariadbServer, find_mariadb)}


@contextmanager
def _workers(url: str, folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Run workers; yield the file that stops them, and their reports."""
    stop, reports = folder / "stop", [folder / f"report-{number}" for number in range(_WORKERS)]
    command = [sys.executable, "-m", "tests.integration.namespace_worker", url]
    running = [
        subprocess.Popen([*command, f"/w{number}", str(number), str(stop), str(report)])
        for number, report in enumerate(reports)
    ]
    try:
        yield stop, reports
        stop.touch()
        for worker in running:
            assert worker.wait(PATIENCE_S * 4) == 0, "a worker has found a wrong state: see its error"
    finally:
        for worker in running:
            worker.kill()
            worker.wait()


@pytest.mark.parametrize("name", variants(_SERVERS))
@pytest.mark.parametrize("kills", [pytest.param(2), pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_server_loses_nothing(name: str, kills: int, tmp_path: Path) -> None:
    kind, find = _SERVERS[name]
    try:
        find()
    except UnsupportedError as error:
        pytest.skip(str(error))
    with kind() as server:
        url = server.create_database("ns")
        init_namespace(Configuration(name="ns", data=str(tmp_path / "data"), superuser="root"), url, register=False)
        with _workers(url, tmp_path) as (_, reports):
            wait_until(lambda: all(Path(f"{report}.ready").exists() for report in reports), "the workers work")
            for number in range(kills):
                _let_them_work(url, number)
                server.kill()
                server.start()
            _let_them_work(url, kills)
        found = [json.loads(report.read_text()) for report in reports]
        outcomes = sum((Counter(one["outcomes"]) for one in found), Counter[str]())
        assert all(outcomes[one] > 0 for one in ("create", "overwrite", "rename", "move", "delete")), outcomes
        with open_namespace(url, user="root") as namespace:
            files = {entry.path for entry in namespace.walk("/") if not entry.is_directory}
            assert files == {path for one in found for path in one["files"]}
            namespace.collect()
            assert {entry.path for entry in namespace.walk("/") if not entry.is_directory} == files


def _let_them_work(url: str, number: int) -> None:
    """Wait until another client has seen some changes of the workers."""
    with open_namespace(url, user="root") as namespace:
        seen: set[tuple[str, int]] = set()

        def has_moved_on() -> bool:
            seen.update((entry.path, entry.id) for entry in namespace.walk("/"))
            return len(seen) > first + 20 + number % 7

        first = 0
        has_moved_on()
        first = len(seen)
        wait_until(has_moved_on, "the workers go on")
