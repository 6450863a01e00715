"""Run the demo of namespaces: kill one of two servers while stock Spark writes through them, then compare every row.

The servers share an SQLite file and a directory. Spark knows both, by Hadoop's own settings. What was written is read
without Spark and without the servers.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet

from holdfast.errors import UnavailableError, UnsupportedError
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.opening import user_of_process
from holdfast.runtime import Clock, SystemClock

_NAME = "demo"
_START_S = 30.0
_JOB_S = 300.0
_STEP_S = 0.1
_FILES_AT_DEATH = 3
"""So many files the first server has received when it is killed; the job writes one for each of its 16 tasks."""


@dataclass(kw_only=True)
class FailoverReport:
    """What one run of the demo has seen.

    Attributes:
        rows: how many rows were read in the end.
        events: what happened, one sentence each.
        problems: what is wrong, one sentence each.
    """

    rows: int = 0
    events: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        """Whether the demo found no problem."""
        return not self.problems


def run_failover_demo(folder: Path, tell: Callable[[str], None]) -> FailoverReport:
    """Run the demo and report what was observed.

    Guarantee: no process is left, even after an error or Ctrl-C.

    Args:
        folder: a directory for the namespace and the logs.
        tell: called with a few words about the current step.

    Raises:
        UnsupportedError: something that the demo requires is not installed.
        UnavailableError: a server or the job fails; the message contains the end of its output.
    """
    _require_installed()
    tell("creating a namespace")
    database = f"sqlite://{folder}/names.db"
    configuration = Configuration(name=_NAME, data=f"file://{folder}/data", superuser=user_of_process())
    init_namespace(configuration, database, register=False)
    report = FailoverReport()
    with contextlib.ExitStack() as stack:
        tell("starting two servers")
        servers = [stack.enter_context(_DemoServer.started(folder, name, database)) for name in ("one", "two")]
        tell("writing with Spark")
        _write_while_server_dies(report, servers, folder, stack, tell)
    tell("comparing every row")
    with open_namespace(database) as namespace:
        _check_rows(report, namespace)
        found = namespace.check()
        report.events.append(f"fsck: {found.counts.files} files, {found.damage_count} damaged")
        if not found.is_healthy:
            report.problems.append("the namespace is damaged: see holdfast namespace fsck")
    return report


def _require_installed() -> None:
    for module, extra in (("pyspark", "spark"), ("uvicorn", "server")):
        if importlib.util.find_spec(module) is None:
            raise UnsupportedError(f"the demo needs {module}: pip install 'holdfast[{extra}]'")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and shutil.which("java", path=f"{home}/bin"))):
        raise UnsupportedError("Spark needs Java 17 or newer: install it, or set JAVA_HOME")


# --- servers ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _DemoServer:
    """A server in a process of its own.

    Attributes:
        address: as host:port.
        log: where it logs its requests.
    """

    name: str
    process: subprocess.Popen[bytes]
    address: str
    log: Path

    @staticmethod
    @contextlib.contextmanager
    def started(folder: Path, name: str, database: str) -> Iterator[_DemoServer]:
        """Start a server; it is gone after the block."""
        log, output = folder / f"{name}.access", folder / f"{name}.log"
        command = [sys.executable, "-m", "holdfast.cli", "namespace", "serve", _NAME, "--database", database]
        with output.open("wb") as target:
            process = subprocess.Popen(
                [*command, "--port", "0", "--access-log", str(log), "--json"],
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches only the demo, which then ends the server
            )
        try:
            yield _DemoServer(name, process, _wait_for_address(process, output, SystemClock()), log)
        finally:
            process.kill()
            process.wait()

    def received_files(self) -> int:
        """Return how many files the server has received so far."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return sum(one["operation"] == "CREATE" and one["status"] == 201 for one in found)


def _wait_for_address(process: subprocess.Popen[bytes], output: Path, clock: Clock) -> str:
    begun_s = clock.elapsed_s()
    while clock.elapsed_s() - begun_s < _START_S and process.poll() is None:
        for line in output.read_text(errors="replace").splitlines():
            if line.startswith('{"address"') and line.endswith("}"):
                address = str(json.loads(line)["address"]).removeprefix("http://")
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/health", timeout=5):
                    return address
        clock.sleep(_STEP_S)
    raise UnavailableError("a server of the demo did not start", log=output.read_text(errors="replace")[-400:])


# --- the job ----------------------------------------------------------------------------------------------------------
def _write_while_server_dies(
    report: FailoverReport,
    servers: list[_DemoServer],
    folder: Path,
    stack: contextlib.ExitStack,
    tell: Callable[[str], None],
) -> None:
    """Run the job, and kill the server that it uses when it has written a few files."""
    log, clock = folder / "driver.log", SystemClock()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):  # use the PySpark of this installation, not another one
        environment.pop(name, None)
    command = [sys.executable, "-c", "from holdfast.demo.failover_driver import main; main()"]
    with log.open("wb") as output:
        driver = subprocess.Popen(
            [*command, *(server.address for server in servers), str(folder / "spark")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    stack.callback(_end_group, driver)
    begun_s, victim, survivor = clock.elapsed_s(), servers[0], servers[1]
    received = 0
    while driver.poll() is None and clock.elapsed_s() - begun_s < _JOB_S:
        if victim.process.poll() is None and victim.received_files() >= _FILES_AT_DEATH:
            tell("killed a server; Spark goes on with the other one")
            victim.process.send_signal(signal.SIGKILL)
            victim.process.wait()
            received = victim.received_files()
        clock.sleep(_STEP_S)
    if driver.poll() != 0:
        raise UnavailableError("the demo's Spark job failed", log=log.read_text(errors="replace")[-800:])
    if victim.process.poll() is None:
        report.problems.append("the job ended before the server could be killed: nothing was shown")
    report.events.append(
        f"server {victim.name} was killed after {received} files; server {survivor.name} received "
        f"{survivor.received_files()} more, and the job committed"
    )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # the driver and its JVM
    process.wait()


def _check_rows(report: FailoverReport, namespace: Namespace) -> None:
    """Read the table's files from the namespace, and compare each row with what it must be."""
    from holdfast.demo.failover_driver import ROWS

    seen: set[int] = set()
    for entry in namespace.list("/table"):
        if entry.name.startswith("_"):
            continue
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(namespace.open(entry.path).read()))
        for number, digest in zip(*(column.to_pylist() for column in table.columns), strict=True):
            report.rows += 1
            seen.add(number)
            if hashlib.sha256(str(number).encode()).hexdigest() != digest:
                report.problems.append(f"row {number} has a wrong value")
                return
    report.events.append(f"read {report.rows:,} rows without Spark")
    if not (report.rows == len(seen) == ROWS and seen == set(range(ROWS))):
        report.problems.append(f"there must be {ROWS:,} rows, each once: {report.rows:,}, {len(seen):,} different ones")
