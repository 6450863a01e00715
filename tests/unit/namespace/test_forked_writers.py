"""A child that is forked while a file is open ends its copy of the writer: the parent's file stays as it is."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.file_writer import FileWriter

_LARGE = bytes(range(256)) * 1000


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A namespace whose blobs are files."""
    found = f"sqlite://{tmp_path}/ns.db"
    configuration = Configuration(name="ns", data=str(tmp_path / "data"), superuser="root", inline_bytes=10)
    init_namespace(configuration, found, register=False)
    return found


def _in_child(act: Callable[[], object]) -> None:
    child = os.fork()
    if not child:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("data", [b"1234", b"12345678901", _LARGE], ids=["small", "buffered", "large"])
@pytest.mark.parametrize("kind", ["create", "create_with_lease", "append"])
def test_a_child_that_discards_the_writer(url: str, kind: str, data: bytes) -> None:
    with open_namespace(url, user="root") as namespace:
        namespace.write_file("/f", b"")
        path = "/f" if kind == "append" else "/g"
        file: FileWriter = getattr(namespace, kind)(path)
        file.write(data)
        _in_child(file.discard)
        file.write(data)
        file.close()
        assert namespace.open(path).read() == 2 * data


@pytest.mark.parametrize("data", [b"1234", b"12345678901"], ids=["small", "buffered"])
@pytest.mark.parametrize("kind", ["create", "create_with_lease"])
def test_a_child_may_not_finish_the_file(url: str, kind: str, data: bytes) -> None:
    """Both copies would be published, and the bytes of one of them would be lost."""
    with open_namespace(url, user="root") as namespace:
        file: FileWriter = getattr(namespace, kind)("/f")
        file.write(data)

        def finish() -> None:
            with pytest.raises(InvalidRequestError, match="opened by another process"):
                file.write(b"child")
            with pytest.raises(InvalidRequestError, match="opened by another process"):
                file.close()

        _in_child(finish)
        file.write(data)
        file.close()
        assert namespace.open("/f").read() == 2 * data


def test_a_child_that_leaves_the_block(url: str) -> None:
    def leave(namespace: Namespace) -> None:
        with namespace.create("/f") as file:
            file.write(_LARGE)
            child = os.fork()
            if not child:
                raise InterruptedError
            assert os.waitpid(child, 0)[1] == 0

    parent = os.getpid()
    with open_namespace(url, user="root") as namespace:
        try:
            leave(namespace)
        except InterruptedError:
            os._exit(0)
        finally:
            if os.getpid() != parent:
                os._exit(1)
        assert namespace.open("/f").read() == _LARGE


@pytest.mark.parametrize("mode", ["wb", "ab"])
@pytest.mark.parametrize("data", [b"12345678901", _LARGE], ids=["buffered", "large"])
def test_a_child_that_drops_a_file_of_fsspec(url: str, mode: str, data: bytes) -> None:
    fs = NamespaceFileSystem(database=url, user="root", skip_instance_cache=True)
    fs.pipe_file("ns/f", b"old")
    files = [fs.open("ns/f", mode)]
    files[0].write(data)

    def drop() -> None:
        files.clear()
        gc.collect()

    _in_child(drop)
    files[0].write(b"tail")
    files[0].close()
    assert fs.cat_file("ns/f") == (b"old" if mode == "ab" else b"") + data + b"tail"
