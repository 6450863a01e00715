"""The magic filesystem: its paths, listings, reads and changes."""

from __future__ import annotations

import gc
import importlib.metadata
import itertools
import json
import pickle
import threading
from pathlib import Path

import fsspec
import pytest

import holdfast.fs
from holdfast.commit.context import CommitContext
from holdfast.errors import InvalidRequestError, OutcomeUnknownError, UnavailableError, UnsupportedError
from holdfast.fs import MagicFileSystem
from holdfast.fs.filesystem import Location, canonical, locate, split_magic
from holdfast.stores.interceptors import InterceptedStore, Operation
from holdfast.stores.memory import MemoryStore, memory_store
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty


# --- paths ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://bucket/a b/c", "bucket/a b/c"),
        ("s3a://bucket/a/", "bucket/a"),
        ("holdfast-magic://bucket/a", "bucket/a"),
        ("holdfast-magic://s3n://bucket/a", "bucket/a"),
        ("holdfast-magic://memory://name/a%20b", "memory:name/a%20b"),
        ("memory:name/a", "memory:name/a"),
        ("file:///data/a/", "file:/data/a"),
        ("file:/data/a", "file:/data/a"),
        ("file:///", "file:/"),
        ("/bucket/a", "bucket/a"),
    ],
)
def test_canonical(path: str, expected: str) -> None:
    assert canonical(path) == expected
    assert canonical(expected) == expected, "again changes nothing"
    assert canonical(f"holdfast-magic://{expected}") == expected


@pytest.mark.parametrize(
    ("path", "location", "url"),
    [
        ("bucket/a/b", Location("bucket", "a/b"), "s3://bucket"),
        ("bucket", Location("bucket", ""), "s3://bucket"),
        ("memory:name/a", Location("memory:name", "a"), "memory://name"),
        ("file:/data/a", Location("file:/", "data/a"), "file:///"),
        ("file:/", Location("file:/", ""), "file:///"),
    ],
)
def test_locations(path: str, location: Location, url: str) -> None:
    assert locate(path) == location and location.url == url
    assert location.path(location.key) == path


@pytest.mark.parametrize("path", ["", "memory:", "file:", "memory:/a"])
def test_paths_without_a_store(path: str) -> None:
    with pytest.raises(InvalidRequestError, match="names no bucket"):
        locate(path)


def test_an_unknown_scheme() -> None:
    with pytest.raises(InvalidRequestError, match="no store has this url scheme"):
        canonical("ftp://host/a")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("out put/t/__magic_job-7/tasks/a/__base/x", ("out put/t/", "__magic_job-7/tasks/a/__base/x")),
        ("__magic/x", ("", "__magic/x")),
        ("a/__magic", ("a/", "__magic")),
        ("a/b", None),
        ("a/__magic_jobs/b", None),
        ("__base/__magic/__magic_job-1/x", ("__base/", "__magic/__magic_job-1/x")),
    ],
)
def test_the_destination_of_a_magic_key(key: str, expected: tuple[str, str] | None) -> None:
    """Scenario 34: the destination is everything above the first magic directory, whatever its name."""
    assert split_magic(key) == expected


@pytest.mark.parametrize("path", ["s3://AKIA:canary@bucket/key", "AKIA:canary@bucket/key", "memory://a:canary@x/y"])
def test_credentials_in_a_path_are_refused_and_not_repeated(path: str) -> None:
    with pytest.raises(InvalidRequestError, match="credentials do not belong in a path") as caught:
        canonical(path)
    assert "canary" not in str(caught.value) and "AKIA" not in str(caught.value)
    assert canonical("bucket/a@b:c") == "bucket/a@b:c", "only the store's name is checked"


# --- the filesystem ---------------------------------------------------------------------------------------------------
_names = itertools.count()


@pytest.fixture
def root() -> str:
    return f"memory:plain{next(_names)}"


@pytest.fixture
def fs(root: str) -> MagicFileSystem:
    filesystem = MagicFileSystem()
    for path in ("a", "dir/b", "dir/sub/c", "dir/sub/d", "dirt/e"):
        filesystem.pipe_file(f"{root}/{path}", path.encode())
    return filesystem


# --- an object store --------------------------------------------------------------------------------------------------
def test_listing(fs: MagicFileSystem, root: str) -> None:
    assert fs.ls(root, detail=False) == [f"{root}/a", f"{root}/dir", f"{root}/dirt"]
    assert [(one["name"], one["type"], one["size"]) for one in fs.ls(f"{root}/dir")] == [
        (f"{root}/dir/b", "file", 5),
        (f"{root}/dir/sub", "directory", 0),
    ]
    assert fs.ls(f"{root}/a", detail=False) == [f"{root}/a"]
    assert fs.find(f"{root}/dir") == [f"{root}/dir/b", f"{root}/dir/sub/c", f"{root}/dir/sub/d"]
    assert fs.find(f"{root}/dir", maxdepth=1, withdirs=True) == [f"{root}/dir/b", f"{root}/dir/sub"]
    assert fs.find(f"{root}/a") == [f"{root}/a"] and fs.find(f"{root}/none") == []
    assert fs.glob(f"{root}/dir/*/c") == [f"{root}/dir/sub/c"]
    assert [where for where, _dirs, _files in fs.walk(f"{root}/dir")] == [f"{root}/dir", f"{root}/dir/sub"]
    assert fs.du(f"{root}/dir") == 5 + 9 + 9
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{root}/none")


def test_directory_markers(fs: MagicFileSystem, root: str) -> None:
    """Consoles create such markers: they are a directory, never a file, and are deleted with it."""
    store = memory_store(root.removeprefix("memory:"))
    for key in ("dir/", "dir/sub/", "empty/", "empty/below/"):
        store.put(key, b"")
    assert fs.ls(root, detail=False) == [f"{root}/a", f"{root}/dir", f"{root}/dirt", f"{root}/empty"]
    assert fs.find(root) == [f"{root}/a", f"{root}/dir/b", f"{root}/dir/sub/c", f"{root}/dir/sub/d", f"{root}/dirt/e"]
    assert fs.info(f"{root}/empty")["type"] == "directory" and fs.ls(f"{root}/empty/below") == []
    for directory in ("dir", "empty"):
        fs.rm(f"{root}/{directory}", recursive=True)
        assert not fs.exists(f"{root}/{directory}")
    assert fs.find(root) == [f"{root}/a", f"{root}/dirt/e"]


def test_info_and_exists(fs: MagicFileSystem, root: str) -> None:
    assert fs.info(f"{root}/a")["type"] == "file" and fs.info(f"{root}/dir")["type"] == "directory"
    assert fs.info(root)["type"] == "directory"
    assert fs.isdir(f"{root}/dir/") and fs.isfile(f"{root}/dir/b") and not fs.exists(f"{root}/di")
    assert fs.modified(f"{root}/a").year >= 2024
    with pytest.raises(FileNotFoundError):
        fs.info(f"{root}/none")


def test_reading(fs: MagicFileSystem, root: str) -> None:
    path = f"{root}/dir/sub/c"
    assert fs.cat_file(path) == b"dir/sub/c"
    assert fs.cat_file(path, 4, 7) == b"sub" and fs.cat_file(path, -1) == b"c" and fs.cat_file(path, 0, -8) == b"d"
    assert fs.cat_file(path, 5, 5) == b""
    with fs.open(path, block_size=4) as file:
        assert file.seek(4) == 4 and file.read(3) == b"sub" and file.read() == b"/c"
    for read in (fs.cat_file, fs.open):
        with pytest.raises(FileNotFoundError):
            read(f"{root}/none")


def test_writing_over_a_file(fs: MagicFileSystem, root: str) -> None:
    with fs.open(f"{root}/a", "wb") as file:
        file.write(b"new")
        assert fs.cat_file(f"{root}/a") == b"a", "not before it is closed"
    assert fs.cat_file(f"{root}/a") == b"new"
    large = b"0123456789" * 2_000_000
    fs.pipe_file(f"{root}/a", large)
    assert fs.cat_file(f"{root}/a") == large
    fs.touch(f"{root}/empty")
    assert fs.size(f"{root}/empty") == 0


def test_deleting(fs: MagicFileSystem, root: str) -> None:
    fs.rm(f"{root}/a")
    with pytest.raises(IsADirectoryError):
        fs.rm(f"{root}/dir")
    fs.rm([f"{root}/dir"], recursive=True)
    assert fs.find(root) == [f"{root}/dirt/e"], "not what merely starts like it"
    fs.rm(fs.glob(f"{root}/d*/*"))
    assert fs.find(root) == []
    fs.rm_file(f"{root}/a")
    with pytest.raises(FileNotFoundError):
        fs.rm(f"{root}/a")
    with pytest.raises(UnsupportedError):
        fs.rm(f"{root}/a", maxdepth=1)


@pytest.mark.parametrize("name", ["report[1].csv", "report[!a].csv", "report?.csv", "report*.csv", "report{1,2}.csv"])
def test_a_name_that_looks_like_a_pattern_means_itself(
    fs: MagicFileSystem, root: str, name: str, tmp_path: Path
) -> None:
    for one in (name, "report1.csv"):
        fs.pipe_file(f"{root}/p/{one}", one.encode())
        (tmp_path / one).write_text(one)
    fs.copy(f"{root}/p/{name}", f"{root}/copy")
    fs.get(f"{root}/p/{name}", str(tmp_path / "got"))
    fs.put(str(tmp_path / name), f"{root}/put")
    fs.put([str(tmp_path / name)], f"{root}/dir")
    assert fs.cat(f"{root}/p/{name}") == (tmp_path / "got").read_bytes() == name.encode()
    assert {fs.cat_file(f"{root}/{one}") for one in ("copy", "put", f"dir/{name}")} == {name.encode()}
    fs.mv(f"{root}/p/{name}", f"{root}/moved")
    assert fs.cat_file(f"{root}/moved") == name.encode()
    repeated = (
        lambda: fs.mv(f"{root}/p/{name}", f"{root}/moved"),
        lambda: fs.mv(f"{root}/p/{name}", f"{root}/moved", recursive=True),
        lambda: fs.rm(f"{root}/p/{name}"),
        lambda: fs.rm([f"{root}/p/{name}"], recursive=True),
    )
    for call in repeated:
        with pytest.raises(FileNotFoundError):
            call()
    assert fs.find(f"{root}/p") == [f"{root}/p/report1.csv"]


def test_nothing_is_removed_if_one_of_several_is_missing(fs: MagicFileSystem, root: str) -> None:
    for wrong in ([f"{root}/a", f"{root}/none"], [f"{root}/a", f"{root}/dir"]):
        with pytest.raises(OSError):
            fs.rm(wrong)
        assert fs.exists(f"{root}/a")


def test_a_copy_never_leads_out_of_its_target(fs: MagicFileSystem, root: str, tmp_path: Path) -> None:
    fs.pipe_file(f"{root}/a[1]/../../evil", b"")
    with pytest.raises(InvalidRequestError, match="leads out of the target"):
        fs.get(f"{root}/a[1]", str(tmp_path / "in"), recursive=True)


def test_creating_a_directory_does_nothing(fs: MagicFileSystem, root: str) -> None:
    for path in (f"{root}/new", f"{root}/t/__magic_job-7/new"):
        fs.mkdir(path)
        fs.makedirs(path, exist_ok=True)
        assert not fs.exists(path)
        fs.rmdir(path)


def test_a_directory_of_this_machine(tmp_path: Path) -> None:
    fs = MagicFileSystem()
    fs.pipe_file(f"file://{tmp_path}/out put/a", b"1")
    assert (tmp_path / "out put" / "a").read_bytes() == b"1"
    assert fs.ls(f"file://{tmp_path}/out put", detail=False) == [f"file:{tmp_path}/out put/a"]
    fs.rm(f"file:{tmp_path}/out put", recursive=True)
    assert not (tmp_path / "out put").exists()


def test_a_magic_directory_of_this_machine(tmp_path: Path) -> None:
    fs = MagicFileSystem()
    fs.pipe_file(f"file://{tmp_path}/t/__magic_job-7/x/__base/sub/a", b"12")
    record = json.loads((tmp_path / "t/__magic_job-7/x/__base/sub/a.pending").read_bytes())
    assert record["destinationKey"] == f"{tmp_path}/t/sub/a".lstrip("/") and record["length"] == 2
    assert not (tmp_path / "t/sub/a").exists()
    fs.rm(f"file://{tmp_path}/t/__magic_job-7/x/__base/sub/a")
    assert fs.find(f"file://{tmp_path}/t") == []


@pytest.mark.parametrize("mode", ["ab", "xb", "r+b"])
def test_modes_that_stores_do_not_have(fs: MagicFileSystem, root: str, mode: str) -> None:
    with pytest.raises(UnsupportedError, match="can only be written as a whole"):
        fs.open(f"{root}/a", mode)
    with pytest.raises(InvalidRequestError, match="names a bucket, not a file"):
        fs.open(root, "wb")


def test_transactions_of_fsspec_are_refused(fs: MagicFileSystem, root: str) -> None:
    with fs.transaction, pytest.raises(UnsupportedError, match="magic path"):
        fs.open(f"{root}/a", "wb")
    assert fs.cat_file(f"{root}/a") == b"a"


@pytest.mark.parametrize("path", ["__magic", "__magic/_hidden", "__magic_job-7/x/__base", "__magic/a/../../b"])
def test_magic_paths_that_name_no_file(fs: MagicFileSystem, root: str, path: str) -> None:
    """Scenario 34: a magic path needs a file below its directory; C7: it names nothing outside the destination."""
    with pytest.raises(InvalidRequestError):
        fs.open(f"{root}/t/{path}", "wb")


def test_records_are_written_unchanged(fs: MagicFileSystem, root: str) -> None:
    """Scenario 35."""
    for path in (f"{root}/t/__magic/1/2.pending", f"{root}/t/__magic_job-1/task003.pendingset"):
        fs.pipe_file(path, b"{}")
        assert fs.cat_file(path) == b"{}"


# --- trouble ----------------------------------------------------------------------------------------------------------
def over(*faults: Fault) -> tuple[MagicFileSystem, MemoryStore]:
    store = MemoryStore()
    ctx = CommitContext(store=InterceptedStore(store, Faulty(*faults)), prefix="t/", url="memory://world/t/")
    return MagicFileSystem.over(ctx), store


@pytest.mark.parametrize(
    ("fault", "path", "size"),
    [
        (Fault(FaultMode.FAIL, Operation.PUT), "a", 3),
        (Fault(FaultMode.FAIL, Operation.UPLOAD_PART), "a", 9_000_000),
        (Fault(FaultMode.FAIL, Operation.COMPLETE_UPLOAD), "a", 9_000_000),
        (Fault(FaultMode.FAIL, Operation.CREATE_UPLOAD), "__magic/a", 3),
        (Fault(FaultMode.FAIL, Operation.UPLOAD_PART), "__magic/a", 3),
        (Fault(FaultMode.FAIL, Operation.PUT), "__magic/a", 3),
        (Fault(FaultMode.FAIL, Operation.PUT, nth=2), "__magic/a", 3),
        (Fault(FaultMode.LOST_REPLY, Operation.PUT, nth=2), "__magic/a", 3),
    ],
)
def test_a_failed_close_discards_the_file(fault: Fault, path: str, size: int) -> None:
    """Scenarios 12 to 14: no upload and no record is left, and nothing is visible."""
    fs, store = over(fault)
    with pytest.raises((UnavailableError, OutcomeUnknownError)):
        fs.pipe_file(f"memory://world/t/{path}", b"x" * size)
    assert list(store.list_uploads_page("").uploads) == []
    assert list(store.list_page("").objects) == []


def test_an_error_before_the_end_leaves_the_earlier_file() -> None:
    fs, store = over()
    fs.pipe_file("memory://world/t/__magic/a", b"first")
    file = fs.open("memory://world/t/__magic/a", "wb")
    file.write(b"second")
    file.discard()
    assert [info.key for info in store.list_page("").objects] == ["t/__magic/a", "t/__magic/a.pending"]
    assert [upload.key for upload in store.list_uploads_page("").uploads] == ["t/a"]


def test_no_thread_is_left() -> None:
    """HADOOP-16570, scenario 66: each open file has its own threads."""
    fs, _store = over()
    before = threading.active_count()
    for number in range(20):
        fs.pipe_file(f"memory://world/t/__magic/{number}", b"x")
        fs.open(f"memory://world/t/{number}", "wb").discard()
    assert threading.active_count() == before


def test_lost_replies_of_a_completion_are_settled() -> None:
    fs, store = over(Fault(FaultMode.LOST_REPLY, Operation.COMPLETE_UPLOAD))
    fs.pipe_file("memory:world/t/a", b"x" * 9_000_000)
    assert store.head("t/a").size_bytes == 9_000_000


def test_an_error_of_the_cleanup_does_not_hide_the_first_one() -> None:
    """Scenario 15."""
    fs, _store = over(
        Fault(FaultMode.FAIL, Operation.PUT, error=OutcomeUnknownError("the first error")),
        Fault(FaultMode.FAIL, Operation.ABORT_UPLOAD, times=FOR_EVER),
    )
    with pytest.raises(OutcomeUnknownError, match="the first error"):
        fs.pipe_file("memory://world/t/__magic/a", b"x")


def test_errors_of_a_store_are_not_taken_for_missing_files() -> None:
    fs, _store = over(Fault(FaultMode.FAIL, Operation.HEAD))
    with pytest.raises(UnavailableError):
        fs.exists("memory://world/t/a")


def test_a_filesystem_over_an_open_store_cannot_leave_its_process() -> None:
    fs, _store = over()
    other, _store = over()
    assert fs != other and fs == fs
    with pytest.raises(InvalidRequestError, match="serves only one store"):
        fs.exists("memory://elsewhere/a")
    with pytest.raises(UnsupportedError, match="cannot be pickled"):
        pickle.dumps(fs)


# --- as fsspec knows it -----------------------------------------------------------------------------------------------
SECRETS = {"access_key": "AKIA-not-shown", "secret_key": "secret-not-shown", "session_token": "token-not-shown"}


def test_secrets_are_not_shown() -> None:
    fs = MagicFileSystem(endpoint="http://127.0.0.1:1", **SECRETS)
    for shown in (repr(fs), str(fs), fs.to_json(), fs.to_json(include_password=True), str(fs.to_dict())):
        assert "not-shown" not in shown and "127.0.0.1" in shown
    again = fsspec.AbstractFileSystem.from_json(fs.to_json())
    assert isinstance(again, MagicFileSystem) and again.storage_options == {"endpoint": "http://127.0.0.1:1"}


def test_pickling_carries_everything() -> None:
    fs = MagicFileSystem(endpoint="http://127.0.0.1:1", path_style=True, part_size_bytes=6 << 20, **SECRETS)
    assert pickle.loads(pickle.dumps(fs)) == fs
    assert pickle.loads(pickle.dumps(fs)).storage_options == fs.storage_options


def test_unknown_options_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="did you mean endpoint"):
        MagicFileSystem(endpoint_url="http://127.0.0.1:1")
    with pytest.raises(InvalidRequestError, match="go together"):
        MagicFileSystem(access_key="a")
    assert MagicFileSystem(use_listings_cache=False)


def test_the_protocol_is_registered_with_fsspec() -> None:
    """After installing Holdfast, ``holdfast-magic://…`` works in any program that uses fsspec."""
    (entry,) = importlib.metadata.entry_points(group="fsspec.specs", name=MagicFileSystem.protocol)
    assert entry.load() is holdfast.fs.MagicFileSystem


def test_urls(root: str) -> None:
    url = f"holdfast-magic://{root.replace(':', '://')}/t/a.txt"
    with fsspec.open(url, "wb") as file:
        file.write(b"1")
    assert memory_store(root.removeprefix("memory:")).get("t/a.txt") == b"1"
    fs, path = fsspec.core.url_to_fs(url)
    assert isinstance(fs, MagicFileSystem) and path == f"{root}/t/a.txt" and fs.cat(url) == b"1"
    assert fs.unstrip_protocol(path) == f"holdfast-magic://{root}/t/a.txt"


# --- compression and text ---------------------------------------------------------------------------------------------
def write_packed(fs: MagicFileSystem, path: str, compression: str, mode: str, *, fail: bool) -> None:
    with fs.open(path, mode, compression=compression) as file:
        file.write("whole" if mode == "w" else b"whole")
        if fail:
            raise RuntimeError("stop")


@pytest.mark.parametrize("mode", ["w", "wb"])
@pytest.mark.parametrize("compression", ["gzip", "bz2", "xz", "zstd", "zip", "infer"])
def test_a_compressed_file_is_written_and_read(fs: MagicFileSystem, root: str, compression: str, mode: str) -> None:
    """Defect: most compressors leave the file below them open, so it was discarded without an error."""
    if compression == "zstd":
        pytest.importorskip("zstandard")
    path = f"{root}/packed/x.gz"
    write_packed(fs, path, compression, mode, fail=False)
    gc.collect()
    assert fs.exists(path) and fs.cat(path) != b"whole"
    with fs.open(path, "rb", compression=compression) as file:
        assert file.read() == b"whole"


@pytest.mark.parametrize("mode", ["w", "wb"])
@pytest.mark.parametrize("compression", ["gzip", "bz2", "xz", "zstd"])
def test_a_compressed_file_is_discarded_by_an_error(
    fs: MagicFileSystem, root: str, compression: str, mode: str
) -> None:
    if compression == "zstd":
        pytest.importorskip("zstandard")
    with pytest.raises(RuntimeError, match="stop"):
        write_packed(fs, f"{root}/half", compression, mode, fail=True)
    gc.collect()
    assert not fs.exists(f"{root}/half")


@pytest.mark.parametrize("mode", ["w", "wb"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_file_whose_last_reference_is_dropped_is_discarded(
    fs: MagicFileSystem, root: str, mode: str, compression: str | None
) -> None:
    file = fs.open(f"{root}/dropped", mode, compression=compression)
    file.write("half" if mode == "w" else b"half")
    del file
    gc.collect()
    assert not fs.exists(f"{root}/dropped")


# --- copies -----------------------------------------------------------------------------------------------------------
def test_files_are_copied_and_moved(fs: MagicFileSystem, root: str) -> None:
    fs.pipe({f"{root}/a/x": b"1", f"{root}/a/b/y": b"2"})
    fs.copy(f"{root}/a/x", f"{root}/c/x")
    fs.copy(f"{root}/a", f"{root}/all", recursive=True)
    fs.mv(f"{root}/a/b/y", "memory://elsewhere/y")
    assert fs.cat(f"{root}/c/x") == fs.cat(f"{root}/all/x") == fs.cat(f"{root}/a/x") == b"1"
    assert fs.cat(f"{root}/all/b/y") == fs.cat("memory://elsewhere/y") == b"2"
    assert not fs.exists(f"{root}/a/b/y")
    with pytest.raises(FileNotFoundError):
        fs.copy(f"{root}/none", f"{root}/c/none")
    assert not fs.exists(f"{root}/c/none")


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_parts_of_a_file_that_reach_beyond_it(scheme: str, tmp_path: Path) -> None:
    """As Python slices: readers of footers ask for more bytes from the end than a small file has."""
    fs, data = MagicFileSystem(), b"0123456789"
    url = f"{scheme}://{tmp_path}/a" if scheme == "file" else "memory://tails/a"
    fs.pipe_file(url, data)
    for start in (None, 0, 3, 9, 10, 20, -1, -10, -11, -100):
        for end in (None, 0, 3, 10, 20, -1, -10, -11, -100):
            assert fs.cat_file(url, start, end) == data[start:end], (start, end)
