"""Check stores with atomic rename."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import cast

from holdfast.conformance import equal, refused
from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError, UnsupportedError
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import CopyStore, Create, Support, rename
from holdfast.stores.conformance.subject import Subject


def check_open_write(subject: Subject) -> None:
    """Check that a file is invisible until it is closed, and then complete."""
    key = subject.key("dir/file")
    file = subject.files.open_write(key)
    equal(file.write(b"one "), 4, "result of write")
    equal(file.write(memoryview(b"two")), 3, "result of write")
    refused(NotFoundError, lambda: subject.other.head(key), "head of an open file")
    equal(subject.listed(), [], "listing")
    file.close()
    file.close()
    file.discard()
    equal(subject.other.get(key), b"one two", "content")
    equal(subject.listed(), ["dir/file"], "listing")


def check_open_write_empty(subject: Subject) -> None:
    """Check that a file may be empty."""
    subject.files.open_write(subject.key("file")).close()
    equal(subject.store.get(subject.key("file")), b"", "content")


def check_discard(subject: Subject) -> None:
    """Check that discarding a file leaves nothing, and that discarding it again is not an error."""
    file = subject.files.open_write(subject.key("dir/file"))
    file.write(b"1")
    file.discard()
    file.discard()
    equal(subject.listed(), [], "listing")
    refused(NotFoundError, lambda: subject.store.get(subject.key("dir/file")), "get of a discarded file")


def check_open_write_never_replaces(subject: Subject) -> None:
    """Check that closing a file whose key is taken fails, and that the existing file stays."""
    key = subject.key("file")
    file = subject.files.open_write(key)
    file.write(b"late")
    subject.other.put(key, b"first")
    refused(PreconditionError, file.close, "close over a file")
    file.discard()
    equal(subject.store.get(key), b"first", "content")


def check_rename(subject: Subject) -> None:
    """Check that a file moves with its content, and that the target's directory is created."""
    source, target = subject.key("_attempt/a b"), subject.key("new/dir/é")
    subject.store.put(source, b"rows")
    subject.files.rename(source, target)
    equal(subject.other.get(target), b"rows", "content")
    refused(NotFoundError, lambda: subject.store.head(source), "head of the source")
    equal(subject.listed(), ["new/dir/é"], "listing")


def check_rename_replaces(subject: Subject) -> None:
    """Check that a rename replaces a file at the target."""
    subject.store.put(subject.key("a"), b"new")
    subject.store.put(subject.key("b"), b"old")
    subject.files.rename(subject.key("a"), subject.key("b"))
    equal(subject.other.get(subject.key("b")), b"new", "content")
    equal(subject.listed(), ["b"], "listing")


def check_rename_twice(subject: Subject) -> None:
    """Check that a repeated rename reports a missing source and changes nothing."""
    subject.store.put(subject.key("a"), b"1")
    subject.files.rename(subject.key("a"), subject.key("b"))
    again = rename(subject.other).rename
    refused(NotFoundError, lambda: again(subject.key("a"), subject.key("b")), "rename again")
    equal(subject.store.get(subject.key("b")), b"1", "content")


def _writes_to(subject: Subject, relative: str) -> dict[str, Callable[[], object]]:
    """Return all calls that would create a file at a key, by name. Requires that an object 'spare' exists."""
    key, store, capabilities = subject.key(relative), subject.store, subject.store.capabilities
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: store.put(key, b"1"),
        "open_write": lambda: subject.files.open_write(key),
        "rename": lambda: subject.files.rename(subject.key("spare"), key),
        "check_targets": lambda: subject.files.check_targets([subject.key("free"), key]),
    }
    if capabilities.conditional_put is not Support.NO:
        calls["create"] = lambda: store.put(key, b"1", Create())
    if capabilities.multipart is not None:
        calls["create_upload"] = lambda: subject.uploads.create_upload(key)
    if capabilities.copy:
        calls["copy"] = lambda: cast("CopyStore", store).copy(store.head(subject.key("spare")), key)
    return calls


def check_path_that_is_a_file(subject: Subject) -> None:
    """Check that no call writes below a file, and that reads and deletes there find nothing."""
    subject.write("file", "spare")
    for relative in ("file/a", "file/a/b"):
        for name, call in _writes_to(subject, relative).items():
            refused(InvalidRequestError, call, f"{name} {relative}")
        refused(NotFoundError, functools.partial(subject.store.get, subject.key(relative)), f"get {relative}")
        subject.store.delete(subject.key(relative))
    itself = functools.partial(subject.files.rename, subject.key("file"), subject.key("file/a"))
    refused(InvalidRequestError, itself, "rename of a file below itself")
    subject.holds({"file": "file", "spare": "spare"}, "afterwards")


def check_path_that_is_a_directory(subject: Subject) -> None:
    """Check that no call replaces a directory with a file, not even by renaming the only file in it."""
    subject.write("dir/sub/a", "spare")
    for relative in ("dir", "dir/sub"):
        for name, call in _writes_to(subject, relative).items():
            refused(InvalidRequestError, call, f"{name} {relative}")
        refused(NotFoundError, functools.partial(subject.store.get, subject.key(relative)), f"get {relative}")
        subject.store.delete(subject.key(relative))
    upwards = functools.partial(subject.files.rename, subject.key("dir/sub/a"), subject.key("dir/sub"))
    refused(InvalidRequestError, upwards, "rename of a file to its directory")
    subject.holds({"dir/sub/a": "dir/sub/a", "spare": "spare"}, "afterwards")
    subject.store.delete(subject.key("dir/sub/a"))
    subject.write("dir")
    subject.holds({"dir": "dir", "spare": "spare"}, "when the directory is empty")


def check_rename_dir_unsupported(subject: Subject) -> None:
    """Check that a store without atomic rename of directories raises `UnsupportedError` and moves nothing."""
    subject.write("a/b")
    refused(UnsupportedError, lambda: subject.files.rename_dir(subject.key("a"), subject.key("c")), "rename_dir")
    subject.holds({"a/b": "a/b"}, "afterwards")


def check_free_targets(subject: Subject) -> None:
    """Check that `check_targets` accepts targets that a rename would create or replace, and creates nothing."""
    subject.write("dir/a", "b")
    subject.files.check_targets([subject.key(relative) for relative in ("new/dir/a", "dir/b", "dir/a", "b")])
    subject.files.check_targets([])
    subject.holds({"dir/a": "dir/a", "b": "b"}, "afterwards")


def check_rename_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent renames of a file succeeds."""
    subject.store.put(subject.key("a"), b"1")

    def race(racer: int) -> str | None:
        target = f"d{racer}/b"
        try:
            subject.files.rename(subject.key("a"), subject.key(target))
        except NotFoundError:
            return None
        return target

    winners = [target for target in ThreadRunner(8).map(race, range(8)) if target is not None]
    equal(len(winners), 1, "renames that succeed")
    equal(subject.listed(), winners, "listing")
