"""Real servers forget what they had acknowledged, and the clients of a namespace live on."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Create, Put
from holdfast.stores.registry import open_destination
from holdfast.transactions.registry import open_backend
from tests.databases import needs_postgres
from tests.namespace_check import problems_of
from tests.servers.postgres_server import PostgresServer

pytestmark = [pytest.mark.slow, needs_postgres]

_LATE = {"synchronous_commit": "off", "wal_writer_delay": "10s"}
"""The server flushes every ten seconds unless it is asked to: a kill takes away whatever was not flushed on purpose."""


def _open(url: str) -> Namespace:
    return open_namespace(url, user="root", groups=[])


def _new_namespace(server: PostgresServer, folder: Path) -> str:
    url = server.create_database("ns")
    init_namespace(Configuration(name="ns", data=f"file://{folder}", superuser="root"), url, register=False)
    database = open_backend(url)
    database.make_durable()
    database.close()
    return url


def _live_on(url: str, data: Path, forget: Callable[[], None]) -> None:
    """Let two clients work, let the database forget what they did, and let them go on."""
    with _open(url) as ann, _open(url) as bob:
        ann.mkdirs("/ann")
        ann.write_file("/ann/old", b"old")
        file = ann.create_with_lease("/ann/file")
        file.write(b"first ")
        file.sync()
        bob.write_file("/shared", b"shared")
        more = bob.append("/shared")
        forget()
        with pytest.raises(LeaseLostError):
            more.close()
        for number in range(3):
            bob.mkdirs(f"/bob{number}")
        bob.write_file("/bob2/file", b"bob's")
        file.write(b"second")
        with pytest.raises(LeaseLostError):
            file.close()
        file.discard()
        ann.write_file("/ann/new", b"new")
        assert [one.path for one in ann.walk("/ann")] == ["/ann/new"]
        assert ann.delete("/ann", recursive=True)
        ann.collect()
        assert bob.open("/bob2/file").read() == b"bob's"
        assert {one.path for one in bob.walk("/")} == {"/bob0", "/bob1", "/bob2", "/bob2/file"}
    database, blobs = open_backend(url), open_destination(f"file://{data}")
    try:
        assert problems_of(database, blobs.store, blobs.key(""), strays=True) == []
    finally:
        database.close()
        blobs.store.close()


def test_a_late_flush_and_a_kill(tmp_path: Path) -> None:
    with PostgresServer(settings=_LATE) as server:
        url = _new_namespace(server, tmp_path / "data")

        def forget() -> None:
            server.kill()
            server.start()

        _live_on(url, tmp_path / "data", forget)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Return a directory that the server's account may enter, if the tests run as root."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_a_restored_copy_of_the_files(tmp_path: Path, open_directory: Path) -> None:
    with PostgresServer(open_directory / "server") as server:
        url = _new_namespace(server, tmp_path / "data")
        data, copy = open_directory / "server" / "data", open_directory / "server" / "copy"
        server.stop()
        subprocess.run(["cp", "-a", str(data), str(copy)], check=True)
        server.start()

        def forget() -> None:
            server.stop()
            data.rename(data.with_name("lost"))
            copy.rename(data)
            server.start()

        _live_on(url, tmp_path / "data", forget)


def test_a_step_of_the_object_store_is_there_after_a_kill(tmp_path: Path) -> None:
    with PostgresServer(settings=_LATE) as server:
        url = _new_namespace(server, tmp_path / "data")
        with _open(url) as namespace:
            store = NamespaceStore(namespace)
            store.apply([Put("job/log/1", b"decision", Create()), Put("job/part-0", b"rows")])
            server.kill()
            server.start()
            assert store.get("job/part-0") == b"rows"
