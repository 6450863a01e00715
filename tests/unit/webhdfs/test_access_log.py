"""The log of requests: a line of JSON each, whatever they contain."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.webhdfs.access_log import AccessLog
from holdfast.webhdfs.duties import Duties
from holdfast.webhdfs.settings import ServerSettings
from tests.namespace_world import World
from tests.patience import PATIENCE_S, wait_until
from tests.unit.webhdfs.carried import CarryingServer
from tests.unit.webhdfs.served import serve_fresh
from tests.webhdfs_server import ServedNamespace, ServerProcess


def test_each_request_is_one_line(session_server: ServerProcess, served: ServedNamespace) -> None:
    """Hostile names are escaped, and the query, which may contain a token, is not there."""
    log = served.directory / "access.log"
    assert session_server.is_alive()  # it has opened its log
    before = len(log.read_bytes())
    names = ["a\nb", "\r\n{}", '"\\', "\x1b[2J", "\u2028", "é😀", "secretless"]
    for name in names:
        session_server.call("GET", "GETFILESTATUS", f"/log/{name}", delegation="secret-token")

    def find_added() -> list[dict[str, object]]:
        """The lines come after the answers, and those of earlier tests among them."""
        lines = [json.loads(line) for line in log.read_bytes()[before:].decode("ascii").splitlines()]
        return [line for line in lines if str(line["path"]).startswith("/log/")]

    wait_until(lambda: len(find_added()) >= len(names), "lines are missing")
    assert sorted(str(line["path"]) for line in find_added()) == sorted(f"/log/{name}" for name in names)
    assert b"secret-token" not in log.read_bytes()
    assert {line["method"] for line in find_added()} == {"GET"}


def test_a_full_disk_does_not_stop_a_server(tmp_path: Path) -> None:
    """Requests are answered without a line."""
    with ServedNamespace(tmp_path / "full") as namespace, namespace.serve("--access-log", "/dev/full") as server:
        assert server.upload("/file", b"bytes").status == 201
        assert namespace.files() == {"/file": b"bytes"}


def test_a_log_that_was_renamed_goes_on_in_a_new_file(tmp_path: Path) -> None:
    """As logrotate does it, without a signal; every process follows."""
    log, old = tmp_path / "log", tmp_path / "log.1"
    with ServedNamespace(tmp_path / "rotated") as namespace, namespace.serve("--access-log", str(log)) as server:
        assert server.call("GET", "GETFILESTATUS", "/").status == 200
        wait_until(lambda: log.stat().st_size, "the request is not logged")
        log.rename(old)
        wait_until(log.exists, "no new file")
        before = old.read_bytes()
        assert server.call("GET", "GETFILESTATUS", "/new").status == 404
        wait_until(lambda: b"/new" in log.read_bytes(), "the request is not in the new file")
        assert old.read_bytes() == before
        assert not (log.stat().st_mode | old.stat().st_mode) & 0o007, "others may read a log"


def test_a_log_that_is_renamed_often_costs_one_descriptor(tmp_path: Path) -> None:
    place = tmp_path / "log"
    log = AccessLog(str(place))
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        place.rename(tmp_path / f"log.{number}")
        log.follow()
    assert len(os.listdir("/proc/self/fd")) == before
    log.close()


@pytest.mark.parametrize("is_renamed", [False, True])
def test_several_processes_write_to_one_log(tmp_path: Path, is_renamed: bool) -> None:
    """Also if another process, or logrotate itself, has made the new file."""
    place, old = tmp_path / "log", tmp_path / "log.1"
    place.write_text("of the server before\n", encoding="utf-8")
    logs = [AccessLog(str(place)) for _ in range(3)]
    if is_renamed:
        place.rename(old)
        for log in logs:
            log.follow()
    for log in logs:
        log.write(CarryingServer(World()).receive("GET", "/f", "op=GETFILESTATUS"))
        log.close()
    lines = place.read_text(encoding="utf-8").splitlines()
    assert sum('"path":"/f"' in line for line in lines) == 3
    assert (old if is_renamed else place).read_text(encoding="utf-8").startswith("of the server before")


def test_a_log_on_the_standard_output_stays_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "out").open("w", encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        log = AccessLog("-")
        log.follow()
        log.write(CarryingServer(World()).receive("GET", "/f", "op=GETFILESTATUS"))
        log.close()
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
    assert '"path":"/f"' in (tmp_path / "out").read_text(encoding="utf-8")


def test_a_log_goes_on_in_a_new_file_while_the_server_collects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: who led did nothing else meanwhile, which may take hours."""
    place, may_end, collects = tmp_path / "log", threading.Event(), threading.Event()

    def collect_for_long(duties: Duties) -> None:
        collects.set()
        assert may_end.wait(PATIENCE_S)

    monkeypatch.setattr(Duties, "run_round", collect_for_long)
    with serve_fresh(ServerSettings(url="", access_log=str(place)), duties_s=0.05) as served:
        assert served.get("/health").status == 200
        assert collects.wait(PATIENCE_S)
        place.rename(tmp_path / "log.1")
        wait_until(place.exists, "no new file")
        may_end.set()


def test_a_log_that_cannot_be_written_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """So a process that is started again waits until it can be."""
    with pytest.raises(InvalidRequestError, match="the access log cannot be written"):
        AccessLog(str(tmp_path / "nothing" / "log"))
