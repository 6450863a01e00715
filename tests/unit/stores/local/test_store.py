"""Local files: keys, listings, directories that come and go, links, errors of the system, full disks."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import (
    AccessDeniedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import Create, Part, Update, iter_objects, iter_uploads
from holdfast.stores.local import tree
from holdfast.stores.local.store import LocalStore
from tests.clocks import StillClock
from tests.unit.stores.local.local_files import hidden_names, upload_parts


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "root"))


# --- keys -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "key",
    ["", "/a", "a//b", "a/", "./a", "a/../b", "..", "a\0b", "x" * 256, "x" * 230, "a/.holdfast-x/b", ".holdfast-1"],
)
def test_keys_that_are_refused(store: LocalStore, tmp_path: Path, key: str) -> None:
    for call in (lambda: store.put(key, b""), lambda: store.open_write(key), lambda: store.create_upload(key)):
        with pytest.raises(InvalidRequestError):
            call()
    assert not list(tmp_path.rglob("*"))


def test_a_directory_may_have_the_longest_name(store: LocalStore) -> None:
    key = f"{'x' * 255}/{'y' * 220}"
    store.put(key, b"1")
    assert store.get(key) == b"1"


def test_a_path_that_is_a_file(store: LocalStore) -> None:
    """Bad input: the destination is a file."""
    store.put("file", b"1")
    for call in (
        lambda: store.put("file/a", b""),
        lambda: store.open_write("file/a/b"),
        lambda: store.create_upload("file/a"),
        lambda: store.rename("file", "file/a"),
    ):
        with pytest.raises(InvalidRequestError, match="a file stands"):
            call()
    assert [info.key for info in iter_objects(store, "file/")] == []
    with pytest.raises(NotFoundError):
        store.head("file/a")
    store.delete("file/a")
    assert store.get("file") == b"1"


def test_a_path_that_is_a_directory(store: LocalStore) -> None:
    store.put("dir/a", b"1")
    for call in (
        lambda: store.put("dir", b""),
        lambda: store.put("dir", b"", Create()),
        lambda: store.open_write("dir"),
        lambda: store.create_upload("dir"),
        lambda: store.rename("dir/a", "dir"),
    ):
        with pytest.raises(InvalidRequestError, match="a directory stands"):
            call()
    with pytest.raises(NotFoundError):
        store.get("dir")
    with pytest.raises(NotFoundError):
        store.head("dir")
    store.delete("dir")
    assert store.get("dir/a") == b"1"


def test_a_directory_that_appears_meanwhile(store: LocalStore) -> None:
    file = store.open_write("dir")
    file.write(b"1")
    store.put("dir/a", b"2")
    with pytest.raises(InvalidRequestError, match="a directory stands"):
        file.close()
    assert [info.key for info in iter_objects(store, "")] == ["dir/a"]


# --- listing ----------------------------------------------------------------------------------------------------------
def test_only_directories_that_matter_are_read(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        store.put(f"t/d{number:02d}/a", b"1")
        store.put(f"u/d{number:02d}/a", b"1")
    read: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(path) or scandir(path))
    page = store.list_page("t/d0", "t/d07/a", max_keys=1)
    assert [info.key for info in page.objects] == ["t/d08/a"]
    assert [Path(path).name for path in read] == ["t", "d07", "d08", "d09"]


def test_what_is_not_finished_is_hidden_and_pending(store: LocalStore, tmp_path: Path) -> None:
    file = store.open_write("t/a")
    file.write(b"1")
    upload_id = store.create_upload("t/b")
    store.upload_part("t/b", upload_id, 1, b"1")
    assert [info.key for info in iter_objects(store, "")] == []
    assert sorted(upload.key for upload in iter_uploads(store, "t/")) == ["t/a", "t/b"]
    assert len(hidden_names(tmp_path)) == 2
    file.close()
    store.abort_upload("t/b", upload_id)
    assert list(iter_uploads(store, "")) == []
    assert hidden_names(tmp_path) == []


@pytest.mark.parametrize(("waited_s", "has_new_date"), [(59.0, False), (61.0, True)])
def test_what_is_written_slowly_has_the_date_of_its_last_write(
    tmp_path: Path, waited_s: float, has_new_date: bool
) -> None:
    """To within a minute, although it waits in a buffer: so others see that the writer is alive."""
    clock = StillClock()
    file = LocalStore(str(tmp_path), clock=clock).open_write("slow")
    file.write(b"1")
    (hidden,) = tmp_path.rglob(".holdfast-file-*")
    os.utime(hidden, (1, 1))
    clock.at_s += waited_s
    file.write(b"2")
    assert (hidden.stat().st_mtime > 1) is has_new_date
    file.close()
    assert (tmp_path / "slow").read_bytes() == b"12"


def test_names_that_are_not_utf8_are_left_out(store: LocalStore, tmp_path: Path) -> None:
    store.put("a", b"1")
    (tmp_path / "root" / os.fsdecode(b"\xff\xfe")).write_bytes(b"1")
    assert [info.key for info in iter_objects(store, "")] == ["a"]


def test_an_empty_root_is_an_empty_store(store: LocalStore) -> None:
    assert [info.key for info in iter_objects(store, "")] == []
    assert list(iter_uploads(store, "")) == []
    store.delete("a/b")
    with pytest.raises(NotFoundError):
        store.get("a")


# --- directories that come and go -------------------------------------------------------------------------------------
def test_empty_directories_go_up_to_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "out" / "users own, empty").mkdir(parents=True)
    store = LocalStore("/", keep=str(tmp_path / "out" / "t"))
    base = str(tmp_path / "out" / "t").strip("/")
    store.put(f"{base}/a/b/c", b"1")
    store.put(f"{base}/a/x", b"1")
    store.delete(f"{base}/a/b/c")
    assert not (tmp_path / "out/t/a/b").exists()
    store.rename(f"{base}/a/x", f"{base}/y")
    assert not (tmp_path / "out/t/a").exists()
    store.abort_upload(f"{base}/u/v", store.create_upload(f"{base}/u/v"))
    assert not (tmp_path / "out/t/u").exists()
    store.delete(f"{base}/y")
    assert (tmp_path / "out/t").is_dir()
    store.put(f"{base}/v/w/x/y", b"1")
    store.rename_dir(f"{base}/v/w", f"{base}/z")
    assert not (tmp_path / "out/t/v").exists()
    assert (tmp_path / "out/t/z/x/y").exists()
    assert (tmp_path / "out" / "users own, empty").is_dir()


def test_writers_survive_directories_that_are_pruned_under_them(store: LocalStore) -> None:
    """mkdir here, rmdir there: each writer makes its directory again until its file is in it."""

    def work(worker: int) -> None:
        for number in range(60):
            key = f"p/q/r/{worker}"
            if number % 3 == 0:
                store.put(key, b"1", Create())
            elif number % 3 == 1:
                store.put(f"x{worker}", b"1")
                store.rename(f"x{worker}", key)
            else:
                upload_id = store.create_upload(key)
                store.complete_upload(key, upload_id, [store.upload_part(key, upload_id, 1, b"1")])
            store.delete(key)

    list(ThreadRunner(6).map(work, range(6)))
    assert [info.key for info in iter_objects(store, "")] == []


@pytest.mark.parametrize("question", ["isdir", "access"])
@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_directory_that_is_pruned_while_a_target_is_judged(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str, is_made_again: bool
) -> None:
    """A directory that is gone is neither a file in the way nor a lack of permission."""
    root = Path(store._tree.root)
    (root / "d").mkdir(parents=True)
    module = os.path if question == "isdir" else os
    asked = getattr(module, question)
    pruned: list[str] = []

    def prune_and_ask(path: str, *more: int) -> bool:
        is_pruned = path == str(root / "d") and not pruned
        if is_pruned:
            pruned.append(path)
            os.rmdir(path)
        answer: bool = asked(path, *more)
        if is_pruned and is_made_again:
            os.mkdir(path)
        return answer

    monkeypatch.setattr(module, question, prune_and_ask)
    store.check_targets(["d/a"])
    assert pruned


@pytest.mark.parametrize("call", ["put", "rename", "rename_dir", "create_upload"])
def test_a_directory_that_is_pruned_as_soon_as_it_is_made(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Another's delete takes the new directory and its parent before they were forced to the disk."""
    store.put("s/a", b"1")
    mkdir = os.mkdir
    pruned: list[str] = []

    def mkdir_and_prune(path: str) -> None:
        mkdir(path)
        if path.endswith("/p/q") and len(pruned) < 3:
            pruned.append(path)
            os.rmdir(path)
            os.rmdir(os.path.dirname(path))

    monkeypatch.setattr(os, "mkdir", mkdir_and_prune)
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: store.put("p/q/a", b"1"),
        "rename": lambda: store.rename("s/a", "p/q/a"),
        "rename_dir": lambda: store.rename_dir("s", "p/q/t"),
        "create_upload": lambda: store.create_upload("p/q/a"),
    }
    calls[call]()
    assert len(pruned) == 3
    assert os.listdir(os.path.dirname(pruned[0])) == ["q"]
    assert len(os.listdir(pruned[0])) == 1


# --- links ------------------------------------------------------------------------------------------------------------
def test_a_destination_behind_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    base = str(tmp_path / "link" / "t").strip("/")
    store = LocalStore("/", keep=base)
    store.put(f"{base}/a/b", b"1")
    store.rename_dir(f"{base}/a", f"{base}/c")
    store.delete(f"{base}/c/b")
    assert list((tmp_path / "real" / "t").iterdir()) == []


# --- errors of the system ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.EFBIG, StorageFullError),
        (errno.EACCES, AccessDeniedError),
        (errno.EPERM, AccessDeniedError),
        (errno.EROFS, AccessDeniedError),
        (errno.ENAMETOOLONG, InvalidRequestError),
        (errno.EIO, UnavailableError),
        (errno.EMFILE, UnavailableError),
    ],
)
@pytest.mark.parametrize("call", ["open", "mkdir", "fsync"])
def test_errors_of_the_system(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, expected: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(HoldfastError) as caught:
        store.put("t/a", b"1")
    monkeypatch.undo()
    assert type(caught.value) is expected
    assert isinstance(caught.value.__cause__, OSError)
    assert str(tmp_path) not in caught.value.message
    assert [info.key for info in iter_objects(store, "")] == []
    assert hidden_names(tmp_path) == []


def test_a_file_system_without_links(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(UnsupportedError, match="no hard links"):
        store.put("a", b"1", Create())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB where that can be mounted, else a limit on the size of files."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    mounted = shutil.which("mount") and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, hard))
    yield disk
    if mounted:
        subprocess.run(["umount", str(disk)], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk(small_disk: Path) -> None:
    """facts: A-30. One sentence, nothing visible, the room given back, and the next try succeeds."""
    store = LocalStore(str(small_disk / "t"))
    too_much = b"x" * 1024 * 1024
    with pytest.raises(StorageFullError, match="free some space"):
        store.put("a", too_much)
    file = store.open_write("b")
    with pytest.raises(StorageFullError):
        file.write(too_much * 4)
    file.discard()
    upload_id = store.create_upload("c")
    with pytest.raises(StorageFullError):
        store.upload_part("c", upload_id, 1, too_much)
    assert [info.key for info in iter_objects(store, "")] == []
    parts = [store.upload_part("c", upload_id, 1, b"x" * 100_000)]
    store.complete_upload("c", upload_id, parts)
    assert store.head("c").size_bytes == 100_000
    assert hidden_names(small_disk) == []


def test_a_disk_that_fills_while_parts_are_joined(small_disk: Path) -> None:
    store = LocalStore(str(small_disk / "t"))
    upload_id = store.create_upload("c")
    parts = [store.upload_part("c", upload_id, number, b"x" * 90_000) for number in (1, 2)]
    if os.path.ismount(small_disk):
        with pytest.raises(StorageFullError):
            store.complete_upload("c", upload_id, parts)
        assert [info.key for info in iter_objects(store, "")] == []
        parts = [store.upload_part("c", upload_id, number, b"x" * 40_000) for number in (1, 2)]
    assert store.complete_upload("c", upload_id, parts).size_bytes == sum(part.size_bytes for part in parts)


def test_joining_without_help_of_the_kernel(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "copy_file_range", fail)
    store.complete_upload("a", *upload_parts(store, "a", 3))
    assert store.get("a") == b"1" * 10 + b"2" * 10 + b"3" * 10


def test_joining_where_the_kernel_ends_too_early(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems answer that nothing is left; what was copied by then must not count as the whole."""
    copy, answers = os.copy_file_range, [4, 0] * 20
    monkeypatch.setattr(os, "copy_file_range", lambda *files: copy(*files[:2], n) if (n := answers.pop(0)) else 0)
    store.complete_upload("a", *upload_parts(store, "a", 3))
    assert store.get("a") == b"1" * 10 + b"2" * 10 + b"3" * 10


def test_a_directory_that_another_process_holds(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is frozen in the middle of a rename: the wait ends, and says where it was."""
    store.put("d/a", b"1")
    monkeypatch.setattr(tree, "_LOCK_S", 0.05)
    directory = os.open(os.path.join(store._tree.root, "d"), os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        with pytest.raises(UnavailableError, match="has had this locked"):
            store.put("d/b", b"2")
    finally:
        os.close(directory)
    store.put("d/b", b"2")


def test_writing_to_a_closed_file(store: LocalStore) -> None:
    file = store.open_write("a")
    file.close()
    with pytest.raises(InvalidRequestError, match="closed"):
        file.write(b"1")


@pytest.mark.parametrize("copies", [True, False])
def test_a_file_whose_directory_is_replaced_by_a_copy_is_not_closed(
    store: LocalStore, tmp_path: Path, copies: bool
) -> None:
    """As if a backup were put back: the open file is in no directory anymore, and its copy ends too early."""
    file = store.open_write("d/a")
    file.write(b"1")
    if copies:
        shutil.copytree(tmp_path / "root" / "d", tmp_path / "copy")
    else:
        (tmp_path / "copy").mkdir()
    (tmp_path / "root" / "d").rename(tmp_path / "old")
    (tmp_path / "copy").rename(tmp_path / "root" / "d")
    file.write(b"2")
    with pytest.raises(NotFoundError, match="replaced or removed while it was open: write it again"):
        file.close()
    assert not (tmp_path / "root" / "d" / "a").exists()
    assert hidden_names(tmp_path / "root") == []


def test_a_refused_close_leaves_nothing(store: LocalStore, tmp_path: Path) -> None:
    store.put("a", b"first")
    file = store.open_write("a")
    file.write(b"second")
    with pytest.raises(PreconditionError):
        file.close()
    assert hidden_names(tmp_path) == []


def test_an_etag_changes_although_the_content_does_not(store: LocalStore) -> None:
    first = store.put("a", b"same")
    second = store.put("a", b"same")
    assert first.etag != second.etag
    with pytest.raises(PreconditionError):
        store.put("a", b"late", Update(first.etag))


@pytest.mark.parametrize("upload_id", ["", "../../x", "upload-../x", "upload-ABC", "file-", "nonsense"])
def test_upload_ids_are_no_paths(store: LocalStore, upload_id: str) -> None:
    with pytest.raises(NotFoundError):
        store.upload_part("a", upload_id, 1, b"")
    with pytest.raises(NotFoundError):
        store.complete_upload("a", upload_id, [Part(1, "x", 0)])


def test_umask_decides_who_may_read(store: LocalStore, tmp_path: Path) -> None:
    """Unlike files of tempfile: other users' readers have to see the output."""
    before = os.umask(0o022)
    try:
        store.put("d/a", b"1")
        store.complete_upload("d/u", *upload_parts(store, "d/u", 2))
    finally:
        os.umask(before)
    assert (tmp_path / "root/d/a").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "root/d/u").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "root/d").stat().st_mode & 0o777 == 0o755
