"""What fsspec users see of the files of a namespace."""

from __future__ import annotations

import stat
from datetime import datetime, timezone

import pytest
from pyarrow.fs import FileType, FSSpecHandler

from holdfast.errors import InvalidRequestError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace.errors import InvalidPathError
from holdfast.namespace.namespace import Namespace
from holdfast.runtime import Environment
from tests.unit.namespace.fresh import fresh_namespace

ODD_NAMES = ["day=1", "with space", "ünï ☃", "%41", "a#b", "a?b", "a*b", "[ab]", "a+b&c;d", "100%", "...", "a\\b"]


@pytest.fixture
def namespace() -> Namespace:
    namespace = fresh_namespace(inline_bytes=3)
    for path in ("/a", "/dir/b", "/dir/sub/c", "/dir/sub/d", "/dirt/e"):
        namespace.write_file(path, path.encode())
    namespace.mkdirs("/empty")
    return namespace


def test_listing(fs: NamespaceFileSystem, root: str) -> None:
    assert fs.ls(root, detail=False) == [f"{root}/{name}" for name in ("a", "dir", "dirt", "empty")]
    assert [(one["name"], one["type"], one["size"]) for one in fs.ls(f"holdfast://{root}/dir/")] == [
        (f"{root}/dir/b", "file", 6),
        (f"{root}/dir/sub", "directory", 0),
    ]
    assert fs.ls(f"{root}/a", detail=False) == [f"{root}/a"] and fs.ls(f"{root}/empty") == []
    for path in (f"{root}/none", f"{root}/a/below", f"{root}/none/below"):
        with pytest.raises((FileNotFoundError, NotADirectoryError)):
            fs.ls(path)


def test_a_long_listing_has_many_pages(fs: NamespaceFileSystem, namespace: Namespace, root: str) -> None:
    files = [namespace.create(f"/long/{number:04}") for number in range(2500)]
    for file in files:
        file.prepare()
    namespace.publish_many(files)
    assert fs.ls(f"{root}/long", detail=False) == [f"{root}/long/{number:04}" for number in range(2500)]


def test_the_root_above_the_namespaces(fs: NamespaceFileSystem, root: str) -> None:
    assert fs.ls("", detail=False) == fs.ls("holdfast://", detail=False) == fs.ls("/", detail=False) == [root]
    assert fs.isdir("") and fs.info(root)["type"] == "directory" and fs.isdir(f"holdfast://{root}/")
    assert fs.find("")[0] == f"{root}/a" and fs.glob("*") == [root]
    with pytest.raises(InvalidRequestError, match="only one namespace"):
        fs.ls("other/a")
    with pytest.raises(InvalidRequestError, match="write holdfast://name/path"):
        fs.ls("/a")


def test_info(fs: NamespaceFileSystem, namespace: Namespace, root: str) -> None:
    namespace.set_permission("/dir/b", 0o640)
    found = fs.info(f"holdfast://{root}/dir/b")
    status = namespace.status("/dir/b")
    assert found == {
        "name": f"{root}/dir/b",
        "size": 6,
        "type": "file",
        "mtime": status.mtime_ms / 1000,
        "mode": stat.S_IFREG | 0o640,
        "owner": "root",
        "group": "supergroup",
        "ino": status.id,
        "is_open": False,
        "ETag": status.etag,
    }
    assert stat.filemode(fs.info(f"{root}/dir")["mode"]) == "drwxr-xr-x" and stat.S_ISDIR(fs.info(root)["mode"])
    assert found in fs.ls(f"{root}/dir") and fs.size(f"{root}/dir/b") == 6
    assert fs.modified(f"{root}/dir/b") == datetime.fromtimestamp(status.mtime_ms / 1000, tz=timezone.utc)
    with pytest.raises(FileNotFoundError):
        fs.info(f"{root}/none")


def test_exists(fs: NamespaceFileSystem, root: str) -> None:
    assert fs.exists(f"{root}/a") and fs.isfile(f"{root}/a") and not fs.isdir(f"{root}/a")
    assert fs.exists(f"{root}/dir/") and fs.isdir(f"{root}/dir") and not fs.isfile(f"{root}/dir")
    for path in ("di", "a/below", "none/below", "a:b", "dir/../a"):
        assert not fs.exists(f"{root}/{path}") and not fs.isfile(f"{root}/{path}") and not fs.isdir(f"{root}/{path}")


def test_what_may_not_be_seen_is_an_error_and_never_missing(namespace: Namespace, root: str) -> None:
    namespace.set_permission("/dir/sub", 0o700)
    eve = Namespace(namespace.database, namespace.blobs, namespace.configuration, Environment(), user="eve")
    fs = NamespaceFileSystem.over(eve)
    assert fs.ls(f"{root}/dir", detail=False) == [f"{root}/dir/b", f"{root}/dir/sub"]
    for call in (fs.ls, fs.find, fs.du):
        with pytest.raises(PermissionError):
            call(f"{root}/dir/sub")
    for call in (fs.find, fs.du, lambda path: fs.glob(f"{path}/**")):
        with pytest.raises(PermissionError):
            call(f"{root}/dir")
    for ask in (fs.exists, fs.isfile, fs.isdir):
        with pytest.raises(PermissionError):
            ask(f"{root}/dir/sub/c")


def test_find(fs: NamespaceFileSystem, root: str) -> None:
    assert fs.find(f"{root}/dir") == [f"{root}/dir/b", f"{root}/dir/sub/c", f"{root}/dir/sub/d"]
    assert fs.find(f"{root}/dir", maxdepth=1) == [f"{root}/dir/b"]
    assert fs.find(f"{root}/dir", maxdepth=1, withdirs=True) == [f"{root}/dir", f"{root}/dir/b", f"{root}/dir/sub"]
    found = fs.find(f"{root}/dir", detail=True, withdirs=True)
    assert found[f"{root}/dir"] == fs.info(f"{root}/dir") and found[f"{root}/dir/sub/c"]["size"] == 10
    assert fs.find(f"{root}/a") == [f"{root}/a"] == list(fs.find(f"{root}/a", withdirs=True))
    assert fs.find(f"{root}/none") == [] and fs.find(f"{root}/none", detail=True) == {}
    assert fs.find(f"{root}/a/below") == [] and fs.find(f"{root}/empty") == []
    with pytest.raises(ValueError, match="at least 1"):
        fs.find(root, maxdepth=0)


def test_find_skips_a_directory_that_goes_meanwhile(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = fs.ls

    def deleting(path: str, detail: bool = True) -> list[object]:
        found = listing(path, detail)
        if path == f"{root}/dir":
            namespace.delete("/dir/sub", recursive=True)
        return found

    monkeypatch.setattr(fs, "ls", deleting)
    assert fs.find(f"{root}/dir", maxdepth=5) == [f"{root}/dir/b"]


def test_a_tree_that_goes_before_it_is_walked(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = fs.info

    def deleting(path: str) -> dict[str, object]:
        found: dict[str, object] = info(path)
        namespace.delete("/dir", recursive=True)
        return found

    monkeypatch.setattr(fs, "info", deleting)
    assert fs.find(f"{root}/dir") == []


def test_walk_and_du_and_glob(fs: NamespaceFileSystem, root: str) -> None:
    assert list(fs.walk(f"{root}/dir")) == [(f"{root}/dir", ["sub"], ["b"]), (f"{root}/dir/sub", [], ["c", "d"])]
    assert fs.du(f"{root}/dir") == 6 + 10 + 10 and fs.du(f"{root}/dir", maxdepth=1) == 6
    assert fs.du(f"{root}/dir", total=False, withdirs=True)[f"{root}/dir/sub"] == 0
    assert fs.glob(f"{root}/dir/*/c") == [f"{root}/dir/sub/c"]
    assert fs.glob(f"holdfast://{root}/d*") == [f"{root}/dir", f"{root}/dirt"]
    assert fs.glob(f"{root}/**/[cd]") == [f"{root}/dir/sub/c", f"{root}/dir/sub/d"]
    assert fs.glob(f"{root}/none/*") == [] and fs.glob(f"{root}/a") == [f"{root}/a"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_taken_literally(fs: NamespaceFileSystem, root: str, name: str) -> None:
    path = f"holdfast://{root}/odd/{name}/{name}"
    fs.pipe_file(path, b"odd")
    assert fs.find(f"{root}/odd") == [f"{root}/odd/{name}/{name}"] == [fs._strip_protocol(path)]
    assert fs.unstrip_protocol(f"{root}/odd/{name}/{name}") == path
    assert fs.cat_file(path) == b"odd" and fs.isdir(f"{root}/odd/{name}")
    with fs.open(path, "rb") as file:
        assert file.read() == b"odd"
    fs.mv(f"{root}/odd/{name}", f"{root}/odd/moved")
    assert fs.find(f"{root}/odd") == [f"{root}/odd/moved/{name}"]


def test_slashes_that_follow_each_other_count_as_one(fs: NamespaceFileSystem, root: str) -> None:
    fs.pipe_file(f"{root}//odd///a", b"1")
    for path in (f"{root}/odd/a", f"{root}//odd//a", f"holdfast://{root}//odd/a", f"holdfast://{root}/odd//a"):
        assert fs.exists(path) and fs.isfile(path) and fs.cat_file(path) == b"1"
        assert fs.info(path)["name"] == f"{root}/odd/a"
    assert fs.ls(f"{root}/odd//", detail=False) == fs.find(f"{root}//odd") == fs.glob(f"{root}//odd//*")
    assert fs.expand_path([f"{root}//odd//a", f"{root}/odd/a"]) == [f"{root}/odd/a"]
    fs.mv(f"{root}//odd//a", f"{root}//odd//b")
    assert fs.find(root + "//odd") == [f"{root}/odd/b"]
    fs.rm(f"{root}//odd//b")
    assert not fs.exists(f"{root}/odd/b")


@pytest.mark.parametrize("name", ["a:b", ".", "..", "x" * 256, "a\0b"])
def test_names_that_hdfs_refuses_too(fs: NamespaceFileSystem, root: str, name: str) -> None:
    path = f"{root}/odd/{name}/a"
    with pytest.raises(InvalidPathError) as refused:
        fs.pipe_file(path, b"1")
    for read in (fs.info, fs.ls, fs.cat_file, fs.open, fs.ukey, fs.rm, fs.size):
        with pytest.raises(FileNotFoundError) as missing:
            read(path)
        assert str(missing.value) == str(refused.value), "nothing can be there, and the error says why"
    assert not fs.exists(path) and fs.find(path) == []
    (found,) = FSSpecHandler(fs).get_file_info([path])
    assert found.type == FileType.NotFound
    mapper = fs.get_mapper(root)
    for key in (f"odd/{name}", f"odd/{name}/a"):
        assert key not in mapper and mapper.get(key) is None and mapper.getitems([key], on_error="omit") == {}
        with pytest.raises(KeyError):
            mapper[key]
        with pytest.raises(InvalidPathError):
            mapper[key] = b"1"


def test_listings_are_never_cached(fs: NamespaceFileSystem, namespace: Namespace, root: str) -> None:
    assert len(fs.ls(f"{root}/dir")) == 2
    namespace.write_file("/dir/new", b"")
    assert len(fs.ls(f"{root}/dir")) == 3


def test_a_name_with_the_signs_of_patterns_means_itself_if_it_exists(fs: NamespaceFileSystem, root: str) -> None:
    for name in ("x?", "xy", "x*", "[x]"):
        fs.pipe_file(f"{root}/p/{name}", name.encode())
    assert fs.expand_path(f"{root}/p/x?") == [f"{root}/p/x?"]
    assert fs.expand_path(f"{root}/p/?y") == [f"{root}/p/xy"]
    assert fs.expand_path([f"{root}/p/x*", f"{root}/p/[w]", f"{root}/p/?y"]) == [f"{root}/p/x*", f"{root}/p/xy"]
    assert fs.cat(f"{root}/p/x*") == b"x*" and fs.cat(f"{root}/p/?y") == {f"{root}/p/xy": b"xy"}
    assert fs.expand_path(f"{root}/d*", recursive=True, maxdepth=2) == [
        f"{root}/{name}" for name in ("dir", "dir/b", "dir/sub", "dirt", "dirt/e")
    ]
    with pytest.raises(FileNotFoundError):
        fs.expand_path(f"{root}/p/?z")
