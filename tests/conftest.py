"""Isolate every test from the machine's settings, order the modules, and fail a session that leaves processes running.

`make test` runs ``pytest -n 3``. Each worker takes whole modules, so that all modules with Spark share one application
per worker. At its end a worker checks for leftover threads and processes of its tests, and the session checks again.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import time_limit
from tests.class_archive import java_options
from tests.database_servers import mariadb_server, new_mysql_url, new_postgres_url, postgres_server
from tests.patience import PATIENCE_S
from tests.session_processes import SESSION_MARK, session_processes

__all__ = ["mariadb_server", "new_mysql_url", "new_postgres_url", "postgres_server"]  # fixtures for all tests

_GRACE_S = 60.0  # only a failing session waits that long
_LEFT = "left_behind"
_left_by_workers: list[str] = []


# The time of an example depends on the machine: a busy machine must not fail a test.
_BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("holdfast", _BUSY, max_examples=40)
settings.register_profile("thorough", _BUSY, max_examples=400)  # for `make check`
settings.load_profile("holdfast")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the time limit of a session."""
    parser.addini(time_limit.SETTING, "seconds after which a session shows all stacks, and ends")


def pytest_configure(config: pytest.Config) -> None:
    """Hide the machine's settings from the tests, and mark all processes that they will start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1,localhost",
        "PYSPARK_PYTHON": sys.executable,  # set by scripts/run, but not by an editor that runs one test
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": java_options(),
        "SPARK_SUBMIT_OPTS": java_options(),
        "no_proxy": "127.0.0.1,localhost",
        SESSION_MARK: _mark(config),
    }
    time_limit.show_stacks_on_request()
    if not _is_worker(config):
        time_limit.start(config)


def _mark(config: pytest.Config) -> str:
    """Return the mark of this session's processes; a worker's mark starts with the mark of its session."""
    own = str(os.getpid())
    return f"{os.environ[SESSION_MARK]}/{own}" if _is_worker(config) else own


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest modules first, so that no worker is left alone with one of them at the end."""
    if _is_worker(config):
        weights: dict[Path, int] = {}
        for item in items:
            weights[item.path] = max(weights.get(item.path, 0), _weight(item))
        items.sort(key=lambda item: -weights[item.path])  # a stable sort: modules stay whole, tests in their order


def _weight(item: pytest.Item) -> int:
    """Return the rank of the test's module; the modules of a higher rank start earlier."""
    if item.path.name in LONG_ALONE:
        return 4
    if item.path.name in LONG_SHARED:
        return 3
    if item.get_closest_marker("spark") is not None:
        return 2
    return 1 if item.get_closest_marker("acceptance") is not None or item.path.name in MIDDLING else 0


LONG_ALONE = (
    *("test_spark_cluster.py", "test_demo.py", "test_cli_write.py", "test_spark_connect.py"),
    *("test_tutorial.py", "test_style.py", "test_site.py"),
)
"""Long modules without the shared application. They come first, since a cluster of its own would end that."""

LONG_SHARED = (
    *("test_matrix.py", "test_native_agrees.py", "test_native_read.py", "test_spark_committers.py"),
    *("test_spark_read.py", "test_spark_stream.py", "test_spark_write.py", "test_table_contract.py"),
)
"""Long modules with the shared application."""

MIDDLING = (
    *("test_actors.py", "test_conformance.py", "test_crashes.py", "test_database_servers.py"),
    *("test_holes.py", "test_light_import.py", "test_mutants.py", "test_random_histories.py", "test_reduction.py"),
    *("test_scale.py", "test_scenes.py", "test_sessions.py", "test_streams.py", "test_table.py"),
    *("test_table_changes.py", "test_transactions.py", "test_two_phase.py", "test_uploads.py", "test_walk.py"),
)
"""Modules of five seconds and more without Spark."""


def pytest_collection_finish() -> None:
    """Exempt imported modules from garbage collection: they live to the end of the session anyway."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _slots_stay(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a module after which the shared Spark application runs fewer tasks at a time, and end the application."""
    yield
    context = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_active_spark_context", None)
    if context is not None and context.master.startswith("local["):
        from tests.integration.task_slots import require_all_slots

        require_all_slots(context, request.node.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect what a worker reports as left behind."""
    _left_by_workers.extend(getattr(node, "workeroutput", {}).get(_LEFT, ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session if a test left a process or a thread behind."""
    _stop_spark_jvm()
    left: list[str] = []
    poll = threading.Event()
    for _ in range(int(_GRACE_S / 0.1)):  # a process that is already exiting may need a moment
        left = sorted({*_left_by_workers, *_threads_left(), *map(str, session_processes())})
        if not left:
            return
        poll.wait(0.1)
    if _is_worker(session.config):
        session.config.workeroutput[_LEFT] = left  # type: ignore[attr-defined]  # set by xdist, which sends it to the session
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.section("left behind by the tests", red=True, bold=True)
        for line in left:
            reporter.line(line)
    session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _stop_spark_jvm() -> None:
    """Stop the JVM that PySpark keeps until the interpreter exits."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = getattr(context, "_gateway", None)
    if gateway is None:
        return
    if context._active_spark_context is not None:
        context._active_spark_context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=PATIENCE_S)


def _threads_left() -> list[str]:
    main = threading.main_thread()
    return [f"thread {t.name}" for t in threading.enumerate() if t is not main and not t.daemon]
