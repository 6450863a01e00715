"""Making, removing, moving and copying files and directories through fsspec."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace.errors import DirectoryNotEmptyError
from holdfast.namespace.namespace import Namespace
from tests.unit.namespace.fresh import fresh_namespace


@pytest.fixture
def namespace() -> Namespace:
    namespace = fresh_namespace(inline_bytes=3)
    for path in ("/a", "/dir/b", "/dir/sub/c", "/dirt/e"):
        namespace.write_file(path, path.encode())
    return namespace


def _found(fs: NamespaceFileSystem, root: str) -> list[str]:
    """Return the files, and the directories with a slash, below the root."""
    found = fs.find(root, withdirs=True, detail=True)
    return [
        name.removeprefix(f"{root}/") + "/" * (one["type"] == "directory")
        for name, one in found.items()
        if name != root
    ]


# --- directories ------------------------------------------------------------------------------------------------------
def test_making_directories(fs: NamespaceFileSystem, root: str) -> None:
    fs.mkdir(f"{root}/x/y")
    assert fs.isdir(f"{root}/x/y")
    for path in (f"{root}/x/y", f"{root}/a", root):
        with pytest.raises(FileExistsError):
            fs.mkdir(path)
        with pytest.raises(FileExistsError):
            fs.makedirs(path)
    with pytest.raises(FileNotFoundError):
        fs.mkdir(f"{root}/no/y", create_parents=False)
    fs.mkdir(f"{root}/x/z", create_parents=False)
    fs.makedirs(f"{root}/x/z", exist_ok=True)
    fs.makedirs(f"{root}/deep/er/still")
    with pytest.raises(FileExistsError):
        fs.makedirs(f"{root}/a", exist_ok=True)
    with pytest.raises(NotADirectoryError):
        fs.makedirs(f"{root}/a/below")
    assert {"x/y/", "x/z/", "deep/er/still/"} <= set(_found(fs, root))


def test_removing_an_empty_directory(fs: NamespaceFileSystem, root: str) -> None:
    with pytest.raises(OSError, match="not empty"):
        fs.rmdir(f"{root}/dir")
    with pytest.raises(NotADirectoryError):
        fs.rmdir(f"{root}/a")
    with pytest.raises(FileNotFoundError):
        fs.rmdir(f"{root}/none")
    fs.mkdir(f"{root}/x")
    fs.rmdir(f"{root}/x")
    assert not fs.exists(f"{root}/x")


# --- removing ---------------------------------------------------------------------------------------------------------
def test_removing_files(fs: NamespaceFileSystem, root: str) -> None:
    fs.rm_file(f"{root}/a")
    fs.rm(f"{root}/dirt/e")
    assert _found(fs, root) == ["dir/", "dir/b", "dir/sub/", "dir/sub/c", "dirt/"]
    for remove in (fs.rm_file, fs.rm):
        with pytest.raises(IsADirectoryError):
            remove(f"{root}/dir")
        with pytest.raises(FileNotFoundError):
            remove(f"{root}/a")


def test_removing_trees(fs: NamespaceFileSystem, root: str) -> None:
    fs.rm(f"{root}/dir", recursive=True)
    assert _found(fs, root) == ["a", "dirt/", "dirt/e"], "not what merely starts like it"
    fs.rm([f"{root}/a", f"holdfast://{root}/dirt/"], recursive=True)
    assert fs.ls(root) == []
    with pytest.raises(NotImplementedError):
        fs.rm(root, recursive=True, maxdepth=1)


def test_removing_the_root_of_a_namespace_empties_it(fs: NamespaceFileSystem, namespace: Namespace, root: str) -> None:
    for number in range(2):
        namespace.mkdirs(f"/x{number}/y")
    for path in (root, [f"holdfast://{root}/", f"{root}/dir"], [f"{root}/dir"]):
        fs.rm(path, recursive=True)
        assert fs.ls(root) == [] and fs.isdir(root)
        fs.touch(f"{root}/dir/new")
    with pytest.raises(IsADirectoryError):
        fs.rm(root)
    with pytest.raises(InvalidRequestError, match="the root of a namespace"):
        fs.rmdir(root)
    assert _found(fs, root) == ["dir/", "dir/new"], "nothing was deleted"


def test_a_mapper_over_a_whole_namespace_is_cleared(fs: NamespaceFileSystem, root: str) -> None:
    mapper = fs.get_mapper(f"holdfast://{root}")
    assert len(mapper) == 4
    mapper.clear()
    assert fs.ls(root) == [] and list(mapper) == []
    mapper["a/0.0"] = b"1"
    assert list(mapper) == ["a/0.0"]


def test_removing_what_a_pattern_matches(fs: NamespaceFileSystem, root: str) -> None:
    with pytest.raises(IsADirectoryError):
        fs.rm(fs.glob(f"{root}/*"))
    assert fs.exists(f"{root}/a"), "nothing was deleted"
    fs.rm(fs.glob(f"{root}/d*/[be]"))
    assert _found(fs, root) == ["a", "dir/", "dir/sub/", "dir/sub/c", "dirt/"]
    fs.rm(fs.glob(f"{root}/d*"), recursive=True)
    assert _found(fs, root) == ["a"]
    fs.rm(fs.glob(f"{root}/d*"), recursive=True)


ODD_NAMES = ("report[1].csv", "report[!a].csv", "report?.csv", "report*.csv", "report{1,2}.csv")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_only_what_is_named_is_removed_or_moved(fs: NamespaceFileSystem, root: str, name: str) -> None:
    """A call that is repeated, because its answer was lost, must not reach another file."""
    for one in (name, "report1.csv"):
        fs.pipe_file(f"{root}/p/{one}", one.encode())
    fs.mv(f"{root}/p/{name}", f"{root}/q")
    assert fs.cat_file(f"{root}/q") == name.encode()
    fs.mv(f"{root}/q", f"{root}/p/{name}")
    fs.rm(f"{root}/p/{name}")
    repeated = (
        lambda: fs.rm(f"{root}/p/{name}"),
        lambda: fs.rm([f"{root}/p/{name}"], recursive=True),
        lambda: fs.mv(f"{root}/p/{name}", f"{root}/q"),
        lambda: fs.mv(f"{root}/p/{name}", f"{root}/dir/"),
        lambda: fs.mv([f"{root}/p/{name}"], f"{root}/dir"),
    )
    for call in repeated:
        with pytest.raises(FileNotFoundError):
            call()
    assert fs.find(f"{root}/p") == [f"{root}/p/report1.csv"]


def test_who_names_a_pattern_is_told_how_to_find_what_it_matches(fs: NamespaceFileSystem, root: str) -> None:
    for call in (lambda: fs.rm(f"{root}/d*", recursive=True), lambda: fs.mv(f"{root}/d*", f"{root}/new")):
        with pytest.raises(FileNotFoundError, match=r"pass fs\.glob"):
            call()


def test_a_file_that_somebody_else_removes_first(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = namespace.delete

    def second(path: str, *, recursive: bool = False) -> bool:
        delete(path, recursive=recursive)
        return delete(path, recursive=recursive)

    monkeypatch.setattr(namespace, "delete", second)
    with pytest.raises(FileNotFoundError):
        fs.rm_file(f"{root}/a")
    fs.rm(f"{root}/dir/b")
    assert not fs.exists(f"{root}/dir/b")


# --- moving -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("a", "b", ["b", "dir/", "dir/b", "dir/sub/", "dir/sub/c", "dirt/", "dirt/e"]),
        ("a", "dir", ["dir/", "dir/a", "dir/b", "dir/sub/", "dir/sub/c", "dirt/", "dirt/e"]),
        ("a", "dir/", ["dir/", "dir/a", "dir/b", "dir/sub/", "dir/sub/c", "dirt/", "dirt/e"]),
        ("a", "dir/b", ["dir/", "dir/b", "dir/sub/", "dir/sub/c", "dirt/", "dirt/e"]),
        ("dir", "new", ["a", "dirt/", "dirt/e", "new/", "new/b", "new/sub/", "new/sub/c"]),
        ("dir/", "new", ["a", "dirt/", "dirt/e", "new/", "new/b", "new/sub/", "new/sub/c"]),
        ("dir/", "new/", ["a", "dirt/", "dirt/e", "new/", "new/b", "new/sub/", "new/sub/c"]),
        ("dir", "dirt", ["a", "dirt/", "dirt/dir/", "dirt/dir/b", "dirt/dir/sub/", "dirt/dir/sub/c", "dirt/e"]),
        ("dir/sub", "dir", ["a", "dir/", "dir/b", "dir/sub/", "dir/sub/c", "dirt/", "dirt/e"]),
    ],
)
def test_moving(fs: NamespaceFileSystem, root: str, source: str, target: str, found: list[str]) -> None:
    identity = fs.info(f"{root}/a")["ino"]
    if (source, target) == ("dir/sub", "dir"):
        with pytest.raises(FileExistsError):  # it would move onto itself
            fs.mv(f"{root}/{source}", f"{root}/{target}")
    else:
        fs.mv(f"holdfast://{root}/{source}", f"{root}/{target}")
    assert _found(fs, root) == found
    assert identity in {one["ino"] for one in fs.find(root, detail=True).values()}, "it was moved, not copied"


def test_moving_what_a_pattern_matches(fs: NamespaceFileSystem, root: str) -> None:
    fs.mv(fs.glob(f"{root}/d*/[be]"), f"{root}/dir/sub")
    assert _found(fs, root) == ["a", "dir/", "dir/sub/", "dir/sub/b", "dir/sub/c", "dir/sub/e", "dirt/"]


def test_moving_lists(fs: NamespaceFileSystem, root: str) -> None:
    fs.mv([f"{root}/a", f"{root}/dir/b"], f"{root}/dirt")
    fs.mv([f"{root}/dirt/a", f"{root}/dirt/b"], [f"{root}/1", f"{root}/2"])
    assert _found(fs, root) == ["1", "2", "dir/", "dir/sub/", "dir/sub/c", "dirt/", "dirt/e"]
    with pytest.raises(InvalidRequestError, match="as many targets"):
        fs.mv([f"{root}/1"], [f"{root}/3", f"{root}/4"])


def test_moving_what_looks_like_a_pattern(fs: NamespaceFileSystem, root: str) -> None:
    for name in ("x?", "xy"):
        fs.touch(f"{root}/p/{name}")
    fs.mv(f"{root}/p/x?", f"{root}/q")
    assert fs.find(f"{root}/p") == [f"{root}/p/xy"] and fs.isfile(f"{root}/q")


def test_moves_that_are_refused(fs: NamespaceFileSystem, root: str) -> None:
    fs.touch(f"{root}/dirt/dir/x")
    before = _found(fs, root)
    with pytest.raises(DirectoryNotEmptyError):
        fs.mv(f"{root}/dir", f"{root}/dirt")
    with pytest.raises(DirectoryNotEmptyError):
        fs.mv(f"{root}/dir/", f"{root}/dirt")
    with pytest.raises(FileNotFoundError):
        fs.mv(f"{root}/none", f"{root}/b")
    with pytest.raises(FileNotFoundError):
        fs.mv(f"{root}/a", f"{root}/new/b")
    with pytest.raises(NotADirectoryError):
        fs.mv(f"{root}/dir", f"{root}/a/")
    with pytest.raises(OSError, match="cannot replace each other"):
        fs.mv(f"{root}/dir", f"{root}/a")
    with pytest.raises(OSError, match="into itself"):
        fs.mv(f"{root}/dir", f"{root}/dir/sub")
    with pytest.raises(NotImplementedError):
        fs.mv(f"{root}/dir", f"{root}/new", recursive=True, maxdepth=1)
    fs.mv(f"{root}/a", f"{root}/a")
    assert _found(fs, root) == before


def test_an_empty_directory_is_replaced(fs: NamespaceFileSystem, root: str) -> None:
    fs.mkdir(f"{root}/empty")
    fs.mv(f"{root}/dir/", f"{root}/empty")
    fs.mkdir(f"{root}/to/empty")
    fs.mv(f"{root}/empty", f"{root}/to")
    assert fs.find(f"{root}/to") == [f"{root}/to/empty/b", f"{root}/to/empty/sub/c"]


# --- copying ----------------------------------------------------------------------------------------------------------
def test_copying(fs: NamespaceFileSystem, root: str) -> None:
    fs.cp_file(f"{root}/dir/b", f"{root}/new/b")
    fs.cp_file(f"{root}/dir", f"{root}/made")
    fs.cp_file(f"{root}/dir", f"{root}/made")
    assert fs.cat_file(f"{root}/new/b") == b"/dir/b" and fs.ls(f"{root}/made") == []
    fs.copy(f"{root}/dir", f"{root}/new", recursive=True)
    assert fs.find(f"{root}/new") == [f"{root}/new/b", f"{root}/new/dir/b", f"{root}/new/dir/sub/c"]
    assert fs.cat_file(f"{root}/new/dir/sub/c") == b"/dir/sub/c"
    fs.copy(f"{root}/a", f"{root}/a")
    assert fs.cat_file(f"{root}/a") == b"/a"
    with pytest.raises(FileNotFoundError):
        fs.copy(f"{root}/none", f"{root}/b")


def test_copying_what_looks_like_a_pattern(fs: NamespaceFileSystem, root: str) -> None:
    for name in ("x?/1", "x?/sub/2", "xy/3"):
        fs.touch(f"{root}/p/{name}")
    for source in ("x?", "x?/", "x?/1"):
        with pytest.raises(UnsupportedError, match="give two lists"):
            fs.copy(f"{root}/p/{source}", f"{root}/new", recursive=True)
    fs.copy([f"{root}/p/x?/1"], [f"{root}/file"])
    fs.copy([f"{root}/p/x?/1"], f"{root}/new/")
    assert fs.isfile(f"{root}/file") and fs.find(f"{root}/new") == [f"{root}/new/1"]
    fs.copy(f"{root}/p/x[y]", f"{root}/pattern", recursive=True)
    assert fs.find(f"{root}/pattern") == [f"{root}/pattern/3"]
