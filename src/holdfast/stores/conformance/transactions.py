"""Check that a store makes many changes in one step: `TransactionalStore.apply`."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.conformance import equal, expect
from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from holdfast.stores.base import (
    Change,
    Complete,
    Create,
    Delete,
    ObjectStore,
    Overwrite,
    Part,
    Put,
    Require,
    RequireEmpty,
    Update,
    as_transactional,
    iter_uploads,
    multipart,
)
from holdfast.stores.conformance.objects import race_puts
from holdfast.stores.conformance.subject import Subject

_MANY = 1500
"""More than fit on one page of a listing, or into one call of `delete_many`."""


def check_apply(subject: Subject) -> None:
    """Check that `apply` makes a put, completes an upload and deletes an object, and that conditions change nothing."""
    subject.write("old", "kept")
    as_transactional(subject.store).apply([])
    upload_id, parts = subject.start_upload_of_one_part("data/new", b"uploaded")
    as_transactional(subject.store).apply(
        [
            Put(subject.key("log/1"), b"decision", Create()),
            Complete(subject.key("data/new"), upload_id, tuple(parts)),
            Delete(subject.key("old")),
            Require(subject.key("kept")),
            Require(subject.key("old"), subject.store.head(subject.key("old")).etag),
            RequireEmpty(subject.key("empty/")),
        ]
    )
    equal(subject.listed(), ["data/new", "kept", "log/1"], "listing after all changes")
    equal(subject.other.get(subject.key("log/1")), b"decision", "content of the put object")
    equal(subject.other.get(subject.key("data/new")), b"uploaded", "content of the completed upload")
    equal(_list_pending_uploads(subject), [], "pending uploads")
    found = subject.other.head(subject.key("data/new"))
    equal(found.size_bytes, 8, "size of the completed upload")
    subject.store.put(subject.key("data/new"), b"updated", Update(found.etag))  # the etag is a usable one


def check_apply_replaces(subject: Subject) -> None:
    """Check that a put and a completed upload in `apply` replace an object if their modes allow it."""
    subject.write("put", "upload", "updated")
    etag = subject.store.head(subject.key("updated")).etag
    upload_id, parts = subject.start_upload_of_one_part("upload", b"second")
    as_transactional(subject.store).apply(
        [
            Put(subject.key("put"), b"second"),
            Put(subject.key("updated"), b"second", Update(etag)),
            Complete(subject.key("upload"), upload_id, tuple(parts), Overwrite()),
        ]
    )
    for relative in ("put", "upload", "updated"):
        equal(subject.other.get(subject.key(relative)), b"second", f"content of {relative}")


def check_apply_delete(subject: Subject) -> None:
    """Check that a delete with an etag spares an object with another etag, and accepts a missing object."""
    subject.write("same", "other")
    same, other = (subject.store.head(subject.key(name)).etag for name in ("same", "other"))
    subject.store.put(subject.key("other"), b"third")
    changes = [Delete(subject.key("same"), same), Delete(subject.key("other"), other), Delete(subject.key("missing"))]
    as_transactional(subject.store).apply([*changes, Delete(subject.key("gone"), other)])
    equal(subject.listed(), ["other"], "listing")
    equal(subject.other.get(subject.key("other")), b"third", "content")


def check_apply_refused(subject: Subject) -> None:
    """Check that `apply` changes nothing if one condition does not hold, and that the error names the key."""
    subject.write("there", "victim")
    etag = subject.store.head(subject.key("victim")).etag
    upload_id, parts = subject.start_upload_of_one_part("there", b"uploaded")
    refused: Sequence[Change] = (
        Put(subject.key("there"), b"put", Create()),
        Put(subject.key("there"), b"put", Update(etag)),
        Put(subject.key("missing"), b"put", Update(etag)),
        Complete(subject.key("there"), upload_id, tuple(parts)),
        Require(subject.key("missing")),
        Require(subject.key("there"), etag),
        RequireEmpty(f"{subject.prefix}/"),
    )
    for change in refused:
        _require_refusal(subject, PreconditionError, change)
    equal(_list_pending_uploads(subject), [(subject.key("there"), upload_id)], "pending uploads")
    as_transactional(subject.store).apply([Complete(subject.key("there"), upload_id, tuple(parts), Overwrite())])
    equal(subject.other.get(subject.key("there")), b"uploaded", "content of the upload")


def check_apply_impossible(subject: Subject) -> None:
    """Check that `apply` changes nothing if one change is impossible: a missing upload, a wrong part, a key twice.

    The order of the changes must not matter.
    """
    subject.write("victim")
    upload_id, parts = subject.start_upload_of_one_part("upload", b"uploaded")
    ended, its_parts = subject.start_upload_of_one_part("ended", b"aborted")
    subject.multipart_store.abort_upload(subject.key("ended"), ended)
    wrong = (Part(1, "0123456789abcdef0123456789abcdef", 8),)
    _require_refusal(subject, NotFoundError, Complete(subject.key("ended"), ended, tuple(its_parts)))
    _require_refusal(subject, NotFoundError, Complete(subject.key("elsewhere"), upload_id, tuple(parts)))
    _require_refusal(subject, InvalidRequestError, Complete(subject.key("upload"), upload_id, wrong))
    _require_refusal(subject, InvalidRequestError, Complete(subject.key("upload"), upload_id, ()))
    _require_refusal(subject, InvalidRequestError, Put(subject.key("first"), b"again"))
    _require_refusal(subject, InvalidRequestError, Put("", b""))
    as_transactional(subject.store).apply([Complete(subject.key("upload"), upload_id, tuple(parts))])
    equal(subject.listed(), ["upload", "victim"], "listing after the upload was completed")


def check_apply_file_and_directory(subject: Subject) -> None:
    """Check that `apply` puts no file below a file or in place of a directory, even if the call deletes either."""
    subject.write("victim", "file", "dir/sub/only")
    for gone, made in (("file", "file/a"), ("file", "file/a/b"), ("dir/sub/only", "dir"), ("dir/sub/only", "dir/sub")):
        put = Put(subject.key(made), b"1")
        _require_refusal(subject, InvalidRequestError, put)
        _require_refusal(subject, InvalidRequestError, Delete(subject.key(gone)), put)
        _require_refusal(subject, InvalidRequestError, put, Delete(subject.key(gone)))
    for clash in (("new", "new/a"), ("new/a", "new")):
        _require_refusal(subject, InvalidRequestError, *(Put(subject.key(name), b"1") for name in clash))
    as_transactional(subject.store).apply([Delete(subject.key("file")), Delete(subject.key("dir/sub/only"))])
    as_transactional(subject.store).apply([Put(subject.key("file/a"), b"1"), Put(subject.key("dir"), b"1")])
    equal(subject.listed(), ["dir", "file/a", "victim"], "listing after two calls")


def check_apply_twice(subject: Subject) -> None:
    """Check that conditional changes that took effect are refused when they are sent again, as after a lost reply."""
    upload_id, parts = subject.start_upload_of_one_part("data", b"uploaded")
    completed = Complete(subject.key("data"), upload_id, tuple(parts))
    as_transactional(subject.store).apply([Put(subject.key("log/1"), b"mine", Create()), completed])
    repeated: Sequence[Sequence[Change]] = ([Put(subject.key("log/1"), b"mine", Create()), completed], [completed])
    for changes in repeated:
        try:
            as_transactional(subject.other).apply(changes)
        except (PreconditionError, NotFoundError):
            continue
        expect(False, "changes that took effect before are refused")
    equal(subject.listed(), ["data", "log/1"], "listing")


def check_apply_many(subject: Subject) -> None:
    """Check that a call may make more changes than fit into one page of a listing."""
    names = [f"many/{number:05d}" for number in range(_MANY)]
    as_transactional(subject.store).apply([Put(subject.key(name), name.encode(), Create()) for name in names])
    equal(subject.listed(), names, "listing after the puts")
    _require_refusal(subject, PreconditionError, *(Put(subject.key(name), b"", Create()) for name in names[-1:]))
    as_transactional(subject.store).apply([Delete(subject.key(name)) for name in names])
    equal(subject.listed(), [], "listing after the deletes")


def check_apply_race(subject: Subject) -> None:
    """Check that of several concurrent callers with one condition exactly one succeeds, with all of its changes."""
    for attempt in range(subject.rounds):
        home = f"race-{attempt}"

        def apply_as_racer(racer: int, store: ObjectStore, home: str = home) -> None:
            names = [subject.key(f"{home}/{racer}-{number}") for number in range(3)]
            claim = Put(subject.key(f"{home}/claim"), b"%d" % racer, Create())
            as_transactional(store).apply([*(Put(name, b"x") for name in names), claim])

        race_puts(subject, subject.key(f"{home}/claim"), apply_as_racer, "callers")
        winner = int(subject.other.get(subject.key(f"{home}/claim")))
        wanted = [*(f"{home}/{winner}-{number}" for number in range(3)), f"{home}/claim"]
        equal([name for name in subject.listed() if name.startswith(f"{home}/")], sorted(wanted), "listing of a round")


def check_apply_in_one_step(subject: Subject) -> None:
    """Check that no page of a listing shows some of the changes of a call without the others."""
    names = [[f"turn/{swap_or_list}-{number:02d}" for number in range(20)] for swap_or_list in range(2)]
    subject.write(*names[0])

    def swap_or_list(racer: int, store: ObjectStore) -> list[list[str]]:
        if racer:
            return [_list_page_keys(store, subject.key("turn/"), subject.prefix) for _ in range(subject.rounds)]
        for attempt in range(subject.rounds):
            gone, new = names[attempt % 2], names[1 - attempt % 2]
            puts = [Put(subject.key(name), name.encode(), Create()) for name in new]
            _apply_until_done(store, [*(Delete(subject.key(name)) for name in gone), *puts])
        return []

    for seen in (page for pages in subject.race(swap_or_list) for page in pages):
        expect(seen in names, f"a page shows all of one turn and nothing of the other, not {len(seen)} objects")


# --- parts of checks --------------------------------------------------------------------------------------------------
def _list_pending_uploads(subject: Subject) -> list[tuple[str, str]]:
    found = iter_uploads(multipart(subject.other), f"{subject.prefix}/")
    return [(upload.key, upload.upload_id) for upload in found]


def _require_refusal(subject: Subject, error: type[HoldfastError], *changes: Change) -> None:
    """Check that these changes, among possible ones, are refused with an error that names one, and nothing happens."""
    before = subject.listed()
    first, last = Put(subject.key("first"), b"1"), Put(subject.key("last"), b"2")
    try:
        as_transactional(subject.store).apply([first, *changes, Delete(subject.key("victim")), last])
    except error as found:
        named = found.variables.get("key")
        expect(named in [change.key for change in changes], f"the error names the key of {changes}, not {named}")
    else:
        expect(False, f"{changes}: expected {error.__name__}, but the call succeeded")
    equal(subject.listed(), before, f"listing after {changes[0]} was refused")


def _list_page_keys(store: ObjectStore, prefix: str, home: str) -> list[str]:
    return sorted(info.key[len(home) + 1 :] for info in store.list_page(prefix).objects)


def _apply_until_done(store: ObjectStore, changes: Sequence[Change]) -> None:
    """Apply changes that only this caller makes, repeatedly if the store is busy."""
    for _ in range(20):
        try:
            as_transactional(store).apply(changes)
        except UnavailableError:
            continue
        return
    expect(False, "a store is available again after a while")
