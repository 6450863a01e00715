"""Check whole objects: put, get, head, list, delete, copy."""

from __future__ import annotations

import functools
from typing import cast

from holdfast.conformance import equal, expect, refused
from holdfast.errors import NotFoundError, PreconditionError
from holdfast.stores.base import CopyStore, iter_objects
from holdfast.stores.conformance.subject import Subject


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
    """Check that a second put replaces the object, whether it is larger or smaller."""
    key = subject.key("object")
    for content in (b"first, long", b"2nd", b"third, longer than both"):
        subject.store.put(key, content)
        equal(subject.other.get(key), content, "content")
        equal(subject.other.head(key).size_bytes, len(content), "size")


def check_empty_object(subject: Subject) -> None:
    """Check that an object may be empty."""
    key = subject.key("_SUCCESS")
    equal(subject.store.put(key, b"").size_bytes, 0, "size of put")
    equal(subject.store.get(key), b"", "content")
    equal(subject.store.head(key).size_bytes, 0, "size")
    equal(subject.listed(), ["_SUCCESS"], "listing")


def check_megabyte(subject: Subject) -> None:
    """Check that an object larger than usual buffers is read back byte for byte."""
    key, content = subject.key("object"), bytes(range(256)) * 12_345
    subject.store.put(key, content)
    expect(subject.other.get(key) == content, "the content is the same, byte for byte")


def check_missing_object(subject: Subject) -> None:
    """Check that reading a missing object raises `NotFoundError`, even if a longer or shorter key exists."""
    subject.store.put(subject.key("ab/c"), b"1")
    for relative in ("missing", "a", "ab", "ab/c/d", "abc"):
        refused(NotFoundError, functools.partial(subject.store.get, subject.key(relative)), f"get {relative}")
        refused(NotFoundError, functools.partial(subject.store.head, subject.key(relative)), f"head {relative}")


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
            read = functools.partial(subject.store.get, key, start, length, put.etag)
            refused(PreconditionError, read, f"range {start}, {length} of an object that was replaced")
    subject.store.delete(key)
    refused(NotFoundError, lambda: subject.store.get(key, 3, 4, put.etag), "range of a deleted object")


_NAMES = ("a", "a b", "a!", "a-b", "a.b", "a/b", "a/b-c", "a/b/c", "a0", "aa", "b/x", "B", "é", "～", "😀")


def _fill(subject: Subject) -> list[str]:
    """Put objects whose order shows whether keys are sorted by UTF-8 bytes; no key is also a directory."""
    names = [name for name in _NAMES if name not in ("a", "a/b")]
    for name in names:
        subject.store.put(subject.key(name), b"1")
    return sorted(names, key=str.encode)


def _listed_in_order(subject: Subject, start_after: str = "", page_size: int = 1000) -> list[str]:
    infos = iter_objects(subject.store, subject.key(""), start_after and subject.key(start_after), page_size)
    return [info.key[len(subject.key("")) :] for info in infos]


def check_list_order(subject: Subject) -> None:
    """Check that a tree is listed in ascending order of UTF-8 bytes: 'a-b' before 'a/b', not by UTF-16 units."""
    names = _fill(subject)
    equal(_listed_in_order(subject), names, "order of the listing")


def check_list_one_directory(subject: Subject) -> None:
    """Check the order within a directory, and listings that start after any name: the decision log needs both."""
    names = [*(f"{n:020d}.json" for n in range(30)), "B", "a", "a-b", "é", "～", "😀"]
    for name in reversed(names):
        subject.store.put(subject.key(name), b"1")
    for size in (7, 1000):
        equal(_listed_in_order(subject, page_size=size), names, f"order in pages of {size}")
        for marker in ("0", f"{11:020d}.json", f"{11:020d}", f"{11:020d}.z", "a", "a,", "é", "😀"):
            expected = [name for name in names if name.encode() > marker.encode()]
            equal(_listed_in_order(subject, marker, size), expected, f"listing after {marker!r} in pages of {size}")


def check_list_pages(subject: Subject) -> None:
    """Check that listings in pages of any size return each key once."""
    names = _fill(subject)
    for size in (1, 2, 3, len(names) - 1, len(names), len(names) + 1):
        equal(sorted(_listed_in_order(subject, page_size=size)), sorted(names), f"listing in pages of {size}")
    page = subject.store.list_page(subject.key(""), max_keys=2)
    equal((len(page.objects), page.next_token is None), (2, False), "first page of two")


def check_list_start_after(subject: Subject) -> None:
    """Check that the listing of a tree can start after any key, existing or not."""
    names = _fill(subject)
    for marker in (*_NAMES, "a/", "a/b/", "a/zz", "zz", "a,"):
        expected = [name for name in names if name.encode() > marker.encode()]
        equal(sorted(_listed_in_order(subject, marker)), sorted(expected), f"listing after {marker!r}")


def check_directory_markers(subject: Subject) -> None:
    """Check that an empty object whose key ends in a slash does not count as output and can be deleted separately."""
    subject.store.put(subject.key("d/"), b"")
    subject.store.put(subject.key("d/e/"), b"")
    subject.store.put(subject.key("d/a"), b"1")
    for size in (2, 3, 1000):  # SeaweedFS treats a page of one object after a marker as the last page
        equal(_listed_in_order(subject, page_size=size), ["d/a"], f"listing in pages of {size}")
    expect(set(subject.listed()) <= {"d/", "d/a", "d/e/"}, "a listing with markers contains nothing else")
    subject.store.delete(subject.key("d/"))
    equal(_listed_in_order(subject), ["d/a"], "listing without the marker")


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
    """Check that keys are flat: ``a`` and ``a/b`` are two objects."""
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


def check_put_after_delete(subject: Subject) -> None:
    """Check that objects can be put in a directory that deletes have emptied."""
    for _ in range(3):
        subject.store.put(subject.key("x/y/z"), b"1")
        subject.store.delete(subject.key("x/y/z"))
    subject.store.put(subject.key("x/y/z"), b"2")
    equal(subject.other.get(subject.key("x/y/z")), b"2", "content")


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
    """Check that head returns the metadata of a put."""
    subject.store.put(subject.key("object"), b"1", metadata={"holdfast-job": "20240101-0a", "n": "1"})
    equal(dict(subject.other.head(subject.key("object")).metadata), {"holdfast-job": "20240101-0a", "n": "1"}, "head")


def check_copy(subject: Subject) -> None:
    """Check that a copy has the source's bytes and replaces the target, and that the source stays."""
    store = cast("CopyStore", subject.store)
    store.put(subject.key("a b+%20"), b"content")
    store.put(subject.key("dir/target é"), b"old")
    store.copy(store.head(subject.key("a b+%20")), subject.key("dir/target é"))
    equal(subject.other.get(subject.key("dir/target é")), b"content", "content of the copy")
    equal(subject.listed(), ["a b+%20", "dir/target é"], "listing")


def check_copy_missing(subject: Subject) -> None:
    """Check that copying a deleted object raises `NotFoundError` and creates nothing."""
    store = cast("CopyStore", subject.store)
    store.put(subject.key("a"), b"1")
    gone = store.head(subject.key("a"))
    store.delete(subject.key("a"))
    refused(NotFoundError, lambda: store.copy(gone, subject.key("b")), "copy of a deleted object")
    equal(subject.listed(), [], "listing")
