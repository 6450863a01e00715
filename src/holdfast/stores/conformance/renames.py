"""Check stores with atomic rename of files, and those that also rename a directory in one step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import cast

from holdfast.conformance import equal, refused
from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError, UnsupportedError
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import CopyStore, Create, Support, as_renaming, iter_uploads
from holdfast.stores.conformance.subject import Subject

_RACERS = 8


# --- files ------------------------------------------------------------------------------------------------------------
def check_open_write(subject: Subject) -> None:
    """Check that a file from `open_write` is invisible until it is closed, and complete from then on."""
    key = subject.key("dir/file")
    file = subject.rename_store.open_write(key)
    equal(file.write(b"one "), 4, "result of write")
    equal(file.write(memoryview(b"two")), 3, "result of write")
    refused(NotFoundError, lambda: subject.other.head(key), "head of an open file")
    equal(subject.listed(), [], "listing")
    file.close()
    file.close()
    file.discard()
    equal(subject.other.get(key), b"one two", "content")
    equal(subject.listed(), ["dir/file"], "listing")


def check_discard(subject: Subject) -> None:
    """Check that discarding a file leaves nothing, and that discarding it again is not an error."""
    file = subject.rename_store.open_write(subject.key("dir/file"))
    file.write(b"1")
    file.discard()
    file.discard()
    equal(subject.listed(), [], "listing")
    refused(NotFoundError, lambda: subject.store.get(subject.key("dir/file")), "get of a discarded file")


def check_open_write_never_replaces(subject: Subject) -> None:
    """Check that closing a file whose key is taken fails, and that the existing file stays."""
    key = subject.key("file")
    file = subject.rename_store.open_write(key)
    file.write(b"late")
    subject.other.put(key, b"first")
    refused(PreconditionError, file.close, "close over a file")
    file.discard()
    equal(subject.store.get(key), b"first", "content")


def check_rename(subject: Subject) -> None:
    """Check that `rename` moves a file with its content, into a new directory or in place of another file."""
    source, target = subject.key("_attempt/a b"), subject.key("new/dir/é")
    subject.store.put(source, b"rows")
    subject.rename_store.rename(source, target)
    equal(subject.other.get(target), b"rows", "content")
    refused(NotFoundError, lambda: subject.store.head(source), "head of the source")
    equal(subject.listed(), ["new/dir/é"], "listing")
    subject.store.put(source, b"newer")
    subject.rename_store.rename(source, target)
    equal(subject.other.get(target), b"newer", "content of a target that was replaced")


def check_rename_twice(subject: Subject) -> None:
    """Check that a repeated rename reports a missing source and changes nothing."""
    subject.store.put(subject.key("a"), b"1")
    subject.rename_store.rename(subject.key("a"), subject.key("b"))
    again = as_renaming(subject.other).rename
    refused(NotFoundError, lambda: again(subject.key("a"), subject.key("b")), "rename again")
    equal(subject.store.get(subject.key("b")), b"1", "content")


def _make_writes_to(subject: Subject, relative: str) -> dict[str, Callable[[], object]]:
    """Return all calls that would create a file at a key, by name. Requires that an object 'spare' exists."""
    key, store, capabilities = subject.key(relative), subject.store, subject.store.capabilities
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: store.put(key, b"1"),
        "open_write": lambda: subject.rename_store.open_write(key),
        "rename": lambda: subject.rename_store.rename(subject.key("spare"), key),
        "check_targets": lambda: subject.rename_store.check_targets([subject.key("free"), key]),
    }
    if capabilities.conditional_put is not Support.NO:
        calls["create"] = lambda: store.put(key, b"1", Create())
    if capabilities.multipart is not None:
        calls["create_upload"] = lambda: subject.multipart_store.create_upload(key)
    if capabilities.copy:
        calls["copy"] = lambda: cast("CopyStore", store).copy(store.head(subject.key("spare")), key)
    return calls


def check_path_that_is_a_file(subject: Subject) -> None:
    """Check that no call writes below a file, and that reads and deletes there find nothing."""
    subject.write("file", "spare")
    for relative in ("file/a", "file/a/b"):
        for name, call in _make_writes_to(subject, relative).items():
            refused(InvalidRequestError, call, f"{name} {relative}")
        refused(NotFoundError, functools.partial(subject.store.get, subject.key(relative)), f"get {relative}")
        subject.store.delete(subject.key(relative))
    itself = functools.partial(subject.rename_store.rename, subject.key("file"), subject.key("file/a"))
    refused(InvalidRequestError, itself, "rename of a file below itself")
    subject.require_exact_contents({"file": "file", "spare": "spare"}, "afterwards")


def check_path_that_is_a_directory(subject: Subject) -> None:
    """Check that no call replaces a directory with a file, not even by renaming the only file in it."""
    subject.write("dir/sub/a", "spare")
    for relative in ("dir", "dir/sub"):
        for name, call in _make_writes_to(subject, relative).items():
            refused(InvalidRequestError, call, f"{name} {relative}")
        refused(NotFoundError, functools.partial(subject.store.get, subject.key(relative)), f"get {relative}")
        subject.store.delete(subject.key(relative))
    upwards = functools.partial(subject.rename_store.rename, subject.key("dir/sub/a"), subject.key("dir/sub"))
    refused(InvalidRequestError, upwards, "rename of a file to its directory")
    subject.require_exact_contents({"dir/sub/a": "dir/sub/a", "spare": "spare"}, "afterwards")
    subject.store.delete(subject.key("dir/sub/a"))
    subject.write("dir")
    subject.require_exact_contents({"dir": "dir", "spare": "spare"}, "when the directory is empty")


def check_unsupported_rename_dir(subject: Subject) -> None:
    """Check that a store without atomic rename of directories raises `UnsupportedError` and moves nothing."""
    subject.write("a/b")
    refused(UnsupportedError, lambda: subject.rename_store.rename_dir(subject.key("a"), subject.key("c")), "rename_dir")
    subject.require_exact_contents({"a/b": "a/b"}, "afterwards")


def check_free_targets(subject: Subject) -> None:
    """Check that `check_targets` accepts targets that a rename would create or replace, and creates nothing."""
    subject.write("dir/a", "b")
    subject.rename_store.check_targets([subject.key(relative) for relative in ("new/dir/a", "dir/b", "dir/a", "b")])
    subject.rename_store.check_targets([])
    subject.require_exact_contents({"dir/a": "dir/a", "b": "b"}, "afterwards")


def check_rename_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent renames of a file succeeds."""
    subject.store.put(subject.key("a"), b"1")
    winner = _race_moves(lambda target: subject.rename_store.rename(subject.key("a"), subject.key(target)))
    equal(subject.listed(), [winner], "listing")


def _race_moves(move: Callable[[str], None]) -> str:
    """Let several threads move the same source at the same time; return the target of the one that succeeds."""

    def move_as_racer(racer: int) -> str | None:
        target = f"d{racer}/target"
        try:
            move(target)
        except NotFoundError:
            return None
        return target

    winners = [target for target in ThreadRunner(_RACERS).map(move_as_racer, range(_RACERS)) if target is not None]
    equal(len(winners), 1, "renames that succeed")
    return winners[0]


# --- directories ------------------------------------------------------------------------------------------------------
def _rename_dir(subject: Subject, source: str, target: str) -> None:
    subject.rename_store.rename_dir(subject.key(source), subject.key(target))


def check_rename_dir(subject: Subject) -> None:
    """Check that a deep tree moves completely, that nothing else moves, and that the target's parents are created."""
    tree = ["a", "b c/d e", "year=2013/mönat=1/名前", "1/2/3/4/5/6/7/8/deep", ".hidden/_under", "100%/a+b"]
    beside = ["task-1-old/a", "task-10/a", "task-1.x", "task"]
    subject.write(*(f"task-1/{name}" for name in tree), *beside)
    _rename_dir(subject, "task-1", "new/é è/task 1")
    kept = {name: name for name in beside}
    subject.require_exact_contents(
        {f"new/é è/task 1/{name}": f"task-1/{name}" for name in tree} | kept, "after the rename"
    )
    refused(NotFoundError, lambda: subject.other.head(subject.key("task-1/a")), "head below the source")
    equal(subject.listed("task-1/"), [], "listing of the source")
    subject.write("task-1/again")
    _rename_dir(subject, "task-1", "new/task 2")
    equal(subject.listed("new/task 2/"), ["new/task 2/again"], "listing of the second target")


def check_rename_dir_target_exists(subject: Subject) -> None:
    """Check that a target that is a file or a directory with content is rejected, and nothing moves."""
    names = ["source/a", "source/b/c", "file", "full/deep/x"]
    subject.write(*names)
    for source, target in (("source", "file"), ("source", "full"), ("source", "full/deep"), ("source/b", "source")):
        call = functools.partial(_rename_dir, subject, source, target)
        refused(PreconditionError, call, f"rename of {source} to {target}")
        subject.require_exact_contents({name: name for name in names}, f"after the refused rename to {target}")
    subject.store.delete(subject.key("full/deep/x"))
    _rename_dir(subject, "source", "full")
    subject.require_exact_contents(
        {"full/a": "source/a", "full/b/c": "source/b/c", "file": "file"}, "when the target is free again"
    )


def check_rename_dir_missing(subject: Subject) -> None:
    """Check that a source with nothing below it is rejected: a missing name, a file, or a mere prefix of a name."""
    subject.write("file", "directory/a", "gone/a")
    subject.store.delete(subject.key("gone/a"))
    for source in ("missing", "file", "file/a", "direct", "directory/a", "gone"):
        refused(NotFoundError, functools.partial(_rename_dir, subject, source, "target"), f"rename of {source}")
    subject.require_exact_contents({"file": "file", "directory/a": "directory/a"}, "afterwards")


def check_rename_dir_bad_keys(subject: Subject) -> None:
    """Check that a directory cannot move into itself or below a file, and that a trailing slash is rejected."""
    subject.write("source/a", "file")
    for source, target in (
        ("source", "source"),
        ("source", "source/b"),
        ("source", "source/a/b"),
        ("source", "file/x"),
        ("source", "file/x/y"),
        ("source/", "target"),
        ("source", "target/"),
    ):
        call = functools.partial(_rename_dir, subject, source, target)
        refused(InvalidRequestError, call, f"rename of {source} to {target}")
    subject.require_exact_contents({"source/a": "source/a", "file": "file"}, "afterwards")


def check_rename_dir_twice(subject: Subject) -> None:
    """Check that a repeated rename reports a missing source and changes nothing, as after a lost reply."""
    subject.write("source/a")
    _rename_dir(subject, "source", "target")
    again = functools.partial(as_renaming(subject.other).rename_dir, subject.key("source"), subject.key("target"))
    refused(NotFoundError, again, "rename again")
    subject.require_exact_contents({"target/a": "source/a"}, "afterwards")


def check_rename_dir_race_for_source(subject: Subject) -> None:
    """Check that exactly one of several concurrent renames of a directory succeeds, and moves everything in it."""
    names = [f"{n}/{n}" for n in range(20)]
    subject.write(*(f"source/{name}" for name in names))
    winner = _race_moves(lambda target: _rename_dir(subject, "source", target))
    subject.require_exact_contents({f"{winner}/{name}": f"source/{name}" for name in names}, "after the race")


def check_rename_dir_race_for_target(subject: Subject) -> None:
    """Check that exactly one of several concurrent renames to one target succeeds; the other sources stay complete."""
    sources = [f"attempt-{racer}" for racer in range(_RACERS)]
    subject.write(*(f"{source}/{name}" for source in sources for name in ("a", "b/c")))

    def rename_as_racer(source: str) -> str | None:
        try:
            _rename_dir(subject, source, "new/task")
        except PreconditionError:
            return None
        return source

    winners = [source for source in ThreadRunner(_RACERS).map(rename_as_racer, sources) if source is not None]
    equal(len(winners), 1, "renames that succeed")
    places = {source: "new/task" if source in winners else source for source in sources}
    subject.require_exact_contents(
        {f"{place}/{name}": f"{source}/{name}" for source, place in places.items() for name in ("a", "b/c")},
        "after the race",
    )


def check_rename_dir_under_writer(subject: Subject) -> None:
    """Check that a file is not published if its directory moved while it was open; its writer gets an error."""
    subject.write("source/a")
    file = subject.rename_store.open_write(subject.key("source/sub/open"))
    file.write(b"1")
    _rename_dir(subject, "source", "target")
    refused(NotFoundError, file.close, "close of a file whose directory moved")
    file.discard()
    subject.require_exact_contents({"target/a": "source/a"}, "afterwards")


def check_rename_dir_with_uploads(subject: Subject) -> None:
    """Check that pending uploads move as well: only their new key lists and completes them."""
    subject.write("source/a")
    upload_id, parts = subject.start_upload_of_one_part("source/b/c", b"rows")
    only_id, only_parts = subject.start_upload_of_one_part("only/d", b"more")
    _rename_dir(subject, "source", "new/target")
    _rename_dir(subject, "only", "new/pending")
    old, new = subject.key("source/b/c"), subject.key("new/target/b/c")
    pending = sorted(
        (upload.key, upload.upload_id) for upload in iter_uploads(subject.multipart_store, subject.key(""))
    )
    equal(pending, [(subject.key("new/pending/d"), only_id), (new, upload_id)], "pending uploads")
    refused(
        NotFoundError, lambda: subject.multipart_store.complete_upload(old, upload_id, parts), "complete at the old key"
    )
    subject.write("taken/a")
    onto_pending = functools.partial(_rename_dir, subject, "taken", "new/pending")
    refused(PreconditionError, onto_pending, "rename to a directory of pending uploads")
    subject.multipart_store.complete_upload(new, upload_id, parts)
    equal(subject.other.get(new), b"rows", "content of the upload")
    subject.multipart_store.complete_upload(subject.key("new/pending/d"), only_id, only_parts)
    equal(subject.listed("new/"), ["new/pending/d", "new/target/a", "new/target/b/c"], "listing")
