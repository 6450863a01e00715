"""`put`, `get`, `cp` and `cat`: where copies go, what they refuse at once, and what they keep."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.fs import places
from holdfast.cli.fs.local_place import LocalPlace
from holdfast.cli.fs.places import FileOrDirectory
from holdfast.errors import InvalidRequestError
from holdfast.namespace import Namespace
from holdfast.runtime import SystemIds
from holdfast.stores.base import Create, iter_uploads
from holdfast.stores.memory import MemoryStore, memory_store
from tests.patience import PATIENCE_S
from tests.unit.cli.fs.trees import fill, run_fs, shown

BINARY = bytes(range(256)) * 4
LARGE = bytes(range(256)) * 100


def _write(here: Path, *names: str) -> None:
    for name in names:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_bytes(name.encode())


def _local(here: Path) -> list[str]:
    return sorted(str(path.relative_to(here)) + ("/" if path.is_dir() else "") for path in here.rglob("*"))


# --- put --------------------------------------------------------------------------------------------------------------
def test_a_file_is_put_under_a_name_or_into_a_directory(ns: Namespace, here: Path) -> None:
    _write(here, "a.csv")
    fill(ns, "/d/")
    assert run_fs("put", "a.csv", ":/b.csv").stdout == "copied 1 file, 5 B, to holdfast://ns/b.csv\n"
    run_fs("put", "a.csv", ":/d")
    run_fs("put", str(here / "a.csv"), "holdfast://ns")
    assert shown(ns) == ["/a.csv", "/b.csv", "/d/", "/d/a.csv"]
    assert ns.open("/d/a.csv").read() == b"a.csv"
    assert ns.status("/b.csv").permissions == "-rw-r--r--"


def test_what_is_missing_of_a_directory_is_put_by_copying_what_is_in_it(ns: Namespace, here: Path) -> None:
    """What docs/reference/databases-that-forget.md advises: a target that exists would get the directory itself."""
    _write(here, "src/one", "src/sub/two", "src/.hidden")
    run_fs("put", "src", ":/new")
    complete = shown(ns)
    for lost in ("/new/one", "/new/.hidden"):
        ns.delete(lost)
    run_fs("put", "--overwrite", "src/.", ":/new")
    assert shown(ns) == complete
    run_fs("cp", ":/new", ":/copy")
    run_fs("rm", ":/copy/.hidden")
    run_fs("cp", "--overwrite", "--glob", ":/new/*", ":/copy")
    assert shown(ns) == sorted([*complete, *(path.replace("/new", "/copy") for path in complete)])


def test_a_directory_is_put_with_everything_in_it(ns: Namespace, here: Path) -> None:
    _write(here, "src/one", "src/sub/two", "src/empty/")
    (here / "src/large").write_bytes(LARGE)
    fill(ns, "/d/")
    assert run_fs("put", "src", ":/new").stdout == "copied 3 files and 3 directories, 25.0 KiB, to holdfast://ns/new\n"
    run_fs("put", "src", ":/d")
    below = ["empty/", "large", "one", "sub/", "sub/two"]
    assert shown(ns) == sorted(
        ["/d/", "/d/src/", "/new/", *(f"/d/src/{one}" for one in below), *(f"/new/{one}" for one in below)]
    )
    assert ns.open("/d/src/large").read() == LARGE


@pytest.mark.parametrize(
    ("source", "copy"),
    [(".", ["/d/one"]), ("./", ["/d/one"]), ("../here", ["/d/here/", "/d/here/one"]), ("../here/..", None)],
)
def test_a_directory_without_a_name_gives_its_content(
    ns: Namespace, here: Path, source: str, copy: list[str] | None
) -> None:
    _write(here, "one")
    fill(ns, "/d/")
    run_fs("put", source, ":/d")
    assert shown(ns)[1:] == copy or (copy is None and "/d/here/one" in shown(ns))


def test_directories_merge(ns: Namespace, here: Path) -> None:
    _write(here, "d/sub/new", "d/other")
    fill(ns, "/d/sub/old")
    run_fs("put", "d", ":/")
    assert shown(ns) == ["/d/", "/d/other", "/d/sub/", "/d/sub/new", "/d/sub/old"]


def test_nothing_is_copied_if_a_file_exists_and_overwrite_replaces_it(ns: Namespace, here: Path) -> None:
    _write(here, "d/one", "d/two", "d/three")
    fill(ns, "/d/two", "/d/three", "/d/rest")
    result = run_fs("put", "d", ":/")
    assert (result.exit_code, shown(ns)) == (1, ["/d/", "/d/rest", "/d/three", "/d/two"])
    assert "2 files exist already, and nothing was copied: replace with --overwrite" in result.stderr
    assert run_fs("put", "--overwrite", "d", ":/").exit_code == 0
    assert [ns.open(f"/d/{name}").read() for name in ("one", "two", "rest")] == [b"d/one", b"d/two", b"/d/rest"]


def test_standard_input(ns: Namespace) -> None:
    fill(ns, "/d/")
    assert run_fs("put", "-", ":/d/in", answer="piped").stdout == "copied 1 file, 5 B, to holdfast://ns/d/in\n"
    assert ns.open("/d/in").read() == b"piped"
    result = run_fs("put", "-", ":/d", answer="piped")
    assert (result.exit_code, "the copy needs a name" in result.stderr) == (2, True)


def test_links_are_followed_and_what_cannot_be_copied_is_named(ns: Namespace, here: Path) -> None:
    _write(here, "src/file", "outside/x", "src/co:lon")
    (here / "src/link").symlink_to("file")
    (here / "src/far").symlink_to(here / "outside")
    (here / "src/dangling").symlink_to("nowhere")
    (here / "src/loop").symlink_to(here / "src")
    os.mkfifo(here / "src/pipe")
    (here / os.fsdecode(b"src/not-utf8-\xff")).write_bytes(b"")
    result = run_fs("put", "src", ":/", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["files"], document["directories"]) == (1, 3, 2)
    assert shown(ns) == ["/src/", "/src/far/", "/src/far/x", "/src/file", "/src/link"]
    assert {one["url"]: one["error"].partition(":")[0].partition(" path=")[0] for one in document["failed"]} == {
        "src/co:lon": "a path must not contain a colon (HDFS's rule)",
        "src/dangling": "the local path does not exist",
        "src/loop": "a link leads back to a directory above it",
        "src/not-utf8-\udcff": "a path must be valid Unicode",
        "src/pipe": "this is neither a file nor a directory",
    }


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["none", ":/x"], 2, "the source does not exist: check it path='none'"),
        (["a", ":/no/x"], 2, "the directory of the target does not exist"),
        (["a", ":/f/x"], 2, "a file stands where the directory of the target would be: choose another target"),
        (["a", ":/none/none/"], 2, "the directory of the target does not exist"),
        (["a", ":/f/"], 2, "the target ends in a slash, and is a file"),
        (["a", "b", ":/none"], 2, "several sources need a directory to go into, and the target does not exist"),
        (["a", "b", ":/f"], 2, "several sources need a directory to go into, and the target is a file"),
        (["a", ":/f"], 1, "1 file exists already"),
        (["d", ":/f"], 2, "the source is a directory, and a file has its name at the target"),
        (["c", ":/"], 2, "the source is a file, and a directory has its name at the target"),
        (["a", "d/a", ":/"], 2, "two sources have the same name"),
        (["a", "x:y"], 2, "write holdfast://name/path"),
        (["a", ":/x:y"], 2, "must not contain a colon"),
        (["s3://bucket/x", ":/"], 2, "copy from elsewhere with fs cp"),
        (["-", "a", ":/"], 2, "standard input is one file"),
        (["a", ":/x", "--user", "bob"], 2, "permission denied"),
        (["a", ":/x", "--threads", "0"], 2, "0 is not in the range"),
        (["a", ":/x", "--store-option", "secretKey=x"], 2, "credentials do not belong on a command line"),
        (["a", ":/x", "--store-option", "colour=red"], 2, "unknown store option"),
    ],
)
def test_put_refuses(ns: Namespace, here: Path, arguments: list[str], code: int, sentence: str) -> None:
    _write(here, "a", "b", "c", "d/a")
    fill(ns, "/f", "/c/")
    result = run_fs("put", *arguments)
    assert (result.exit_code, shown(ns)) == (code, ["/c/", "/f"])
    assert sentence in result.stderr


def test_an_unreadable_directory_is_a_problem_of_its_own(
    ns: Namespace, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(here, "d/ok", "d/locked/secret")
    listdir = os.listdir

    def refuse(path: str) -> list[str]:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refuse)
    result = run_fs("put", "d", ":/")
    assert (result.exit_code, shown(ns)) == (1, ["/d/", "/d/locked/", "/d/ok"])
    assert "the local path cannot be used: permission denied path='d/locked'" in result.stderr


def test_thousands_of_small_files(ns: Namespace, here: Path) -> None:
    for number in range(1200):
        (here / f"{number:04}").write_bytes(b"x")
    assert run_fs("put", ".", ":/many").stdout.startswith("copied 1,200 files and 1 directory")
    assert len(list(ns.list("/many"))) == 1200
    assert run_fs("get", ":/many", "back").stdout.startswith("copied 1,200 files and 1 directory")
    assert len(list((here / "back").iterdir())) == 1200


def test_a_directory_that_cannot_be_made_leaves_out_only_what_is_in_it(ns: Namespace, here: Path) -> None:
    """Defect: nothing was copied, and ``--json`` had no list of what failed."""
    fill(ns, "/d/t/x")
    _write(here, "t/a", "t/x/1", "t/y/2")
    result = run_fs("put", "--json", "t", ":/d/")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert {one["url"].rpartition("/")[2] for one in document["failed"]} == {"x"}
    assert (document["files"], shown(ns)) == (2, ["/d/", "/d/t/", "/d/t/a", "/d/t/x", "/d/t/y/", "/d/t/y/2"])


# --- get --------------------------------------------------------------------------------------------------------------
def test_files_and_directories_are_got(ns: Namespace, here: Path) -> None:
    fill(ns, "/d/one", "/d/sub/two", "/d/empty/")
    ns.write_file("/d/large", LARGE)
    assert run_fs("get", ":/d", "new").stdout == "copied 3 files and 3 directories, 25.0 KiB, to new\n"
    run_fs("get", "--glob", ":/d/o*", ":/d/sub", ".")
    assert _local(here) == [
        *("new/", "new/empty/", "new/large", "new/one", "new/sub/", "new/sub/two", "one", "sub/", "sub/two"),
    ]
    assert (here / "new/large").read_bytes() == LARGE


def test_local_files_are_replaced_only_on_request(ns: Namespace, here: Path) -> None:
    fill(ns, "/a")
    _write(here, "a")
    result = run_fs("get", ":/a", "a")
    assert (result.exit_code, (here / "a").read_bytes()) == (1, b"a")
    assert "1 file exists already" in result.stderr
    run_fs("get", "--overwrite", ":/a", "a")
    assert (here / "a").read_bytes() == b"/a"


@pytest.mark.parametrize("mode", [0o600, 0o666, 0o750])
def test_a_file_that_is_replaced_keeps_its_rights(ns: Namespace, here: Path, mode: int) -> None:
    fill(ns, "/a")
    _write(here, "secret")
    (here / "secret").chmod(mode)
    (here / "link").symlink_to("secret")
    for target in ("secret", "link"):
        assert run_fs("get", "--overwrite", ":/a", target).exit_code == 0
        assert ((here / "secret").read_bytes(), stat.S_IMODE((here / "secret").stat().st_mode)) == (b"/a", mode)


def test_what_replaces_a_private_file_is_private_while_it_is_written(here: Path) -> None:
    _write(here, "secret")
    (here / "secret").chmod(0o600)
    sink = LocalPlace(SystemIds()).create(str(here / "secret"), overwrite=True)
    assert [stat.S_IMODE(one.stat().st_mode) for one in here.iterdir()] == [0o600, 0o600]
    sink.discard()
    assert _local(here) == ["secret"]


def test_closed_standard_input_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after ``<&-`` in a shell."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InvalidRequestError, match="standard input is closed: give it a file or a pipe"):
        list(LocalPlace(SystemIds()).read(FileOrDirectory("-", is_directory=False)))


def test_a_link_is_followed_and_what_it_leads_to_is_replaced(ns: Namespace, here: Path) -> None:
    fill(ns, "/a")
    _write(here, "elsewhere/real")
    (here / "link").symlink_to("elsewhere/real")
    run_fs("get", "--overwrite", ":/a", "link")
    assert ((here / "link").is_symlink(), (here / "elsewhere/real").read_bytes()) == (True, b"/a")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([":/none", "."], 2, "does not exist"),
        ([":/a", "no/x"], 2, "the directory of the target does not exist"),
        ([":/a", "f/x"], 2, "not a directory"),
        ([":/a", "none/none/"], 2, "the directory of the target does not exist"),
        ([":/a", "f/"], 2, "not a directory"),
        ([":/a", ":/d", "f"], 2, "several sources need a directory to go into, and the target is a file"),
        ([":/d", "f"], 2, "the source is a directory, and a file has its name at the target"),
        ([":/a", "/dev/null", "--overwrite"], 2, "the target is neither a file nor a directory"),
        ([":/a", "s3://bucket/x"], 2, "copy to elsewhere with fs cp"),
        ([":/private", "."], 2, ""),
    ],
)
def test_get_refuses(ns: Namespace, here: Path, arguments: list[str], code: int, sentence: str) -> None:
    fill(ns, "/a", "/d/x", "/private")
    ns.set_permission("/private", 0)
    _write(here, "f")
    result = run_fs("get", *arguments, "--user", "bob")
    assert (result.exit_code, _local(here)) == (code, ["f"])
    assert sentence in result.stderr


def test_a_file_that_cannot_be_read_does_not_stop_the_others(ns: Namespace, here: Path) -> None:
    fill(ns, "/d/1", "/d/2", "/d/3")
    ns.set_permission("/d/2", 0)
    result = run_fs("get", ":/d", ".", "--user", "bob")
    assert (result.exit_code, _local(here)) == (1, ["d/", "d/1", "d/3"])
    assert "permission denied: the user may not read here" in result.stderr


# --- a slash at the end -----------------------------------------------------------------------------------------------
def test_a_target_with_a_slash_is_a_directory_that_is_made_if_it_is_missing(ns: Namespace, here: Path) -> None:
    _write(here, "a", "b", "d/x")
    assert run_fs("put", "a", "b", ":/new/").exit_code == 0
    assert run_fs("put", "d", ":/other/").stdout == "copied 1 file and 2 directories, 3 B, to holdfast://ns/other\n"
    assert run_fs("put", "d", ":/other/").exit_code == 1, "the file exists"
    assert run_fs("cp", ":/other/d", ":/third/").exit_code == 0
    assert shown(ns) == [
        *("/new/", "/new/a", "/new/b", "/other/", "/other/d/", "/other/d/x", "/third/", "/third/d/", "/third/d/x"),
    ]
    assert run_fs("get", ":/new/a", ":/third", "got/").exit_code == 0
    assert [one for one in _local(here) if one.startswith("got")] == [
        *("got/", "got/a", "got/third/", "got/third/d/", "got/third/d/x"),
    ]


def test_a_directory_is_not_made_for_nothing(ns: Namespace, here: Path) -> None:
    _write(here, "a", "d/a")
    assert run_fs("put", "a", "d/a", ":/new/").exit_code == 2
    assert run_fs("put", "a", "none", ":/new/").exit_code == 2
    assert shown(ns) == []


# --- cp ---------------------------------------------------------------------------------------------------------------
@pytest.fixture
def bucket() -> tuple[str, MemoryStore]:
    """An object store in memory, and its URL."""
    name = SystemIds().token()
    return f"memory://{name}", memory_store(name)


def _keys(store: MemoryStore) -> list[str]:
    return [info.key for info in store.list_page("").objects]


def test_cp_within_a_namespace(ns: Namespace) -> None:
    fill(ns, "/d/one", "/d/sub/two")
    ns.write_file("/d/large", LARGE)
    assert run_fs("cp", ":/d", ":/e").exit_code == 0
    assert shown(ns)[5:] == ["/e/", "/e/large", "/e/one", "/e/sub/", "/e/sub/two"]
    assert ns.open("/e/large").read() == LARGE
    assert run_fs("cp", ":/d/large", ":/e/").exit_code == 1
    assert run_fs("cp", "--overwrite", ":/d/large", ":/e/").exit_code == 0


def test_cp_to_and_from_an_object_store(ns: Namespace, here: Path, bucket: tuple[str, MemoryStore]) -> None:
    url, store = bucket
    fill(ns, "/d/one", "/d/sub/two", "/d/empty/")
    ns.write_file("/d/large", LARGE)
    result = run_fs("cp", ":/d", f"{url}/export")
    assert result.stdout == f"copied 3 files, 25.0 KiB, to {url}/export\n"
    assert "left out: 1 empty directory" in result.stderr
    assert _keys(store) == ["export/large", "export/one", "export/sub/two"]
    run_fs("cp", ":/d/one", f"{url}/into/")
    assert _keys(store)[3:] == ["into/one"]
    assert run_fs("cp", f"{url}/export", ":/back").exit_code == 0
    assert run_fs("cp", f"{url}/into/one", ":/single").exit_code == 0
    assert ns.open("/back/large").read() == LARGE
    assert [one for one in shown(ns) if one.startswith(("/back", "/single"))] == [
        *("/back/", "/back/large", "/back/one", "/back/sub/", "/back/sub/two", "/single"),
    ]


def test_large_files_go_to_an_object_store_in_parts(ns: Namespace, bucket: tuple[str, MemoryStore]) -> None:
    url, store = bucket
    content = bytes(range(256)) * 80_000
    ns.write_file("/large", content)
    assert run_fs("cp", ":/large", f"{url}/deep/down/").exit_code == 0
    assert store.get("deep/down/large") == content
    assert run_fs("cp", f"{url}/deep/down/large", ":/back").exit_code == 0
    assert ns.open("/back").read() == content
    assert list(iter_uploads(store, "")) == []


def test_objects_are_replaced_only_on_request(ns: Namespace, bucket: tuple[str, MemoryStore]) -> None:
    url, store = bucket
    fill(ns, "/a")
    store.put("a", b"old", Create())
    assert run_fs("cp", ":/a", f"{url}/a").exit_code == 1
    assert store.get("a") == b"old"
    assert run_fs("cp", "--overwrite", ":/a", f"{url}/a").exit_code == 0
    assert store.get("a") == b"/a"


def test_keys_that_are_no_paths_are_named(ns: Namespace, here: Path, bucket: tuple[str, MemoryStore]) -> None:
    url, store = bucket
    for key in ("in/ok", "in/../../up", "in//double", "in/x:y", "in/marker/", "in/dir/"):
        store.put(key, b"" if key.endswith("/") else b"x")
    store.put("in/slash/", b"data")
    result = run_fs("cp", f"{url}/in", ":/in", "--json")
    assert (result.exit_code, shown(ns)) == (1, ["/in/", "/in/dir/", "/in/marker/", "/in/ok"])
    assert len(json.loads(result.stdout)["failed"]) == 4


def test_cp_takes_local_paths_and_file_urls(ns: Namespace, here: Path) -> None:
    _write(here, "a", "d/b", "c", "e", "f")
    run_fs("cp", f"file://{here}/a", "d", f"file:{here}/c", f"file://localhost{here}/e", "FILE:f", ":/")
    run_fs("cp", ":/d", f"file://{here}/back")
    assert shown(ns) == ["/a", "/c", "/d/", "/d/b", "/e", "/f"]
    assert (here / "back/b").read_bytes() == b"d/b"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([":/a", ":/a"], "source and target are the same"),
        ([":/a", ":/"], "source and target are the same"),
        ([":/d", ":/d/x"], "a directory cannot be copied into itself"),
        ([":/d", ":/d"], "a directory cannot be copied into itself"),
        ([":/", ":/d"], "a directory cannot be copied into itself"),
        (["a", "b"], "neither source nor target is in a namespace"),
        (["memory://x/a", "memory://x/b"], "neither source nor target is in a namespace"),
        (["memory://nothing-here/a", ":/b"], "the source does not exist"),
        (["foo://x/a", ":/b"], "no store has this url scheme"),
        (["s3:/x/a", ":/b"], "two slashes must follow the scheme"),
        (["file://host/a", ":/b"], "a file url names no host"),
        (["-", ":/b"], "standard input and output belong to fs put and fs get"),
        ([":/a", "s3://key:secret@bucket/x"], "credentials do not belong in a url"),
    ],
)
def test_cp_refuses(ns: Namespace, here: Path, arguments: list[str], sentence: str) -> None:
    fill(ns, "/a", "/d/f")
    result = run_fs("cp", *arguments)
    assert (result.exit_code, shown(ns)) == (2, ["/a", "/d/", "/d/f"])
    assert sentence in result.stderr
    assert "secret" not in result.output


def test_a_directory_is_copied_beside_itself(ns: Namespace) -> None:
    """The name of the copy begins with that of the directory."""
    fill(ns, "/d/f")
    assert run_fs("cp", ":/d", ":/d-copy").exit_code == 0
    assert run_fs("cp", ":/d", ":/d2").exit_code == 0
    assert shown(ns) == ["/d-copy/", "/d-copy/f", "/d/", "/d/f", "/d2/", "/d2/f"]


# --- cat and get - ----------------------------------------------------------------------------------------------------
@pytest.fixture
def files(ns: Namespace) -> None:
    """A binary file, two text files, an empty one and a directory."""
    ns.write_file("/binary", BINARY)
    ns.write_file("/one.txt", b"1\n2\n3\n")
    ns.write_file("/two.txt", b"a\nb")
    ns.write_file("/empty", b"")
    fill(ns, "/d/")


def test_bytes_are_printed_as_they_are(files: None) -> None:
    assert run_fs("cat", ":/binary").stdout_bytes == BINARY
    assert run_fs("cat", "--glob", ":/*.txt", ":/empty").stdout_bytes == b"1\n2\n3\na\nb"


def test_large_files_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch, files: None) -> None:
    monkeypatch.setattr(places, "PIECE_BYTES", 100)
    assert run_fs("cat", ":/binary").stdout_bytes == BINARY
    assert run_fs("get", ":/binary", ":/one.txt", "-").stdout_bytes == BINARY + b"1\n2\n3\n"


def test_a_directory_is_reported_and_files_are_printed(files: None) -> None:
    result = run_fs("cat", ":/d", ":/one.txt")
    assert (result.exit_code, result.stdout_bytes) == (1, b"1\n2\n3\n")
    assert "the path is a directory: list it instead" in result.stderr


def test_nothing_is_printed_if_a_file_does_not_exist(files: None) -> None:
    result = run_fs("cat", ":/one.txt", ":/none")
    assert (result.exit_code, result.stdout_bytes) == (2, b"")


def test_bytes_and_a_document_do_not_mix(files: None) -> None:
    result = run_fs("get", ":/one.txt", "-", "--json")
    assert (result.exit_code, json.loads(result.stdout)["kind"]) == (2, "InvalidRequestError")
    assert "No such option '--json'" in run_fs("cat", "--json", ":/one.txt").stderr


def test_a_missing_blob_is_damage(ns: Namespace, files: None) -> None:
    (blob,) = ns.blobs.store.list_page(ns.blobs.key("")).objects
    ns.blobs.store.delete(blob.key)
    result = run_fs("cat", ":/binary")
    assert (result.exit_code, result.stdout_bytes) == (1, b"")
    assert "a blob of the file is missing: open the file again" in result.stderr


def test_a_reader_that_closes_the_pipe_ends_the_command(ns: Namespace, tmp_path: object) -> None:
    """`holdfast fs cat … | head -c 1`, in processes, so on SQLite."""
    program = (
        "import sys\n"
        "from holdfast.namespace import Configuration, init_namespace, open_namespace\n"
        "from holdfast.cli import main\n"
        f"place = {str(tmp_path)!r}\n"
        "init_namespace(Configuration(name='p', data=place + '/data', superuser='root'), f'sqlite://{place}/p.db')\n"
        "with open_namespace('holdfast://p', user='root') as ns:\n"
        "    ns.write_file('/f', bytes(10_000_000))\n"
        "sys.argv[1:] = ['fs', 'cat', 'holdfast://p/f']\n"
        "main()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(1) == b"\0"
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (0, b"")
