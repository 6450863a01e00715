"""Writing the files of a namespace through fsspec."""

from __future__ import annotations

import contextlib
import gc
import io
import stat
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from fsspec.core import OpenFile

from holdfast.errors import InvalidRequestError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace.errors import BeingWrittenError, PathExistsError
from holdfast.namespace.namespace import Namespace
from tests.unit.namespace.fresh import count_blobs

SMALL, LARGE = b"12345", b"0123456789" * 1000


@pytest.mark.parametrize("data", [b"", SMALL, LARGE])
def test_a_file_appears_when_it_is_closed(fs: NamespaceFileSystem, root: str, data: bytes) -> None:
    with fs.open(f"{root}/new/a", "wb") as file:
        assert file.write(data) == len(data) == file.tell()
        assert not fs.exists(f"{root}/new")
        assert file.writable() and not file.readable() and not file.seekable()
    assert fs.cat_file(f"{root}/new/a") == data
    with fs.open(f"{root}/new/a", "wb") as file:
        file.write(b"other")
        file.flush()
        assert fs.cat_file(f"{root}/new/a") == data, "the old file stays until then"
    assert fs.cat_file(f"{root}/new/a") == b"other"
    with pytest.raises(ValueError, match="closed"):
        file.write(b"1")
    file.close()


def test_what_a_written_file_refuses(fs: NamespaceFileSystem, root: str) -> None:
    with fs.open(f"{root}/a", "wb") as file:
        with pytest.raises(io.UnsupportedOperation, match="cannot seek"):
            file.seek(0)
        with pytest.raises(io.UnsupportedOperation, match="open it to read it"):
            file.read()


@pytest.mark.parametrize("mode", ["wb", "xb", "ab", "w", "wt"])
@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_block_that_fails_leaves_nothing(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, mode: str, data: bytes
) -> None:
    def fails() -> None:
        with fs.open(f"{root}/dir/a", mode) as file:
            file.write(data if "b" in mode else data.decode())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    if mode == "ab":
        assert fs.cat_file(f"{root}/dir/a") == b"", "a file to append to is created at once, as everywhere"
        fs.rm(f"{root}/dir/a")
    assert not fs.exists(f"{root}/dir/a") and count_blobs(namespace) == 0
    with fs.open(f"{root}/dir/a", mode) as file:
        file.write("new" if "b" not in mode else b"new")
    assert fs.cat_file(f"{root}/dir/a") == b"new"


@pytest.mark.parametrize("options", [{}, {"mode": "wt"}])
def test_a_file_that_is_dropped_leaves_nothing(fs: NamespaceFileSystem, root: str, options: dict[str, str]) -> None:
    file = fs.open(f"{root}/a", **{"mode": "wb", **options})
    file.write(SMALL if "b" in options.get("mode", "wb") else SMALL.decode())
    del file
    gc.collect()
    assert fs.ls(root) == []


def _opened_by_fsspec(fs: NamespaceFileSystem, path: str, mode: str) -> Any:
    return OpenFile(fs, path, mode, compression="gzip" if path.endswith(".gz") else None)


def _open_of_fsspec(fs: NamespaceFileSystem, path: str, mode: str) -> Any:
    """What pandas does."""
    return OpenFile(fs, path, mode).open()


def _in_an_exit_stack(fs: NamespaceFileSystem, path: str, mode: str) -> Any:
    stack = contextlib.ExitStack()
    stack.enter_context(_opened_by_fsspec(fs, path, mode))
    return stack


def _closing(fs: NamespaceFileSystem, path: str, mode: str) -> Any:
    return contextlib.closing(fs.open(path, mode))


def _wrapped(fs: NamespaceFileSystem, path: str, mode: str) -> Any:
    binary = fs.open(path, f"{mode[0]}b")
    return io.BufferedWriter(binary) if "b" in mode else io.TextIOWrapper(binary)


_Opened = Callable[[NamespaceFileSystem, str, str], Any]


@pytest.mark.parametrize("opened", [_opened_by_fsspec, _open_of_fsspec, _in_an_exit_stack, _closing, _wrapped])
@pytest.mark.parametrize("mode", ["wb", "w", "ab"])
@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_a_block_of_somebody_else_that_fails_leaves_nothing(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, opened: _Opened, mode: str, name: str
) -> None:
    path = f"{root}/{name}"
    fs.pipe_file(path, b"old")

    def fails() -> None:
        with opened(fs, path, mode) as file:
            if hasattr(file, "write"):
                file.write(LARGE if "b" in mode else LARGE.decode())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert fs.cat_file(path) == b"old" and count_blobs(namespace) == 0
    with opened(fs, path, "w") as file:
        if hasattr(file, "write"):
            file.write("new")
    assert fs.cat_file(path) != b"old"


def test_a_file_that_is_closed_while_an_error_is_handled_appears(fs: NamespaceFileSystem, root: str) -> None:
    """To close a file says that it is complete, unless a block that has failed says it."""
    files = [fs.open(f"{root}/{name}", "w") for name in "abc"]
    for file in files:
        file.write("1")

    def fails() -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: files[1].close())  # the block is not that of the file
            try:
                next(iter(()))
            except StopIteration:
                files[0].close()
                with OpenFile(fs, f"{root}/report", "w") as report:
                    report.write("1")
                raise
            finally:
                files[2].close()

    with pytest.raises(StopIteration):
        fails()
    assert fs.find(root) == [f"{root}/{name}" for name in ("a", "b", "c", "report")]


@pytest.mark.parametrize("opened", [_opened_by_fsspec, _open_of_fsspec, _wrapped])
@pytest.mark.parametrize("mode", ["wb", "w"])
def test_a_file_that_somebody_else_drops_leaves_nothing(
    fs: NamespaceFileSystem, root: str, opened: _Opened, mode: str
) -> None:
    fs.pipe_file(f"{root}/a", b"old")
    file = opened(fs, f"{root}/a", mode)
    if isinstance(file, OpenFile):
        file = file.open()
    file.write(SMALL if "b" in mode else SMALL.decode())
    del file
    gc.collect()
    assert fs.cat_file(f"{root}/a") == b"old"


def test_exclusive_files(fs: NamespaceFileSystem, root: str) -> None:
    with fs.open(f"{root}/a", "xb") as file:
        file.write(SMALL)
    with pytest.raises(FileExistsError):
        fs.open(f"{root}/a", "xb")
    first, second = fs.open(f"{root}/b", "xb"), fs.open(f"{root}/b", "xb")
    first.write(b"first")
    second.write(b"second")
    first.close()
    with pytest.raises(FileExistsError):
        second.close()
    assert second.closed and fs.cat_file(f"{root}/b") == b"first"


def test_appending(fs: NamespaceFileSystem, root: str) -> None:
    for data in (SMALL, LARGE, SMALL):
        with fs.open(f"{root}/log", "ab") as file:
            before = file.tell()
            file.write(data)
            assert file.tell() == before + len(data)
            with pytest.raises(BeingWrittenError):
                fs.open(f"{root}/log", "ab")
    assert fs.cat_file(f"{root}/log") == SMALL + LARGE + SMALL
    with fs.open(f"{root}/log", "a") as text:
        text.write("snow ☃")
    assert fs.cat_file(f"{root}/log").endswith("5snow ☃".encode())
    with pytest.raises(IsADirectoryError):
        fs.open(root, "ab")


def test_text_that_is_appended_gets_no_second_mark(fs: NamespaceFileSystem, root: str) -> None:
    for text in ("one", "two"):
        with fs.open(f"{root}/log", "a", encoding="utf-16") as file:
            file.write(text)
    assert fs.cat_file(f"{root}/log").decode("utf-16") == "onetwo"


def test_appending_while_others_create_and_delete(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_with_lease = namespace.create_with_lease

    def late(path: str, **options: int) -> object:
        if not namespace.exists(path):
            namespace.write_file(path, b"theirs ")
        return create_with_lease(path, **options)

    monkeypatch.setattr(namespace, "create_with_lease", late)
    with fs.open(f"{root}/log", "ab") as file:
        file.write(b"ours")
    assert fs.cat_file(f"{root}/log") == b"theirs ours"

    def refuse(path: str, **_options: int) -> object:
        raise PathExistsError("somebody has just created it", path=path)

    monkeypatch.setattr(namespace, "create_with_lease", refuse)
    with pytest.raises(PathExistsError, match="again and again"):
        fs.open(f"{root}/other", "ab")


def test_pipes(fs: NamespaceFileSystem, root: str) -> None:
    fs.pipe_file(f"{root}/a", SMALL)
    with pytest.raises(FileExistsError):
        fs.pipe_file(f"{root}/a", b"", mode="create")
    fs.pipe_file(f"{root}/b", LARGE, mode="create")
    fs.pipe({f"{root}/c": b"1", f"holdfast://{root}/d": b"2"})
    assert fs.cat([f"{root}/a", f"{root}/b", f"{root}/c", f"{root}/d"]) == {
        f"{root}/a": SMALL,
        f"{root}/b": LARGE,
        f"{root}/c": b"1",
        f"{root}/d": b"2",
    }
    with pytest.raises(InvalidRequestError, match="'overwrite' or 'create'"):
        fs.pipe_file(f"{root}/a", b"", mode="update")
    with pytest.raises(IsADirectoryError):
        fs.pipe_file(root, b"")


def test_touch(fs: NamespaceFileSystem, root: str) -> None:
    fs.touch(f"{root}/a")
    assert fs.size(f"{root}/a") == 0
    fs.pipe_file(f"{root}/a", SMALL)
    fs.set_times(f"{root}/a", mtime_s=1_000_000.25)
    assert fs.info(f"{root}/a")["mtime"] == 1_000_000.25
    fs.touch(f"{root}/a", truncate=False)
    assert fs.info(f"{root}/a")["mtime"] > 1_700_000_000 and fs.cat_file(f"{root}/a") == SMALL
    fs.touch(f"{root}/a")
    assert fs.size(f"{root}/a") == 0
    fs.touch(f"{root}/dir/b", truncate=False)
    fs.touch(f"{root}/dir", truncate=False)
    assert fs.size(f"{root}/dir/b") == 0
    with pytest.raises(IsADirectoryError):
        fs.touch(f"{root}/dir")


def test_attributes(fs: NamespaceFileSystem, root: str) -> None:
    fs.pipe_file(f"{root}/a", SMALL, permission=0o600)
    assert fs.info(f"{root}/a")["mode"] == stat.S_IFREG | 0o600
    fs.set_permission(f"{root}/a", 0o640)
    fs.set_owner(f"{root}/a", owner="eve", group="staff")
    found = fs.info(f"{root}/a")
    assert (found["mode"], found["owner"], found["group"]) == (stat.S_IFREG | 0o640, "eve", "staff")
    fs.pipe_file(f"{root}/b", SMALL, permission=found["mode"])
    fs.set_permission(f"{root}/a", found["mode"])
    assert [fs.info(f"{root}/{name}")["mode"] for name in "ab"] == [found["mode"]] * 2, "what `info` returns is taken"
    with pytest.raises(InvalidRequestError, match="at most the bits 1777"):
        fs.set_permission(f"{root}/a", 0o4640)
    namespace, path = fs.namespace(f"holdfast://{root}/a")
    namespace.set_xattr(path, "user.origin", b"here")
    assert namespace.xattrs(path) == {"user.origin": b"here"}
    for refused in (fs.created, fs.sign):
        with pytest.raises(NotImplementedError):
            refused(f"{root}/a")


def test_archives_are_written_as_a_stream(fs: NamespaceFileSystem, root: str) -> None:
    with fs.open(f"{root}/a.zip", "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("member", LARGE)
    with fs.open(f"{root}/a.zip", "rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.read("member") == LARGE


def test_a_mapper(fs: NamespaceFileSystem, root: str) -> None:
    mapper = fs.get_mapper(f"{root}/map", create=True)
    mapper["a/0.0"] = SMALL
    mapper.setitems({"a/0.1": LARGE, "b": b""})
    assert mapper["a/0.1"] == LARGE and sorted(mapper) == ["a/0.0", "a/0.1", "b"] and "c" not in mapper
    assert mapper.getitems(["a/0.0", "c"], on_error="omit") == {"a/0.0": SMALL}
    del mapper["b"]
    mapper.delitems(["a/0.0"])
    assert list(mapper) == ["a/0.1"]
    with pytest.raises(KeyError):
        mapper["b"]
