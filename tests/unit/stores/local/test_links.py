"""Symbolic links: those on the way to a store are followed, directories inside of it that are links are refused."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.stores.base import iter_objects, iter_uploads
from holdfast.stores.local import tree
from holdfast.stores.local.store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store with a file, and a directory that is a link to one with another file."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep/part").write_bytes(b"12")
    store = LocalStore(str(tmp_path / "root"))
    store.put("m=1/part", b"1")
    (tmp_path / "root/m=2").symlink_to(elsewhere)
    return store


@pytest.mark.parametrize("prefix", ["", "m", "m=2"])
def test_a_listing_that_would_miss_files_is_refused(store: LocalStore, prefix: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"is a symbolic link, which Holdfast does not follow.* key='m=2'"):
        list(iter_objects(store, prefix))
    assert [info.key for info in iter_objects(store, "m=1/")] == ["m=1/part"]


def test_a_listing_that_begins_behind_the_link_sees_all(store: LocalStore) -> None:
    assert [info.key for info in iter_objects(store, "m=2/")] == ["m=2/deep/part"]


def test_uploads_are_listed_without_following_links(store: LocalStore) -> None:
    upload = store.create_upload("m=1/pending")
    assert [one.upload_id for one in iter_uploads(store, "")] == [upload]


_WRITES: dict[str, Callable[[LocalStore], object]] = {
    "put": lambda store: store.put("m=2/deep/new", b"1"),
    "open_write": lambda store: store.open_write("m=2/new"),
    "create_upload": lambda store: store.create_upload("m=2/new/new"),
    "check_targets": lambda store: store.check_targets(["m=2/new"]),
    "rename": lambda store: store.rename("m=1/part", "m=2/new"),
    "rename_dir": lambda store: store.rename_dir("m=1", "m=2/new"),
    "rename_dir of a link": lambda store: store.rename_dir("m=2", "new"),
    "rename_dir below a link": lambda store: store.rename_dir("m=2/deep", "new"),
}


@pytest.mark.parametrize("call", _WRITES)
def test_nothing_is_written_through_a_link(store: LocalStore, tmp_path: Path, call: str) -> None:
    with pytest.raises(InvalidRequestError, match="is a symbolic link"):
        _WRITES[call](store)
    assert sorted(path.name for path in (tmp_path / "elsewhere").rglob("*")) == ["deep", "part"]
    assert sorted(os.listdir(tmp_path / "root")) == ["m=1", "m=2"]


def test_a_link_to_nowhere_is_no_destination(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "root/t").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidRequestError, match="is a symbolic link"):
        store.put("t/a", b"1")
    assert not (tmp_path / "nowhere").exists()


def test_links_to_files_are_files_and_what_leads_nowhere_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    store = LocalStore(str(root))
    store.put("a", b"1")
    (tmp_path / "target").write_bytes(b"12")
    (root / "linked").symlink_to(tmp_path / "target")
    (root / "gone-file").symlink_to(tmp_path / "nowhere/x")
    (root / "itself").symlink_to(root / "itself")
    (root / "device").symlink_to("/dev/null")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket"))  # absolute ones may be too long
        assert [(info.key, info.size_bytes) for info in iter_objects(store, "")] == [("a", 1), ("linked", 2)]
    store.delete("linked")
    assert (tmp_path / "target").exists() and not (root / "linked").is_symlink()


@pytest.mark.parametrize("call", ["put", "check_targets"])
def test_a_mounted_file_system_inside_a_destination_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """C11: after the decision, no file could be renamed there."""
    (tmp_path / "t/mounted").mkdir(parents=True)
    base = str(tmp_path / "t").strip("/")
    store = LocalStore("/", keep=base)
    stat = os.stat

    def other_device(path: str, **options: object) -> os.stat_result:
        found = stat(path, **options)  # type: ignore[call-overload]  # as it was called
        if str(path).endswith("mounted"):
            found = os.stat_result((*found[:2], found.st_dev + 1, *found[3:]))
        assert isinstance(found, os.stat_result)
        return found

    monkeypatch.setattr(tree.os, "stat", other_device)
    calls: dict[str, Callable[[str], object]] = {
        "put": lambda key: store.put(key, b"1"),
        "check_targets": lambda key: store.check_targets([key]),
    }
    with pytest.raises(UnsupportedError, match="write to a directory in which none is mounted"):
        calls[call](f"{base}/mounted/new/a")
    calls[call](f"{base}/other/a")
