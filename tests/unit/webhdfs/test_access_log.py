"""The log of requests: a line of JSON each, whatever they contain."""

from __future__ import annotations

import json
from pathlib import Path

from tests.patience import wait_until
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
