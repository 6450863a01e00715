"""Check conditional puts, one of which is the commit point of a job."""

from __future__ import annotations

from holdfast.conformance import equal, refused
from holdfast.errors import PreconditionError
from holdfast.stores.base import Create, Update
from holdfast.stores.conformance.subject import Subject


def check_create(subject: Subject) -> None:
    """Check that a create writes a new object and never replaces one."""
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
    """Check that a key is free again after its object was deleted."""
    key = subject.key("log/1")
    subject.store.put(key, b"1", Create())
    subject.store.delete(key)
    subject.store.put(key, b"2", Create())
    equal(subject.store.get(key), b"2", "content")


def check_update(subject: Subject) -> None:
    """Check that an update replaces only the expected object."""
    key = subject.key("object")
    first = subject.store.put(key, b"1")
    # All contents have one length, because an etag made of the length alone would be the same for all of them.
    second = subject.other.put(key, b"2", Update(first.etag))
    refused(PreconditionError, lambda: subject.store.put(key, b"3", Update(first.etag)), "update over another object")
    equal(subject.store.get(key), b"2", "content")
    subject.store.put(key, b"4", Update(second.etag))
    equal(subject.store.get(key), b"4", "content")


def check_update_of_listed(subject: Subject) -> None:
    """Check that an update accepts the etag that head and listings return."""
    key = subject.key("object")
    subject.store.put(key, b"1")
    subject.store.put(key, b"22", Update(subject.other.head(key).etag))
    [listed] = subject.store.list_page(key).objects
    subject.store.put(key, b"333", Update(listed.etag))
    equal(subject.store.get(key), b"333", "content")


def check_update_missing(subject: Subject) -> None:
    """Check that an update of a deleted or missing object writes nothing."""
    key = subject.key("object")
    etag = subject.store.put(key, b"1").etag
    subject.store.delete(key)
    refused(PreconditionError, lambda: subject.store.put(key, b"2", Update(etag)), "update of a deleted object")
    never = subject.key("never")
    refused(PreconditionError, lambda: subject.store.put(never, b"2", Update(etag)), "update of a missing object")
    equal(subject.listed(), [], "listing")
