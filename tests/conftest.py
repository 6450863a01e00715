"""Isolate every test from the machine's settings, order the modules, and fail a session that leaves processes running.

`make test` runs ``pytest -n 3``. Each worker takes whole modules, and one of them takes all modules with Spark, which
share one application. At its end a worker checks for leftover threads and processes of its tests, and the session
checks again.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import time_limit
from tests.class_archive import java_options
from tests.cpu_times import CpuTimes, in_order
from tests.database_servers import mariadb_server, new_mysql_url, new_postgres_url, postgres_server
from tests.patience import PATIENCE_S
from tests.session_processes import SESSION_MARK, session_processes
from tests.variants import mark_in_turn

__all__ = ["mariadb_server", "new_mysql_url", "new_postgres_url", "postgres_server"]  # fixtures for all tests

_GRACE_S = 60.0  # only a failing session waits that long
_LEFT = "left_behind"
_left_by_workers: list[str] = []


# The time of an example depends on the machine: a busy machine must not fail a test.
_BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("holdfast", _BUSY, max_examples=30)
settings.register_profile("thorough", _BUSY, max_examples=400)  # for `make check`
settings.load_profile("holdfast")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the time limit of a session, and the option that records how long modules take."""
    parser.addoption("--record-cpu-times", action="store_true", help="write tests/cpu_times.json")
    parser.addini(time_limit.SETTING, "seconds after which a session shows all stacks, and ends")


def pytest_configure(config: pytest.Config) -> None:
    """Hide the machine's settings from the tests, and mark all processes that they will start."""
    gc.disable()  # until all tests are collected: their objects stay
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
    config.pluginmanager.register(CpuTimes(is_worker=_is_worker(config)))
    time_limit.show_stacks_on_request()
    if not _is_worker(config):
        time_limit.start(config)


def _mark(config: pytest.Config) -> str:
    """Return the mark of this session's processes; a worker's mark starts with the mark of its session."""
    own = str(os.getpid())
    return f"{os.environ[SESSION_MARK]}/{own}" if _is_worker(config) else own


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)  # before tests that are slow are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the variants of the default suite, and put the longest modules first, if workers share them."""
    mark_in_turn(items)
    if _is_worker(config):
        items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Schedule the default suite with one Spark application; the slow tests with Spark need all workers."""
    from tests.spark_worker import SparkOnOneWorker

    is_default = config.getoption("dist") == "loadfile" and config.getoption("markexpr") == "not slow"
    return SparkOnOneWorker(config, log) if is_default else None


def pytest_collection_finish() -> None:
    """Exempt imported modules from garbage collection: they live to the end of the session anyway."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _slots_stay(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a module after which the shared Spark application runs fewer tasks at a time, and end the application."""
    yield
    context = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_active_spark_context", None)
    if context is not None and context.master.startswith("local["):
        from tests.integration.task_slots import require_all_slots

        require_all_slots(context, request.node.nodeid)


@pytest.fixture(autouse=True)
def _tracebacks_stay() -> Iterator[None]:
    """Undo what the data source sets in a worker process of Spark, if a test calls it in this process."""
    yield
    os.environ.pop("SPARK_HIDE_TRACEBACK", None)


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
