"""Check stores that rename a directory in one step."""

from __future__ import annotations

import functools

from holdfast.conformance import equal, refused
from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import iter_uploads, rename
from holdfast.stores.conformance.subject import Subject

_RACERS = 8


def _rename_dir(subject: Subject, source: str, target: str) -> None:
    subject.files.rename_dir(subject.key(source), subject.key(target))


def check_rename_dir(subject: Subject) -> None:
    """Check that a deep tree moves completely, that nothing else moves, and that the target's parents are created."""
    tree = ["a", "b c/d e", "year=2013/mönat=1/名前", "1/2/3/4/5/6/7/8/deep", ".hidden/_under", "100%/a+b"]
    beside = ["task-1-old/a", "task-10/a", "task-1.x", "task"]
    subject.write(*(f"task-1/{name}" for name in tree), *beside)
    _rename_dir(subject, "task-1", "new/é è/task 1")
    kept = {name: name for name in beside}
    subject.holds({f"new/é è/task 1/{name}": f"task-1/{name}" for name in tree} | kept, "after the rename")
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
        subject.holds({name: name for name in names}, f"after the refused rename to {target}")


def check_rename_dir_missing(subject: Subject) -> None:
    """Check that a source with nothing below it is rejected: a missing name, a file, or a mere prefix of a name."""
    subject.write("file", "directory/a", "gone/a")
    subject.store.delete(subject.key("gone/a"))
    for source in ("missing", "file", "file/a", "direct", "directory/a", "gone"):
        refused(NotFoundError, functools.partial(_rename_dir, subject, source, "target"), f"rename of {source}")
    subject.holds({"file": "file", "directory/a": "directory/a"}, "afterwards")


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
    subject.holds({"source/a": "source/a", "file": "file"}, "afterwards")


def check_rename_dir_twice(subject: Subject) -> None:
    """Check that a repeated rename reports a missing source and changes nothing, as after a lost reply."""
    subject.write("source/a")
    _rename_dir(subject, "source", "target")
    again = functools.partial(rename(subject.other).rename_dir, subject.key("source"), subject.key("target"))
    refused(NotFoundError, again, "rename again")
    subject.holds({"target/a": "source/a"}, "afterwards")


def check_rename_dir_after_delete(subject: Subject) -> None:
    """Check that a target is free again after everything below it was deleted."""
    subject.write("source/a", "target/b", "target/c/d")
    subject.store.delete_many([subject.key("target/b"), subject.key("target/c/d")])
    _rename_dir(subject, "source", "target")
    subject.holds({"target/a": "source/a"}, "after the rename")


def check_rename_dir_race_for_source(subject: Subject) -> None:
    """Check that exactly one of several concurrent renames of a directory succeeds, and moves everything in it."""
    names = [f"{n}/{n}" for n in range(20)]
    subject.write(*(f"source/{name}" for name in names))

    def race(racer: int) -> str | None:
        target = f"d{racer}/target"
        try:
            _rename_dir(subject, "source", target)
        except NotFoundError:
            return None
        return target

    winners = [target for target in ThreadRunner(_RACERS).map(race, range(_RACERS)) if target is not None]
    equal(len(winners), 1, "renames that succeed")
    subject.holds({f"{winners[0]}/{name}": f"source/{name}" for name in names}, "after the race")


def check_rename_dir_race_for_target(subject: Subject) -> None:
    """Check that exactly one of several concurrent renames to one target succeeds; the other sources stay complete."""
    sources = [f"attempt-{racer}" for racer in range(_RACERS)]
    subject.write(*(f"{source}/{name}" for source in sources for name in ("a", "b/c")))

    def race(source: str) -> str | None:
        try:
            _rename_dir(subject, source, "new/task")
        except PreconditionError:
            return None
        return source

    winners = [source for source in ThreadRunner(_RACERS).map(race, sources) if source is not None]
    equal(len(winners), 1, "renames that succeed")
    places = {source: "new/task" if source in winners else source for source in sources}
    subject.holds(
        {f"{place}/{name}": f"{source}/{name}" for source, place in places.items() for name in ("a", "b/c")},
        "after the race",
    )


def check_rename_dir_under_writer(subject: Subject) -> None:
    """Check that a file is not published if its directory moved while it was open; its writer gets an error."""
    subject.write("source/a")
    file = subject.files.open_write(subject.key("source/sub/open"))
    file.write(b"1")
    _rename_dir(subject, "source", "target")
    refused(NotFoundError, file.close, "close of a file whose directory moved")
    file.discard()
    subject.holds({"target/a": "source/a"}, "afterwards")


def check_rename_dir_with_uploads(subject: Subject) -> None:
    """Check that pending uploads move as well: only their new key lists and completes them."""
    subject.write("source/a")
    upload_id, parts = subject.uploaded("source/b/c", b"rows")
    only_id, only_parts = subject.uploaded("only/d", b"more")
    _rename_dir(subject, "source", "new/target")
    _rename_dir(subject, "only", "new/pending")
    old, new = subject.key("source/b/c"), subject.key("new/target/b/c")
    pending = sorted((upload.key, upload.upload_id) for upload in iter_uploads(subject.uploads, subject.key("")))
    equal(pending, [(subject.key("new/pending/d"), only_id), (new, upload_id)], "pending uploads")
    refused(NotFoundError, lambda: subject.uploads.complete_upload(old, upload_id, parts), "complete at the old key")
    subject.write("taken/a")
    onto_pending = functools.partial(_rename_dir, subject, "taken", "new/pending")
    refused(PreconditionError, onto_pending, "rename to a directory of pending uploads")
    subject.uploads.complete_upload(new, upload_id, parts)
    equal(subject.other.get(new), b"rows", "content of the upload")
    subject.uploads.complete_upload(subject.key("new/pending/d"), only_id, only_parts)
    equal(subject.listed("new/"), ["new/pending/d", "new/target/a", "new/target/b/c"], "listing")
