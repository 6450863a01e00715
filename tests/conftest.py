"""What holds for every test: nobody's credentials, no proxy, and nothing left running at the end of the session.

With ``pytest -n 2`` (so `make test` does) each worker takes whole modules, so that those with Spark share one
application a worker; a worker looks for what its tests have left behind, and the session for what its workers have.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.class_archive import java_options

_SESSION_MARK = "HOLDFAST_TEST_SESSION"
_GRACE_S = 10.0
_LEFT = "left_behind"
_left_by_workers: list[str] = []


# How long an example takes is no property of the code: a busy machine must not fail a test.
settings.register_profile("holdfast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")


def pytest_configure(config: pytest.Config) -> None:
    """Cut the tests off from the machine's AWS settings, and mark all processes that they will start."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1,localhost",
        "PYSPARK_PYTHON": sys.executable,  # scripts/run sets these too; an editor that runs one test does not
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": java_options(),
        "SPARK_SUBMIT_OPTS": java_options(),
        "no_proxy": "127.0.0.1,localhost",
        _SESSION_MARK: _mark(config),
    }


def _mark(config: pytest.Config) -> str:
    """What processes of this session carry; that of a worker goes on behind that of its session."""
    own = str(os.getpid())
    return f"{os.environ[_SESSION_MARK]}/{own}" if _is_worker(config) else own


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Side by side the long modules come first, so that no worker is left alone with one of them at the end."""
    if _is_worker(config):
        weights: dict[Path, int] = {}
        for item in items:
            weights[item.path] = max(weights.get(item.path, 0), _weight(item))
        items.sort(key=lambda item: -weights[item.path])  # a stable sort: modules stay whole, tests in their order


def _weight(item: pytest.Item) -> int:
    """How long a module with this test may take: with a cluster or killed drivers, with Spark, with mypy, or short."""
    if item.path.name in _LONG:
        return 3
    if item.get_closest_marker("spark") is not None:
        return 2
    return 1 if item.get_closest_marker("acceptance") is not None or item.path.name in _MIDDLING else 0


_LONG = (
    *("test_spark_write.py", "test_spark_read.py", "test_spark_stream.py", "test_spark_stream_kills.py"),
    *("test_spark_cluster.py", "test_demo_killed_driver.py", "test_style.py"),
)
_MIDDLING = ("test_conformance.py", "test_mutants.py", "test_table.py", "test_two_phase.py", "test_crashes.py")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear what a worker's tests have left behind."""
    _left_by_workers.extend(getattr(node, "workeroutput", {}).get(_LEFT, ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session if a test left a process or a thread behind."""
    _stop_spark_jvm()
    left: list[str] = []
    poll = threading.Event()
    for _ in range(int(_GRACE_S / 0.1)):  # what is ending already may take a moment
        left = sorted({*_left_by_workers, *_threads_left(), *_processes_left()})
        if not left:
            return
        poll.wait(0.1)
    if _is_worker(session.config):
        session.config.workeroutput[_LEFT] = left  # type: ignore[attr-defined]  # xdist's: travels to the session
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.section("left behind by the tests", red=True, bold=True)
        for line in left:
            reporter.line(line)
    session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _stop_spark_jvm() -> None:
    """PySpark keeps its JVM for the next session until the interpreter ends; here nothing comes after."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = getattr(context, "_gateway", None)
    if gateway is None:
        return
    if context._active_spark_context is not None:
        context._active_spark_context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)


def _threads_left() -> list[str]:
    main = threading.main_thread()
    return [f"thread {t.name}" for t in threading.enumerate() if t is not main and not t.daemon]


def _processes_left() -> list[str]:
    """Live processes that carry this session's mark, or descend from it (a fork shows the mark of its parent only)."""
    own = os.getpid()
    mark = f"{_SESSION_MARK}={os.environ[_SESSION_MARK]}".encode()
    parents: dict[int, int] = {}
    marked: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):  # empty where there is no /proc: the check is for Linux
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z":
                continue
            parents[int(entry.name)] = int(parent)
            found = (entry / "environ").read_bytes().split(b"\0")
            if any(value == mark or value.startswith(mark + b"/") for value in found):
                marked.add(int(entry.name))
        except OSError:  # ended while we looked, or another user's
            continue
    left = {pid for pid in parents if pid != own and (pid in marked or _descends(pid, own, parents))}
    return [f"process {pid}: {_command(pid)}" for pid in sorted(left)]


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "(ended just now)"
