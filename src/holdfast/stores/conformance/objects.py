"""Check whole objects: put, get, head, list, delete, copy, conditional puts; with odd keys, and by many callers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from holdfast.conformance import Check, equal, expect, refused
from holdfast.errors import NotFoundError, OutcomeUnknownError, PreconditionError, UnavailableError
from holdfast.stores.base import CopyStore, Create, ObjectStore, Update, iter_objects, iter_uploads, multipart
from holdfast.stores.conformance.subject import Subject


# --- objects ----------------------------------------------------------------------------------------------------------
def check_put_get_head(subject: Subject) -> None:
    """Check that an object is read back as written, and that put, head and listings agree."""
    key = subject.key("dir/object")
    put = subject.store.put(key, b"content")
    head = subject.other.head(key)
    [listed] = subject.store.list_page(key).objects
    equal(subject.other.get(key), b"content", "content")
    equal((put.key, put.size_bytes), (key, 7), "answer of put")
    equal((head.key, head.size_bytes), (key, 7), "answer of head")
    equal((listed.key, listed.size_bytes), (key, 7), "listing")
    equal(head.etag, put.etag, "etag of head and put")
    equal(listed.etag, put.etag, "etag of listing and put")
    expect(head.modified_at_s > 1_000_000_000, "head returns when the object was written")
    # Recovery uses the time in a listing to tell running jobs from dead ones.
    expect(abs(listed.modified_at_s - head.modified_at_s) < 2, "the listing returns when the object was written")


def check_put_overwrites(subject: Subject) -> None:
    """Check that a second put replaces the object, whether it is larger, smaller or empty."""
    key = subject.key("object")
    for content in (b"first, long", b"2nd", b"", b"third, longer than both"):
        subject.store.put(key, content)
        equal(subject.other.get(key), content, "content")
        equal(subject.other.head(key).size_bytes, len(content), "size")


def check_megabyte(subject: Subject) -> None:
    """Check that an object larger than usual buffers is read back byte for byte."""
    key, content = subject.key("object"), bytes(range(256)) * 12_345
    subject.store.put(key, content)
    expect(subject.other.get(key) == content, "the content is the same, byte for byte")


def check_missing_object(subject: Subject) -> None:
    """Check that reading a missing object raises `NotFoundError`, even if a longer or shorter key exists."""
    subject.store.put(subject.key("ab/c"), b"1")
    for relative in ("missing", "a", "ab", "ab/c/d", "abc"):
        refused(NotFoundError, partial(subject.store.get, subject.key(relative)), f"get {relative}")
        refused(NotFoundError, partial(subject.store.head, subject.key(relative)), f"head {relative}")


def check_ranges(subject: Subject) -> None:
    """Check that a range returns its bytes, and that a range beyond the end of the object is not an error."""
    key = subject.key("object")
    subject.store.put(key, b"0123456789")
    for start, length, expected in (
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (0, 4, b"0123"),
        (3, 4, b"3456"),
        (9, 1, b"9"),
        (8, 100, b"89"),
        (2, 0, b""),
        (10, 5, b""),
        (50, None, b""),
    ):
        equal(subject.store.get(key, start, length), expected, f"range {start}, {length}")


def check_get_of_one_object(subject: Subject) -> None:
    """Check that reads accept an etag from put, head or a listing, and never return an object with a different etag."""
    key = subject.key("object")
    put = subject.store.put(key, b"a" * 10)
    [listed] = subject.other.list_page(key).objects
    for etag in (put.etag, listed.etag, subject.other.head(key).etag):
        equal(subject.store.get(key, 3, 4, etag), b"a" * 4, "range of the expected object")
        equal(subject.other.get(key, etag=etag), b"a" * 10, "all of the expected object")
        equal(subject.store.get(key, 10, 4, etag), b"", "range after the end of the expected object")
    for other in (b"b" * 10, b"b" * 9):  # an etag made of the length alone would be the same for the first
        subject.other.put(key, other)
        for start, length in ((0, None), (3, 4), (9, 1), (50, 4), (2, 0)):
            read = partial(subject.store.get, key, start, length, put.etag)
            refused(PreconditionError, read, f"range {start}, {length} of an object that was replaced")
    subject.store.delete(key)
    refused(NotFoundError, lambda: subject.store.get(key, 3, 4, put.etag), "range of a deleted object")


_NAMES = ("a", "a b", "a!", "a-b", "a.b", "a/b", "a/b-c", "a/b/c", "a0", "aa", "b/x", "B", "é", "～", "😀")


def _put_sorted_objects(subject: Subject) -> list[str]:
    """Put objects whose order shows whether keys are sorted by UTF-8 bytes; no key is also a directory."""
    names = [name for name in _NAMES if name not in ("a", "a/b")]
    for name in names:
        subject.store.put(subject.key(name), b"1")
    return sorted(names, key=str.encode)


def _list_in_order(subject: Subject, start_after: str = "", page_size: int = 1000) -> list[str]:
    infos = iter_objects(subject.store, subject.key(""), start_after and subject.key(start_after), page_size)
    return [info.key[len(subject.key("")) :] for info in infos]


def check_list_order(subject: Subject) -> None:
    """Check that a tree is listed in ascending order of UTF-8 bytes: 'a-b' before 'a/b', not by UTF-16 units."""
    names = _put_sorted_objects(subject)
    equal(_list_in_order(subject), names, "order of the listing")


def check_list_one_directory(subject: Subject) -> None:
    """Check the order within a directory, and listings that start after any name: the decision log needs both."""
    names = [*(f"{n:020d}.json" for n in range(30)), "B", "a", "a-b", "é", "～", "😀"]
    for name in reversed(names):
        subject.store.put(subject.key(name), b"1")
    for size in (7, 1000):
        equal(_list_in_order(subject, page_size=size), names, f"order in pages of {size}")
        for marker in ("0", f"{11:020d}.json", f"{11:020d}", f"{11:020d}.z", "a", "a,", "é", "😀"):
            expected = [name for name in names if name.encode() > marker.encode()]
            equal(_list_in_order(subject, marker, size), expected, f"listing after {marker!r} in pages of {size}")


def check_list_pages(subject: Subject) -> None:
    """Check that listings in pages of any size return each key once."""
    names = _put_sorted_objects(subject)
    for size in (1, 2, 3, len(names) - 1, len(names), len(names) + 1):
        equal(sorted(_list_in_order(subject, page_size=size)), sorted(names), f"listing in pages of {size}")
    page = subject.store.list_page(subject.key(""), max_keys=2)
    equal((len(page.objects), page.next_token is None), (2, False), "first page of two")


def check_list_start_after(subject: Subject) -> None:
    """Check that the listing of a tree can start after any key, existing or not."""
    names = _put_sorted_objects(subject)
    for marker in (*_NAMES, "a/", "a/b/", "a/zz", "zz", "a,"):
        expected = [name for name in names if name.encode() > marker.encode()]
        equal(sorted(_list_in_order(subject, marker)), sorted(expected), f"listing after {marker!r}")


def check_directory_markers(subject: Subject) -> None:
    """Check that an empty object whose key ends in a slash does not count as output and can be deleted separately."""
    subject.store.put(subject.key("d/"), b"")
    subject.store.put(subject.key("d/e/"), b"")
    subject.store.put(subject.key("d/a"), b"1")
    for size in (2, 3, 1000):  # SeaweedFS treats a page of one object after a marker as the last page
        equal(_list_in_order(subject, page_size=size), ["d/a"], f"listing in pages of {size}")
    expect(set(subject.listed()) <= {"d/", "d/a", "d/e/"}, "a listing with markers contains nothing else")
    subject.store.delete(subject.key("d/"))
    equal(_list_in_order(subject), ["d/a"], "listing without the marker")


def check_list_prefix(subject: Subject) -> None:
    """Check that a listing's prefix may end in the middle of a name, and that a final slash excludes other names."""
    for name in ("dataset1/a", "dataset10/a", "dataset1-old/a", "dataset", "other"):
        subject.store.put(subject.key(name), b"1")
    equal(subject.listed("dataset1/"), ["dataset1/a"], "below dataset1/")
    equal(subject.listed("dataset1"), ["dataset1-old/a", "dataset1/a", "dataset10/a"], "from dataset1")
    equal(subject.listed("dataset10/a"), ["dataset10/a"], "a whole key")
    equal(subject.listed("dataset10/a/"), [], "below an object")
    equal(subject.listed("none/such/"), [], "below nothing")


def check_object_beside_directory(subject: Subject) -> None:
    """Check that the keys ``a`` and ``a/b`` can both have an object: a slash has no meaning."""
    subject.store.put(subject.key("a/b"), b"below")
    subject.store.put(subject.key("a"), b"beside")
    equal(subject.store.get(subject.key("a")), b"beside", "content of a")
    equal(subject.store.get(subject.key("a/b")), b"below", "content of a/b")
    equal(subject.listed(), ["a", "a/b"], "listing")


def check_delete(subject: Subject) -> None:
    """Check that a deleted object disappears from every view, that others stay, and that deleting it again succeeds."""
    for name in ("a/b", "a/bc", "a-b"):
        subject.store.put(subject.key(name), b"1")
    subject.store.delete(subject.key("a/b"))
    subject.store.delete(subject.key("a/b"))
    subject.store.delete(subject.key("never/there"))
    subject.store.delete(subject.key("a"))
    refused(NotFoundError, lambda: subject.other.get(subject.key("a/b")), "get of a deleted object")
    refused(NotFoundError, lambda: subject.other.head(subject.key("a/b")), "head of a deleted object")
    equal(subject.listed(), ["a-b", "a/bc"], "listing")
    subject.store.delete(subject.key("a/bc"))
    subject.store.put(subject.key("a/b"), b"2")  # in a directory that deletes have emptied
    equal(subject.other.get(subject.key("a/b")), b"2", "content of an object that is put again")


def check_delete_many(subject: Subject) -> None:
    """Check that one call deletes many objects and no others, and ignores missing ones."""
    names = [f"d{n % 7}/object {n:03d}+%" for n in range(60)]
    for name in names:
        subject.store.put(subject.key(name), b"1")
    subject.store.delete_many([])
    subject.store.delete_many([subject.key(name) for name in (*names[:50], "missing", "d1/missing")])
    equal(subject.listed(), sorted(names[50:]), "remaining objects")
    subject.store.delete_many([subject.key(name) for name in names])
    equal(subject.listed(), [], "remaining objects")


def check_put_metadata(subject: Subject) -> None:
    """Check that `head` returns the metadata that a put has stored with the object."""
    subject.store.put(subject.key("object"), b"1", metadata={"holdfast-job": "20240101-0a", "n": "1"})
    equal(dict(subject.other.head(subject.key("object")).metadata), {"holdfast-job": "20240101-0a", "n": "1"}, "head")


def check_copy(subject: Subject) -> None:
    """Check that `copy` copies all bytes, replaces the target and keeps the source, and fails without a source."""
    store = cast("CopyStore", subject.store)
    store.put(subject.key("a b+%20"), b"content")
    store.put(subject.key("dir/target é"), b"old")
    store.copy(store.head(subject.key("a b+%20")), subject.key("dir/target é"))
    equal(subject.other.get(subject.key("dir/target é")), b"content", "content of the copy")
    equal(subject.listed(), ["a b+%20", "dir/target é"], "listing")
    gone = store.head(subject.key("a b+%20"))
    store.delete(subject.key("a b+%20"))
    refused(NotFoundError, lambda: store.copy(gone, subject.key("b")), "copy of a deleted object")
    equal(subject.listed(), ["dir/target é"], "listing")


# --- odd keys, which occur in the destinations and partition values of Spark users ------------------------------------
ODD_KEYS = {
    "space": "a b/ c /d",
    "plus": "a+b/+",
    "percent": "100%/50%",
    "percent-escape": "a%20b/%2F/%25",
    "colon": "time=12:30:00/a:b",
    "equals": "year=2013/month=1",
    "unicode": "größe/名前/part",
    "decomposed": "e\u0301/é",
    "emoji": "😀/🧭.parquet",
    "hash": "a#b/#c",
    "question": "a?b=c/?",
    "ampersand": "a&b/&amp;<c>",
    "quotes": 'a\'b/"c"',
    "brackets": "[a]/{b}/(c)*",
    "comma-semicolon": "a,b;c/~$@!^|`",
    "tab": "a\tb/c",
    "line-ends": "a\nb/c\rd",
    "backslash": "a\\b/c",
    "hidden": ".hidden/_under/.c",
    "double-slash": "a//b",
    "dot-segment": "a/./b",
    "long": "/".join(["x" * 150] * 4) + "/part-" + "y" * 150,
}
"""Maps the name of each peculiarity to a key with that peculiarity."""


def _make_key_check(relative: str) -> Callable[[Subject], None]:
    def check_key(subject: Subject) -> None:
        key = subject.key(relative)
        subject.store.put(key, b"put")
        equal(subject.other.get(key), b"put", "content")
        equal(subject.other.head(key).key, key, "key of head")
        equal(subject.listed(), [relative], "listing")
        equal(subject.listed(relative), [relative], "listing by the whole key")
        page = subject.store.list_page(subject.key(""), key)
        equal(list(page.objects), [], "listing after the key")
        if subject.store.capabilities.multipart is not None:
            _check_upload(subject, key)
            equal(subject.listed(), [relative], "listing")
        subject.store.delete_many([key])
        equal(subject.listed(), [], "listing after delete_many")
        subject.store.put(key, b"again")
        subject.store.delete(key)
        refused(NotFoundError, lambda: subject.store.head(key), "head after delete")

    return check_key


def _check_upload(subject: Subject, key: str) -> None:
    upload_id = subject.multipart_store.create_upload(key)
    part = subject.multipart_store.upload_part(key, upload_id, 1, b"upload")
    subject.multipart_store.complete_upload(key, upload_id, [part])
    equal(subject.store.get(key), b"upload", "content of the upload")


def _make_listed_upload_check(relative: str) -> Callable[[Subject], None]:
    def check_listed_upload(subject: Subject) -> None:
        upload_id = subject.multipart_store.create_upload(subject.key(relative))
        pending = [(upload.key, upload.upload_id) for upload in iter_uploads(subject.multipart_store, subject.key(""))]
        equal(pending, [(subject.key(relative), upload_id)], "pending uploads")
        subject.multipart_store.abort_upload(subject.key(relative), upload_id)
        equal(list(iter_uploads(subject.multipart_store, subject.key(""))), [], "pending uploads after the abort")

    return check_listed_upload


KEY_CHECKS = [Check(f"key:{name}", _make_key_check(relative)) for name, relative in ODD_KEYS.items()]
# A server that rejects an object at such a key may still start an upload, respond with an error and never list it.
LISTED_UPLOAD_CHECKS = [
    Check(f"listed-upload:{name}", _make_listed_upload_check(relative), needs=f"key:{name}")
    for name, relative in ODD_KEYS.items()
]


# --- conditional puts, one of which is the commit point of a job ------------------------------------------------------
def check_create(subject: Subject) -> None:
    """Check that a put with the mode `Create` writes a new object and never replaces one."""
    key = subject.key("log/00000000000000000001.json")
    subject.store.put(key, b"first", Create())
    refused(PreconditionError, lambda: subject.other.put(key, b"second", Create()), "create over an object")
    refused(PreconditionError, lambda: subject.store.put(key, b"first", Create()), "create of the same content")
    equal(subject.store.get(key), b"first", "content")
    # An empty object counts as an existing object, whether the old or the new one is empty.
    empty = subject.key("empty")
    subject.store.put(empty, b"", Create())
    refused(PreconditionError, lambda: subject.store.put(empty, b"full", Create()), "create over an empty object")
    refused(PreconditionError, lambda: subject.store.put(empty, b"", Create()), "empty create over an empty object")
    refused(PreconditionError, lambda: subject.store.put(key, b"", Create()), "empty create over an object")
    equal(subject.store.get(empty), b"", "content")


def check_create_after_delete(subject: Subject) -> None:
    """Check that a put with the mode `Create` succeeds again after the object was deleted."""
    key = subject.key("log/1")
    subject.store.put(key, b"1", Create())
    subject.store.delete(key)
    subject.store.put(key, b"2", Create())
    equal(subject.store.get(key), b"2", "content")


def check_update(subject: Subject) -> None:
    """Check that a put with the mode `Update` replaces only an object with this etag, from put, head or a listing."""
    key = subject.key("object")
    first = subject.store.put(key, b"1")
    # All contents have one length, because an etag made of the length alone would be the same for all of them.
    second = subject.other.put(key, b"2", Update(first.etag))
    refused(PreconditionError, lambda: subject.store.put(key, b"3", Update(first.etag)), "update over another object")
    equal(subject.store.get(key), b"2", "content")
    subject.store.put(key, b"4", Update(second.etag))
    subject.store.put(key, b"55", Update(subject.other.head(key).etag))
    [listed] = subject.store.list_page(key).objects
    subject.store.put(key, b"666", Update(listed.etag))
    equal(subject.store.get(key), b"666", "content")


def check_update_missing(subject: Subject) -> None:
    """Check that a put with the mode `Update` writes nothing if the object is deleted or never existed."""
    key = subject.key("object")
    etag = subject.store.put(key, b"1").etag
    subject.store.delete(key)
    refused(PreconditionError, lambda: subject.store.put(key, b"2", Update(etag)), "update of a deleted object")
    never = subject.key("never")
    refused(PreconditionError, lambda: subject.store.put(never, b"2", Update(etag)), "update of a missing object")
    equal(subject.listed(), [], "listing")


# --- conditional puts under many concurrent writers -------------------------------------------------------------------
# A store may honor each single condition and still let two writers win. Adobe S3Mock does: it first checks whether the
# key is free, and then writes. In 12 of 40 rounds with 8 drivers each, two drivers won.
def race_puts(subject: Subject, key: str, put: Callable[[int, ObjectStore], object], word: str) -> None:
    """Raise if more than one racer succeeds, or if the object is not the winner's. Racer n writes the number n."""

    def has_won(racer: int, store: ObjectStore) -> bool | None:
        try:
            put(racer, store)
        except (PreconditionError, UnavailableError):
            return False
        except OutcomeUnknownError:
            return None
        return True

    ends = subject.race(has_won)
    winners = [racer for racer, end in enumerate(ends) if end]
    expect(len(winners) <= 1, f"one of {len(ends)} {word} succeeds, not {len(winners)}")
    possible = winners or [racer for racer, end in enumerate(ends) if end is None]
    expect(bool(possible), f"one of {len(ends)} {word} succeeds, not none")
    found = subject.other.get(key)
    expect(found in [b"%d" % racer for racer in possible], f"the content is the winner's: {possible}, not {found!r}")


def _create_as_racer(key: str, racer: int, store: ObjectStore) -> None:
    store.put(key, b"%d" % racer, Create())


def _update_as_racer(key: str, etag: str, racer: int, store: ObjectStore) -> None:
    store.put(key, b"%d" % racer, Update(etag))


def check_create_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent creates of a key succeeds, and that its content is stored."""
    for attempt in range(subject.rounds):
        key = subject.key(f"race-{attempt}")
        race_puts(subject, key, partial(_create_as_racer, key), "creates")


def check_create_delete_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent creates succeeds, even right after the key's object was deleted."""
    key = subject.key("again")
    for _ in range(subject.rounds):
        subject.store.put(key, b"old")
        subject.store.delete(key)
        race_puts(subject, key, partial(_create_as_racer, key), "creates after a delete")


def check_update_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent updates of a key succeeds, and that its content is stored."""
    key = subject.key("object")
    for attempt in range(subject.rounds):
        etag = subject.store.put(key, b"start %d" % attempt).etag

        race_puts(subject, key, partial(_update_as_racer, key, etag), "updates")
    equal(subject.listed(), ["object"], "listing")


# --- unconditional calls under many concurrent writers ----------------------------------------------------------------
_MOST_OBJECTS = 20  # per writer, because each writer lists all of them after each put


def check_listing_under_writers(subject: Subject) -> None:
    """Check that each writer's listings show what it wrote and not what it deleted, while others write and delete.

    Job commits that find their files by listing depend on this (`Capabilities.consistent_listing`).
    """

    def write_and_list(racer: int, store: ObjectStore) -> str:
        mine: set[str] = set()
        prefix = subject.key("t/")
        for number in range(min(subject.rounds, _MOST_OBJECTS)):
            key = f"{prefix}{number:03d}-{racer}"
            store.put(key, b"1")
            mine.add(key)
            if number % 3 == 2:
                store.delete(key)
                mine.discard(key)
            listed = {info.key for info in iter_objects(store, prefix) if info.key.endswith(f"-{racer}")}
            if listed != mine:
                return f"writer {racer} misses {sorted(mine - listed)}, sees {sorted(listed - mine)}"
        return ""

    for found in subject.race(write_and_list):
        expect(not found, f"every writer's listing shows what it wrote: {found}")


def check_overwrite_race(subject: Subject) -> None:
    """Check that after concurrent puts and uploads to one key, the object is exactly one of the written objects."""
    key, size = subject.key("object"), 200_000

    def overwrite_object(racer: int, store: ObjectStore) -> bytes:
        content = b"%d" % racer * size
        if racer % 2 and store.capabilities.multipart is not None:
            uploads = multipart(store)
            upload_id = uploads.create_upload(key)
            uploads.complete_upload(key, upload_id, [uploads.upload_part(key, upload_id, 1, content)])
        else:
            store.put(key, content)
        return content

    written = subject.race(overwrite_object)
    expect(subject.other.get(key) in written, "the object is exactly one of those that were written")
    equal(subject.listed(), ["object"], "listing")
