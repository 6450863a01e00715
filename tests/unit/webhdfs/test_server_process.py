"""Start servers as users do: what their processes print and leave."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.webhdfs import server as server_module
from holdfast.webhdfs.settings import Limits, ServerSettings
from tests.patience import PATIENCE_S
from tests.webhdfs_server import ServedNamespace, ServerProcess


def test_files_go_through_a_server(server: ServerProcess, served: ServedNamespace) -> None:
    """CREATE, APPEND and OPEN, each in two requests."""
    small, large = b"few bytes", bytes(range(256)) * 9000
    assert server.upload("/through/small", small).status == 201
    assert server.upload("/through/large", large).status == 201
    assert server.upload("/through/small", small, operation="APPEND").status == 200
    assert server.download("/through/small").body == small * 2
    assert server.download("/through/large").body == large
    assert server.download("/through/large", offset=1000, length=70_000).body == large[1000:71_000]
    assert served.leases() == 0


def test_several_processes_serve_with_limits(tmp_path: Path) -> None:
    """Settings that the command line does not have; leaving the contexts checks log and namespace."""
    with ServedNamespace(tmp_path / "served") as served, served.serve(workers=2, limits=Limits(threads=4)) as server:
        assert server.upload("/file", b"bytes").status == 201
        assert served.files() == {"/file": b"bytes"}


def test_one_of_several_processes_waits_until_it_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: the server ended with all its processes, because one that had died could not be replaced at once."""
    tries, ends, handler = list[int](), list[object](), signal.getsignal(signal.SIGTERM)

    def start(settings: ServerSettings, parent: int) -> str:
        tries.append(parent)
        ends.append(signal.getsignal(signal.SIGTERM))
        if len(tries) < 3:
            raise UnavailableError("the database is away: repeat later")
        return "started"

    monkeypatch.setattr(server_module, "Service", start)
    monkeypatch.setattr(server_module, "_START_AGAIN_S", 0.0)
    assert server_module._start(ServerSettings(url=""), os.getppid()) == "started"
    assert len(tries) == 3
    assert ends == [signal.SIG_DFL] * 3
    assert signal.getsignal(signal.SIGTERM) == handler
    for parent, expected in ((0, UnavailableError), (-1, SystemExit)):
        tries.clear()
        with pytest.raises(expected):
            server_module._start(ServerSettings(url=""), parent)
        assert tries == [parent]


def test_ctrl_c_again_ends_a_server_at_once(tmp_path: Path) -> None:
    """Defect: uvicorn reported a failed application, with a traceback. Leaving the contexts checks the log."""
    with ServedNamespace(tmp_path / "served") as served, served.serve() as server, server.connect():
        assert server.call("GET", "GETFILESTATUS", "/").status == 200  # it has started
        server.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):  # it waits for the connection
            server.process.wait(0.1)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE_S) == 130


def test_a_process_that_cannot_start_leaves_no_namespace_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries again every two seconds."""
    users = tmp_path / "users.ini"
    users.write_text("[groups\n", encoding="utf-8")
    opened: list[str] = []
    monkeypatch.setattr(server_module, "open_namespace", lambda url, **_: opened.append(url))
    with pytest.raises(InvalidRequestError):
        server_module.Service(ServerSettings(url="memory://any", users_file=users))
    assert opened == []


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_a_host_that_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(InvalidRequestError, match="no such address"):
        server_module.listen(host, 0)
