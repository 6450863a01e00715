"""Symbolic links and other odd entries of a directory, as Spark's listing on a local disk treats them."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError, StorageFullError, UnavailableError
from holdfast.stores.base import iter_objects, iter_uploads
from holdfast.stores.local import links
from holdfast.stores.local.store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / "root").mkdir()
    return LocalStore(str(tmp_path / "root"))


def _keys(store: LocalStore, prefix: str = "", start_after: str = "") -> list[str]:
    return [info.key for info in iter_objects(store, prefix, start_after)]


# --- listing ----------------------------------------------------------------------------------------------------------
def test_links_to_directories_and_files_are_followed(store: LocalStore, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep/part").write_bytes(b"12")
    store.put("m=1/part", b"1")
    store.put("m=3/part", b"1")
    (tmp_path / "root/m=2").symlink_to(elsewhere)
    (tmp_path / "root/m=1/link").symlink_to(elsewhere / "deep/part")
    assert _keys(store) == ["m=1/link", "m=1/part", "m=2/deep/part", "m=3/part"]
    assert _keys(store, "m=2/") == ["m=2/deep/part"]
    assert _keys(store, start_after="m=1/part") == ["m=2/deep/part", "m=3/part"]
    assert store.head("m=2/deep/part").size_bytes == store.head("m=1/link").size_bytes == 2


def test_what_leads_nowhere_or_holds_no_bytes_of_its_own_is_left_out(store: LocalStore, tmp_path: Path) -> None:
    root = tmp_path / "root"
    store.put("a", b"1")
    (root / "gone-file").symlink_to(tmp_path / "nowhere/x")
    (root / "itself").symlink_to(root / "itself")
    (root / "device").symlink_to("/dev/null")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket"))  # absolute ones may be too long
        assert _keys(store) == ["a"]


def test_circles_of_links_are_gone_through_once(store: LocalStore, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (tmp_path / "b/sub").mkdir(parents=True)
    (tmp_path / "b/sub/part").write_bytes(b"1")
    store.put("a/part", b"1")
    (root / "a/self").symlink_to(".")
    (root / "a/up").symlink_to(tmp_path)
    (root / "a/b").symlink_to(tmp_path / "b")
    (tmp_path / "b/sub/back").symlink_to(root / "a")  # a circle of two links
    (tmp_path / "b/sub/above").symlink_to(tmp_path)  # behind it the way to the circle holds no link
    first = store.list_page("", "", 3, None)  # more would have no end if one circle were gone through
    assert [info.key for info in first.objects] == ["a/b/sub/part", "a/part"]
    upload = store.create_upload("a/pending")
    assert _keys(store) == ["a/b/sub/part", "a/part"]
    assert [one.upload_id for one in iter_uploads(store, "")] == [upload]
    with pytest.raises(InvalidRequestError, match="points to a parent directory"):
        store.delete("a/b/sub/back/part")
    with pytest.raises(InvalidRequestError, match="points to a parent directory"):
        store.delete("a/up/root/a/part")
    assert _keys(store) == ["a/b/sub/part", "a/part"]


def test_uploads_behind_links_are_found(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root/m=2").symlink_to(tmp_path / "elsewhere")
    upload = store.create_upload("m=2/part")
    assert [(one.key, one.upload_id) for one in iter_uploads(store, "m=2/")] == [("m=2/part", upload)]
    store.abort_upload("m=2/part", upload)
    assert os.listdir(tmp_path / "elsewhere") == []


# --- deleting ---------------------------------------------------------------------------------------------------------
def test_only_what_listings_show_is_deleted_behind_links(store: LocalStore, tmp_path: Path) -> None:
    """C7: the file goes, for the reader sees it in the table, with the directory that it empties; nothing else does."""
    deep = tmp_path / "elsewhere/day=1"
    deep.mkdir(parents=True)
    (deep / "part").write_bytes(b"1")
    (tmp_path / "elsewhere/notes").write_bytes(b"1")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/part").write_bytes(b"1")
    (tmp_path / "root/m=2").symlink_to(tmp_path / "empty")
    (tmp_path / "target").write_bytes(b"1")
    (tmp_path / "root/m=1").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root/linked").symlink_to(tmp_path / "target")
    store.delete_many(["m=1/day=1/part", "m=2/part", "linked"])
    assert os.listdir(tmp_path / "elsewhere") == ["notes"]
    assert (tmp_path / "root/m=2").is_symlink() and (tmp_path / "empty").is_dir()
    assert (tmp_path / "elsewhere/notes").exists()
    assert (tmp_path / "target").exists()
    assert _keys(store) == ["m=1/notes"]


# --- moving to another file system ------------------------------------------------------------------------------------
@pytest.fixture
def elsewhere(store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on another file system, and ``m=1`` a link to it."""
    found = tmp_path / "elsewhere"
    found.mkdir()
    (tmp_path / "root/m=1").symlink_to(found)
    replace = os.replace

    def replace_within(source: str, target: str) -> None:
        if os.path.realpath(os.path.dirname(source)) != os.path.realpath(os.path.dirname(target)):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_within)
    return found


def test_a_move_waits_for_another_one_of_the_same_file_but_not_for_ever(
    store: LocalStore, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is frozen in the middle of a copy."""
    store.put("hidden/part", b"rows")
    monkeypatch.setattr(links, "_COPY_S", 0.05)
    with (elsewhere.parent / "root/hidden/part").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UnavailableError, match="has had this locked"):
            store.rename("hidden/part", "m=1/part")
    store.rename("hidden/part", "m=1/part")
    assert store.get("m=1/part") == b"rows"


def test_a_file_is_moved_to_another_file_system(store: LocalStore, elsewhere: Path) -> None:
    """As Spark's own local file system does; after the decision it is too late to refuse."""
    store.put("hidden/part", b"rows")
    before = store.head("hidden/part")
    store.rename("hidden/part", "m=1/part")
    assert _keys(store) == ["m=1/part"]
    assert os.listdir(elsewhere) == ["part"]
    assert store.get("m=1/part") == b"rows"
    assert store.head("m=1/part").modified_at_s == before.modified_at_s
    with pytest.raises(NotFoundError):
        store.rename("hidden/part", "m=1/part")


@pytest.mark.parametrize("step", ["unlink", "copy_file_range"])
def test_a_move_to_another_file_system_that_died_is_repeated(
    store: LocalStore, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class Died(BaseException):
        pass

    def die(*_arguments: object, **_options: object) -> None:
        raise Died

    store.put("hidden/part", b"rows")
    with monkeypatch.context() as patched:
        patched.setattr(os, step, die)
        with pytest.raises(Died):
            store.rename("hidden/part", "m=1/part")
    assert store.get("hidden/part") == b"rows"
    store.rename("hidden/part", "m=1/part")
    assert _keys(store) == ["m=1/part"]
    assert os.listdir(elsewhere) == ["part"]


def test_a_full_disk_on_the_other_side_leaves_the_file(
    store: LocalStore, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("hidden/part", b"rows")

    def full(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "copy_file_range", full)
        with pytest.raises(StorageFullError):
            store.rename("hidden/part", "m=1/part")
    assert _keys(store) == ["hidden/part"]
    assert os.listdir(elsewhere) == []


def test_who_comes_late_does_not_publish_again(
    store: LocalStore, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C6: a twin opened the file before it was moved; by then a later job may have deleted the target."""
    store.put("hidden/part", b"rows")
    opened = os.open

    def open_late(path: str, flags: int, *more: int) -> int:
        descriptor = opened(path, flags, *more)
        if str(path).endswith("hidden/part"):
            monkeypatch.setattr(os, "open", opened)
            store.rename("hidden/part", "m=1/part")
            store.delete("m=1/part")
        return descriptor

    monkeypatch.setattr(os, "open", open_late)
    with pytest.raises(NotFoundError):
        store.rename("hidden/part", "m=1/part")
    assert _keys(store) == []
    assert os.listdir(elsewhere) == []


# --- making -----------------------------------------------------------------------------------------------------------
def test_a_link_to_nowhere_is_no_destination(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "root/t").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidRequestError):
        store.put("t/a", b"1")
    assert not (tmp_path / "nowhere").exists()
