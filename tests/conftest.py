"""What holds for every test: nobody's credentials, no proxy, and nothing left running at the end of the session."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

_SESSION_MARK = "HOLDFAST_TEST_SESSION"
_GRACE_S = 10.0


def pytest_configure() -> None:
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
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",  # no test runs long enough to pay for Java's second compiler
        "no_proxy": "127.0.0.1,localhost",
        _SESSION_MARK: str(os.getpid()),
    }


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session if a test left a process or a thread behind."""
    _stop_spark_jvm()
    left: list[str] = []
    poll = threading.Event()
    for _ in range(int(_GRACE_S / 0.1)):  # what is ending already may take a moment
        left = _threads_left() + _processes_left()
        if not left:
            return
        poll.wait(0.1)
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
    mark = f"{_SESSION_MARK}={own}".encode()
    parents: dict[int, int] = {}
    marked: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):  # empty where there is no /proc: the check is for Linux
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z":
                continue
            parents[int(entry.name)] = int(parent)
            if mark in (entry / "environ").read_bytes().split(b"\0"):
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
