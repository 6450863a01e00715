"""Start servers as users do: what their processes print and leave."""

from __future__ import annotations

from pathlib import Path

from holdfast.webhdfs.settings import Limits
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
