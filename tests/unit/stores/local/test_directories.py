"""Directories of local files that are renamed: what is in the way, what moves along, links."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.errors import (
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
    UnsupportedError,
)
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import Create, iter_objects, iter_uploads
from holdfast.stores.local.store import LocalStore
from tests.unit.stores.local.local_files import hidden_names


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "root"))


def test_an_empty_directory_is_nothing(store: LocalStore, tmp_path: Path) -> None:
    """To a store, directories are names of files: an empty one is neither moved nor in the way."""
    store.put("a/b", b"1")
    (tmp_path / "root/empty").mkdir()
    with pytest.raises(NotFoundError):
        store.rename_dir("empty", "c")
    store.rename_dir("a", "empty")
    assert [info.key for info in iter_objects(store, "")] == ["empty/b"]


def test_a_directory_with_a_key_that_only_s3_refuses_moves(store: LocalStore) -> None:
    deep = "/".join(["x" * 200] * 6)
    store.put(f"{deep}/a", b"1")
    store.rename_dir(deep, deep.replace("x", "y"))
    assert store.get(f"{deep.replace('x', 'y')}/a") == b"1"


def test_a_directory_with_the_longest_name_moves(store: LocalStore) -> None:
    longest = ["x" * 255, "y" * 255]
    store.put(f"{longest[0]}/a", b"1")
    store.rename_dir(*longest)
    assert store.get(f"{longest[1]}/a") == b"1"
    with pytest.raises(InvalidRequestError, match="255 bytes"):
        store.rename_dir(longest[1], "z" * 256)


def test_a_directory_with_only_unfinished_files_moves_and_is_in_the_way(store: LocalStore, tmp_path: Path) -> None:
    """Nothing that a dead process left is lost, or covered: it is listed, and dropped where it is now."""
    left = store.open_write("source/left")
    store.put("other/a", b"1")
    store.rename_dir("source", "target")
    [upload] = iter_uploads(store, "target/")
    assert upload.key == "target/left"
    with pytest.raises(PreconditionError):
        store.rename_dir("other", "target")
    left.discard()  # its writer does not know where it went
    assert len(hidden_names(tmp_path)) == 1
    store.abort_upload(upload.key, upload.upload_id)
    assert hidden_names(tmp_path) == []
    store.rename_dir("other", "target")
    assert [info.key for info in iter_objects(store, "")] == ["target/a"]


def test_writers_of_other_directories_survive_renames(store: LocalStore) -> None:
    """Directories above source and target are made here and pruned there, at once."""

    def work(worker: int) -> None:
        for number in range(40):
            store.put(f"p/q/{worker}/{number}/a", b"1", Create())
            store.rename_dir(f"p/q/{worker}/{number}", f"r/s/{worker}")
            store.delete(f"r/s/{worker}/a")

    list(ThreadRunner(6).map(work, range(6)))
    assert [info.key for info in iter_objects(store, "")] == []


def test_a_move_to_another_file_system_is_not_supported(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    store.put("a/b", b"1")
    for call in ("rename", "replace"):
        monkeypatch.setattr(os, call, fail)
    for move in (lambda: store.rename_dir("a", "c"), lambda: store.rename("a/b", "c")):
        with pytest.raises(UnsupportedError, match="to another file system"):
            move()
    monkeypatch.undo()
    assert [info.key for info in iter_objects(store, "")] == ["a/b"]
