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
    wait_until(lambda: log.read_bytes()[before:].count(b"\n") >= len(names), "lines are missing")
    added = log.read_bytes()[before:]
    lines = [json.loads(line) for line in added.decode("ascii").splitlines()]
    assert [one["path"] for one in lines] == [f"/log/{name}" for name in names]
    assert b"secret-token" not in added
    assert {one["method"] for one in lines} == {"GET"}


def test_a_full_disk_does_not_stop_a_server(tmp_path: Path) -> None:
    """Requests are answered without a line."""
    with ServedNamespace(tmp_path / "full") as namespace, namespace.serve("--access-log", "/dev/full") as server:
        assert server.upload("/file", b"bytes").status == 201
        assert namespace.files() == {"/file": b"bytes"}
