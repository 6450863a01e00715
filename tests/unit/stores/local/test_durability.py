"""Local files when power fails or a process dies: bytes before names before success, all or nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import (
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    StorageFullError,
)
from holdfast.stores.base import Create, Part, iter_objects, iter_uploads
from holdfast.stores.local.store import LocalStore
from tests.patience import PATIENCE_S
from tests.unit.stores.local.local_files import hidden_names, upload_parts


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "root"))


# --- durability -------------------------------------------------------------------------------------------------------
@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What reached the disk, in order: fsync with the path that it was for, link and rename with their target."""
    seen: list[tuple[str, str]] = []
    fsync, replace, link, rename = os.fsync, os.replace, os.link, os.rename

    def noted(name: str, function: Callable[..., Any], path: Callable[..., str]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            seen.append((name, Path(path(*arguments)).name))
            return function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noted("sync", fsync, lambda fd: os.readlink(f"/proc/self/fd/{fd}")))
    monkeypatch.setattr(os, "replace", noted("name", replace, lambda _, target: target))
    monkeypatch.setattr(os, "rename", noted("name", rename, lambda _, target: target))
    monkeypatch.setattr(os, "link", noted("name", link, lambda _, target: target))
    return seen


def _is_durable(events: list[tuple[str, str]], name: str, directory: str) -> bool:
    """Bytes before the name, the directory after it (facts: A-29, power loss after a rename)."""
    named = events.index(("name", name))
    synced_before = [path for kind, path in events[:named] if kind == "sync"]
    return (
        any(path.startswith((".holdfast-file-", "1.", "whole.")) for path in synced_before)
        and (
            "sync",
            directory,
        )
        in events[named:]
    )


def test_data_before_names_before_success(store: LocalStore, events: list[tuple[str, str]]) -> None:
    store.put("d/a", b"1")
    assert _is_durable(events, "a", "d")
    assert ("sync", "root") in events  # the entry of the new directory 'd'
    events.clear()
    store.put("d/created", b"1", Create())
    assert _is_durable(events, "created", "d")
    events.clear()
    file = store.open_write("d/streamed")
    file.write(b"1")
    file.close()
    assert _is_durable(events, "streamed", "d")
    for parts in (1, 3):
        events.clear()
        store.complete_upload("d/u", *upload_parts(store, "d/u", parts))
        assert _is_durable(events, "u", "d")
    events.clear()
    store.rename("d/u", "e/renamed")
    named = events.index(("name", "renamed"))
    assert events[named + 1 :] == [("sync", "e"), ("sync", "d")]
    events.clear()
    store.delete("d/a")
    assert events == [("sync", "d")]
    store.put("f/attempt/x/y", b"1")
    store.put("f/stays", b"1")
    events.clear()
    store.rename_dir("f/attempt", "g/task")
    assert events == [("sync", "root"), ("name", "task"), ("sync", "g"), ("sync", "f")]
    events.clear()
    store.rename_dir("g/task", "g/beside")
    assert events == [("name", "beside"), ("sync", "g")]


def test_not_durable_does_not_wait_for_the_disk(tmp_path: Path, events: list[tuple[str, str]]) -> None:
    store = LocalStore(str(tmp_path), durable=False)
    store.put("d/a", b"1")
    store.complete_upload("d/u", *upload_parts(store, "d/u", 2))
    store.rename("d/u", "e/v")
    store.rename_dir("e", "f")
    store.delete("d/a")
    assert [event for event in events if event[0] == "sync"] == []
    assert store.get("f/v") == b"1" * 10 + b"2" * 10


def test_a_disk_that_does_not_confirm_a_name_leaves_the_outcome_unknown(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", b"old")
    store.put("d/f", b"1")
    fsync = os.fsync

    def fail_on_directories(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EIO, "no")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_on_directories)
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
        store.put("a", b"new")
    assert store.get("a") == b"new"
    with pytest.raises(OutcomeUnknownError, match="read before repeating"):
        store.rename_dir("d", "e")
    assert store.get("e/f") == b"1"


# --- the end of processes ---------------------------------------------------------------------------------------------
_DYING_WRITER = """
import os, signal, sys
from holdfast.stores.local.store import LocalStore
store = LocalStore(sys.argv[1])
upload_id = store.create_upload("t/u")
parts = [store.upload_part("t/u", upload_id, n, b"x" * n) for n in (1, 2)]
file = store.open_write("t/f")
file.write(b"half")
print(upload_id, *(part.etag for part in parts), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_uploads_survive_the_death_of_their_process(store: LocalStore, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _DYING_WRITER, str(tmp_path / "root")]
    died = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    assert died.returncode == -9
    upload_id, *etags = died.stdout.split()
    pending = sorted((upload.key, upload.upload_id) for upload in iter_uploads(store, "t/"))
    assert [key for key, _ in pending] == ["t/f", "t/u"]
    assert ("t/u", upload_id) in pending
    parts = [Part(number, etag, number) for number, etag in enumerate(etags, 1)]
    store.complete_upload("t/u", upload_id, parts)
    assert store.get("t/u") == b"xxx"
    [(key, leftover)] = [(upload.key, upload.upload_id) for upload in iter_uploads(store, "t/")]
    with pytest.raises(NotFoundError):
        store.complete_upload(key, leftover, parts)  # what was half written by one process is no upload
    store.abort_upload(key, leftover)
    assert [info.key for info in iter_objects(store, "")] == ["t/u"]
    assert hidden_names(tmp_path) == []


class _Death(BaseException):
    pass


_SYSTEM_CALLS = ("open", "rename", "replace", "link", "unlink", "rmdir", "mkdir", "fsync", "copy_file_range")


@pytest.fixture
def die_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[str]]]:
    """Make the nth system call that changes files raise; the result lists the calls that were made."""

    def arm(nth: int) -> list[str]:
        made: list[str] = []

        def dying(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                made.append(name)
                if len(made) >= nth:
                    raise _Death(name)
                return function(*arguments, **named)

            return call

        monkeypatch.undo()
        for name in _SYSTEM_CALLS:
            monkeypatch.setattr(os, name, dying(name, getattr(os, name)))
        return made

    yield arm
    monkeypatch.undo()


@pytest.mark.parametrize("count", [1, 3])
def test_a_completion_that_dies_anywhere_is_finished_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, die_at: Callable[[int], list[str]], count: int
) -> None:
    """After death at each system call, the next completion publishes, or finds it done; never again after that."""
    whole = b"".join(b"%d" % n * 10 for n in range(1, count + 1))
    published = unpublished = 0
    for nth in range(1, 60):
        store = LocalStore(str(tmp_path / f"{nth}"))
        upload_id, parts = upload_parts(store, "t/u", count)
        made = die_at(nth)
        try:
            store.complete_upload("t/u", upload_id, parts)
            finished = True
        except _Death:
            finished = False
        monkeypatch.undo()
        if finished:
            assert len(made) < nth
            break
        if [info.key for info in iter_objects(store, "")]:
            published += 1
            with pytest.raises(NotFoundError):
                store.complete_upload("t/u", upload_id, parts)
            assert store.get("t/u") == whole
            store.delete("t/u")
            with pytest.raises(NotFoundError):
                store.complete_upload("t/u", upload_id, parts)  # what was deleted does not come back
            assert [info.key for info in iter_objects(store, "")] == []
        else:
            unpublished += 1
            store.complete_upload("t/u", upload_id, parts)
            assert store.get("t/u") == whole
            store.delete("t/u")
        for upload in list(iter_uploads(store, "")):
            store.abort_upload(upload.key, upload.upload_id)
        assert list((tmp_path / f"{nth}").iterdir()) == []
    assert finished
    assert published >= 1
    assert unpublished >= 3


@pytest.mark.parametrize("mode", [Create(), None], ids=["create", "overwrite"])
def test_a_put_that_dies_anywhere_is_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, die_at: Callable[[int], list[str]], mode: Create | None
) -> None:
    finished = False
    for nth in range(1, 40):
        store = LocalStore(str(tmp_path / f"{nth}"))
        if mode is None:
            store.put("t/a", b"old")
        die_at(nth)
        try:
            store.put("t/a", b"new", mode) if mode else store.put("t/a", b"new")
            finished = True
        except _Death:
            pass
        monkeypatch.undo()
        contents = [store.get(info.key) for info in iter_objects(store, "")]
        assert contents in ([b"new"], [b"old"] if mode is None else [])
        if finished:
            break
    assert finished


def test_a_directory_whose_rename_dies_anywhere_is_at_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, die_at: Callable[[int], list[str]]
) -> None:
    """After death at each system call the tree is whole, and the next rename moves it or finds it moved."""
    moved = unmoved = 0
    for nth in range(1, 40):
        store = LocalStore(str(tmp_path / f"{nth}"))
        for key in ("_attempt/0/a", "_attempt/0/b/c"):
            store.put(key, b"1")
        die_at(nth)
        try:
            store.rename_dir("_attempt/0", "new/task")
            finished = True
        except _Death:
            finished = False
        monkeypatch.undo()
        if finished:
            break
        if [info.key for info in iter_objects(store, "")] == ["new/task/a", "new/task/b/c"]:
            moved += 1
            with pytest.raises(NotFoundError):
                store.rename_dir("_attempt/0", "new/task")
        else:
            unmoved += 1
            assert [info.key for info in iter_objects(store, "")] == ["_attempt/0/a", "_attempt/0/b/c"]
            store.rename_dir("_attempt/0", "new/task")
        assert [info.key for info in iter_objects(store, "")] == ["new/task/a", "new/task/b/c"]
    assert finished
    assert moved >= 2
    assert unmoved >= 2


# --- directories of other processes -----------------------------------------------------------------------------------
def test_a_directory_that_another_process_made_is_synced_before_it_is_relied_on(
    tmp_path: Path, events: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have died, or not have come to its own sync: what is acknowledged in the directory would go with it."""
    ours, other = LocalStore(str(tmp_path / "root")), LocalStore(str(tmp_path / "root"), durable=False)
    ours.put("a/known", b"1")
    other.put("a/b/c/made", b"1")
    events.clear()
    ours.put("a/b/c/d", b"1")
    named = events.index(("name", "d"))
    assert {("sync", "c"), ("sync", "b"), ("sync", "a")} <= set(events[named:]), "the last is the one that holds 'b'"
    events.clear()
    ours.put("a/b/c/e", b"1")
    assert [path for kind, path in events if kind == "sync"][1:] == ["c"], "once is enough"


def test_a_directory_that_was_made_again_is_synced_again(tmp_path: Path, events: list[tuple[str, str]]) -> None:
    ours, other = LocalStore(str(tmp_path)), LocalStore(str(tmp_path), durable=False)
    ours.put("a/b/c", b"1")
    (tmp_path / "a" / "b").rename(tmp_path / "moved")
    other.put("a/b/x", b"1")
    events.clear()
    ours.rename("a/b/x", "a/b/y")
    assert ("sync", "a") in events


def test_parts_are_as_durable_as_the_directories_above_them(tmp_path: Path, events: list[tuple[str, str]]) -> None:
    ours, other = LocalStore(str(tmp_path)), LocalStore(str(tmp_path), durable=False)
    other.put("a/b/x", b"1")
    ours.create_upload("a/b/u")
    assert {("sync", "b"), ("sync", "a")} <= set(events)


def test_a_directory_above_that_cannot_be_read_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if Path(path) == tmp_path.parent:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    store = LocalStore(str(tmp_path))
    store.put("a", b"1")
    assert store.get("a") == b"1"


@pytest.mark.parametrize(("parts", "synced"), [(1, "1."), (3, "whole.")])
def test_the_file_that_gets_the_name_of_an_upload_is_synced(
    store: LocalStore, events: list[tuple[str, str]], parts: int, synced: str
) -> None:
    """The bytes of several parts are copied into a new file; that the parts are on the disk does not help it."""
    upload = upload_parts(store, "d/u", parts)
    if parts > 1:
        events.clear()
    store.complete_upload("d/u", *upload)
    named = events.index(("name", "u"))
    assert any(kind == "sync" and path.startswith(synced) for kind, path in events[:named])


def test_a_file_that_could_not_be_closed_is_not_there_at_the_second_try(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are gone: a second call that reported success would lose them silently."""
    file = store.open_write("a")
    file.write(b"content")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StorageFullError):
            file.close()
    with pytest.raises(InvalidRequestError, match="discarded"):
        file.close()
    assert [found.key for found in iter_objects(store, "")] == [] and hidden_names(tmp_path) == []
