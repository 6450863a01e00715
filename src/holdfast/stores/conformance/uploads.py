"""Check multipart uploads: pending ones are invisible, completed ones are whole, and none is published twice."""

from __future__ import annotations

import contextlib
import dataclasses
import functools

from holdfast.conformance import equal, refused
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import MultipartStore, Part, iter_uploads, iter_uploads_of, multipart
from holdfast.stores.conformance.subject import Subject


def _list_pending_uploads(store: MultipartStore, directory: str) -> list[tuple[str, str]]:
    return sorted((upload.key, upload.upload_id) for upload in iter_uploads(store, directory))


def _list_pending_uploads_of_key(store: MultipartStore, key: str) -> list[tuple[str, str]]:
    """List the pending uploads of one key: servers that cannot list the uploads below a directory support this, too."""
    return sorted((upload.key, upload.upload_id) for upload in iter_uploads_of(store, key))


def check_upload_is_invisible(subject: Subject) -> None:
    """Check that nothing of an upload is visible before it is completed, and everything after."""
    key = subject.key("t/part-0")
    upload_id = subject.multipart_store.create_upload(key)
    part = subject.multipart_store.upload_part(key, upload_id, 1, b"rows")
    refused(NotFoundError, lambda: subject.store.get(key), "get of a pending upload")
    refused(NotFoundError, lambda: subject.store.head(key), "head of a pending upload")
    equal(subject.listed(), [], "listing")
    done = subject.multipart_store.complete_upload(key, upload_id, [part])
    equal((done.key, done.size_bytes), (key, 4), "result of complete")
    equal(subject.store.get(key), b"rows", "content")
    equal(subject.listed(), ["t/part-0"], "listing")


def check_upload_completed_elsewhere(subject: Subject) -> None:
    """Check that another process can complete an upload by its key, id and parts."""
    key = subject.key("t/part-0")
    upload_id, parts = subject.start_upload_of_one_part("t/part-0", b"rows")
    multipart(subject.other).complete_upload(key, upload_id, parts)
    equal(subject.store.get(key), b"rows", "content")
    equal(_list_pending_uploads_of_key(subject.multipart_store, key), [], "pending uploads")


def check_upload_parts(subject: Subject) -> None:
    """Check that parts are joined in the order of their numbers, regardless of when they arrived."""
    key = subject.key("object")
    upload_id = subject.multipart_store.create_upload(key)
    bodies = {1: subject.part_bytes(b"1"), 2: subject.part_bytes(b"2") + b"+", 3: b"3"}
    parts = {n: subject.multipart_store.upload_part(key, upload_id, n, bodies[n]) for n in (3, 1, 2)}
    done = subject.multipart_store.complete_upload(key, upload_id, [parts[n] for n in (1, 2, 3)])
    whole = b"".join(bodies[n] for n in (1, 2, 3))
    equal(done.size_bytes, len(whole), "size")
    equal(subject.other.get(key) == whole, True, "the content is the parts in order")


def check_upload_parts_at_once(subject: Subject) -> None:
    """Check that threads can upload parts of one upload at the same time."""
    key = subject.key("object")
    upload_id = subject.multipart_store.create_upload(key)
    size = len(subject.part_bytes())
    numbers = range(1, 5)

    def upload_part(number: int) -> Part:
        return subject.multipart_store.upload_part(key, upload_id, number, b"%d" % number * size)

    subject.multipart_store.complete_upload(key, upload_id, list(ThreadRunner(4).map(upload_part, numbers)))
    expected = b"".join(b"%d" % number * size for number in numbers)
    equal(subject.store.get(key) == expected, True, "the content is the parts in order")


def check_upload_part_again(subject: Subject) -> None:
    """Check that uploading a part again replaces it, and that one empty part makes an empty object."""
    key = subject.key("object")
    upload_id = subject.multipart_store.create_upload(key)
    subject.multipart_store.upload_part(key, upload_id, 1, b"first try")
    part = subject.multipart_store.upload_part(key, upload_id, 1, b"2nd")
    subject.multipart_store.complete_upload(key, upload_id, [part])
    equal(subject.store.get(key), b"2nd", "content")
    upload_id, parts = subject.start_upload_of_one_part("empty", b"")
    equal(subject.multipart_store.complete_upload(subject.key("empty"), upload_id, parts).size_bytes, 0, "size")
    equal(subject.store.get(subject.key("empty")), b"", "content of one empty part")


def check_upload_replaces(subject: Subject) -> None:
    """Check that completing an upload replaces an object that was written meanwhile."""
    key = subject.key("object")
    subject.store.put(key, b"old")
    upload_id, parts = subject.start_upload_of_one_part("object", b"new")
    equal(subject.store.get(key), b"old", "content while pending")
    subject.store.put(key, b"newer old")
    subject.store.delete(key)
    subject.multipart_store.complete_upload(key, upload_id, parts)
    equal(subject.store.get(key), b"new", "content")


def check_two_uploads_of_one_key(subject: Subject) -> None:
    """Check that two uploads of one key do not affect each other, and that the last completion wins."""
    key = subject.key("object")
    first, first_parts = subject.start_upload_of_one_part("object", b"first")
    second, second_parts = subject.start_upload_of_one_part("object", b"second")
    equal(
        _list_pending_uploads_of_key(subject.multipart_store, key),
        sorted([(key, first), (key, second)]),
        "pending uploads",
    )
    subject.multipart_store.complete_upload(key, second, second_parts)
    equal(subject.store.get(key), b"second", "content")
    equal(_list_pending_uploads_of_key(subject.multipart_store, key), [(key, first)], "pending uploads")
    subject.multipart_store.complete_upload(key, first, first_parts)
    equal(subject.store.get(key), b"first", "content")


def check_abort(subject: Subject) -> None:
    """Check that an aborted upload no longer exists, that aborting it again succeeds, and that other uploads stay."""
    key = subject.key("object")
    upload_id, parts = subject.start_upload_of_one_part("object", b"1")
    other_id, other_parts = subject.start_upload_of_one_part("object", b"other")
    subject.multipart_store.abort_upload(key, upload_id)
    subject.multipart_store.abort_upload(key, upload_id)
    multipart(subject.other).abort_upload(key, upload_id)
    refused(
        NotFoundError, lambda: subject.multipart_store.complete_upload(key, upload_id, parts), "complete after abort"
    )
    refused(NotFoundError, lambda: subject.multipart_store.upload_part(key, upload_id, 2, b"2"), "part after abort")
    equal(subject.listed(), [], "listing")
    equal(_list_pending_uploads_of_key(subject.multipart_store, key), [(key, other_id)], "pending uploads")
    subject.multipart_store.complete_upload(key, other_id, other_parts)
    equal(subject.store.get(key), b"other", "content")


def _complete_upload_again(subject: Subject, upload_id: str, parts: list[Part]) -> None:
    """Complete again: a store may return the result again or raise `NotFoundError`, but must change nothing."""
    with contextlib.suppress(NotFoundError):
        multipart(subject.other).complete_upload(subject.key("object"), upload_id, parts)


def check_complete_twice(subject: Subject) -> None:
    """Check that a second completion changes nothing: not the object, not a newer one, and not one that was deleted.

    Servers respond with 200, 404 or 500.
    """
    key = subject.key("object")
    upload_id, parts = subject.start_upload_of_one_part("object", b"1")
    subject.multipart_store.complete_upload(key, upload_id, parts)
    _complete_upload_again(subject, upload_id, parts)
    equal(subject.store.get(key), b"1", "content")
    subject.store.put(key, b"newer")
    _complete_upload_again(subject, upload_id, parts)
    equal(subject.store.get(key), b"newer", "content of a newer object")
    subject.multipart_store.abort_upload(key, upload_id)
    equal(subject.store.get(key), b"newer", "content after an abort")
    subject.store.delete(key)
    _complete_upload_again(subject, upload_id, parts)
    equal(subject.listed(), [], "listing after a delete")


def check_complete_race(subject: Subject) -> None:
    """Check that concurrent completions of one upload publish it whole; each succeeds or raises `NotFoundError`."""
    upload_id, parts = subject.start_upload_of_one_part("object", b"rows")
    list(ThreadRunner(8).map(lambda _: _complete_upload_again(subject, upload_id, parts), range(8)))
    equal(subject.store.get(subject.key("object")), b"rows", "content")
    equal(_list_pending_uploads_of_key(subject.multipart_store, subject.key("object")), [], "pending uploads")


def check_wrong_etag(subject: Subject) -> None:
    """Check that completing an upload with a wrong etag of a part fails, and then succeeds with the right one."""
    key = subject.key("object")
    upload_id, [part] = subject.start_upload_of_one_part("object", b"1")
    wrong = dataclasses.replace(part, etag="0" * 32)
    refused(
        InvalidRequestError,
        lambda: subject.multipart_store.complete_upload(key, upload_id, [wrong]),
        "complete by a wrong etag",
    )
    equal(subject.listed(), [], "listing")
    subject.multipart_store.complete_upload(key, upload_id, [part])
    equal(subject.store.get(key), b"1", "content")


def check_missing_part(subject: Subject) -> None:
    """Check that completing an upload without a listed part, or with a gap in numbers, fails and publishes nothing."""
    key = subject.key("object")
    upload_id = subject.multipart_store.create_upload(key)
    part = subject.multipart_store.upload_part(key, upload_id, 1, subject.part_bytes())
    made_up = dataclasses.replace(part, number=2)
    for parts in ([part, made_up], [made_up], []):
        refused(
            InvalidRequestError,
            functools.partial(subject.multipart_store.complete_upload, key, upload_id, parts),
            f"complete with parts {[each.number for each in parts]}",
        )
    equal(subject.listed(), [], "listing")


def check_small_part(subject: Subject) -> None:
    """Check that completing an upload fails if a part, except the last, is below the store's minimum size."""
    key = subject.key("object")
    upload_id = subject.multipart_store.create_upload(key)
    parts = [subject.multipart_store.upload_part(key, upload_id, n, subject.part_bytes()[:-1]) for n in (1, 2)]
    refused(InvalidRequestError, lambda: subject.multipart_store.complete_upload(key, upload_id, parts), "complete")
    equal(subject.listed(), [], "listing")


def check_list_uploads(subject: Subject) -> None:
    """Check that exactly the uploads below ``dataset1/`` are listed: not one to ``dataset1``, which Swift listed."""
    names = ("dataset1", "dataset1/a", "dataset1/b/c", "dataset1/b/c", "dataset10/a", "dataset1-old/a")
    made = [(subject.key(name), subject.multipart_store.create_upload(subject.key(name))) for name in names]
    below = sorted(upload for upload in made if upload[0].startswith(subject.key("dataset1/")))
    equal(_list_pending_uploads(multipart(subject.other), subject.key("dataset1/")), below, "below dataset1/")
    equal(_list_pending_uploads(subject.multipart_store, subject.key("")), sorted(made), "below the prefix")
    equal(_list_pending_uploads(subject.multipart_store, subject.key("none/")), [], "below nothing")
    for key, upload_id in made:
        subject.multipart_store.abort_upload(key, upload_id)
    equal(_list_pending_uploads(subject.multipart_store, subject.key("")), [], "after the aborts")


def check_list_many_uploads(subject: Subject) -> None:
    """Check that all uploads are listed if there are more than fit on a page."""
    keys = [subject.key(f"t/part-{n:05d}") for n in range(1050)]
    made = sorted(zip(keys, ThreadRunner(8).map(subject.multipart_store.create_upload, keys), strict=True))
    equal(
        _list_pending_uploads(subject.multipart_store, subject.key("t/")) == made,
        True,
        "every pending upload is listed once",
    )
    list(ThreadRunner(8).map(lambda upload: subject.multipart_store.abort_upload(*upload), made))
    equal(_list_pending_uploads(subject.multipart_store, subject.key("t/")), [], "after the aborts")


def check_upload_age(subject: Subject) -> None:
    """Check that listings of pending uploads show when each was created, as cleaning up by age requires."""
    subject.multipart_store.create_upload(subject.key("object"))
    [upload] = iter_uploads_of(subject.multipart_store, subject.key("object"))
    equal(upload.initiated_at_s > 1_000_000_000, True, "the listing has the time")


def check_upload_metadata(subject: Subject) -> None:
    """Check that `head` returns the metadata with which a completed upload was created."""
    key = subject.key("object")
    upload_id = subject.multipart_store.create_upload(key, {"holdfast-job": "20240101-0a"})
    part = subject.multipart_store.upload_part(key, upload_id, 1, b"1")
    subject.multipart_store.complete_upload(key, upload_id, [part])
    equal(dict(subject.other.head(key).metadata), {"holdfast-job": "20240101-0a"}, "metadata")
