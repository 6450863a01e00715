"""Start a standalone Spark cluster with two hosts on this machine, because speculation needs a second host.

facts E1: ``local-cluster`` calls all its workers one host, so speculation never happens there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark

from tests.patience import wait_until

__all__ = ["standalone_cluster"]

_END_S = 20.0  # then its processes are killed
_HOSTS = ("127.0.0.1", "127.0.0.2")  # all of 127.0.0.0/8 is this machine on Linux


@contextlib.contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start a master and two workers with two cores each, and yield the master's URL.

    Args:
        folder: for logs and the workers' files.
    """
    with contextlib.ExitStack() as stack:
        port = _free_port()
        master = f"spark://{_HOSTS[0]}:{port}"
        log = _launch(stack, folder, "master", _HOSTS[0], ["Master", "--port", str(port), "--webui-port", "0"])
        _wait_for(log, "I have been elected leader")
        for number, host in enumerate(_HOSTS):
            options = [
                "--cores",
                "2",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(folder / f"work-{number}"),
            ]
            _launch(stack, folder, f"worker-{number}", host, ["Worker", *options, master])
        _wait_for(log, "Registering worker", times=len(_HOSTS))
        yield master


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOSTS[0], 0))
        port: int = probe.getsockname()[1]
        return port


def _launch(stack: contextlib.ExitStack, folder: Path, name: str, host: str, arguments: list[str]) -> Path:
    home = Path(pyspark.__file__).parent
    role, *options = arguments
    log = folder / f"{name}.log"
    file = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(
        [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role.lower()}.{role}", "--host", host, *options],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"},
        stdout=file,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that one signal ends its executors and their Python workers as well
    )
    stack.callback(_end, process)
    return log


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(log: Path, text: str, times: int = 1) -> None:
    try:
        wait_until(lambda: log.read_text(errors="replace").count(text) >= times, f"no {text!r} in {log.name}")
    except AssertionError as error:
        error.add_note(log.read_text(errors="replace")[-2000:])
        raise
