"""Checks of conditional puts: the commit point of a job is one of them."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import PreconditionError
from holdfast.seams.runner import ThreadRunner
from holdfast.stores.base import Create, Update
from holdfast.stores.conformance.subject import Subject, equal, expect, refused

__all__ = [
    "check_create",
    "check_create_after_delete",
    "check_create_race",
    "check_update",
    "check_update_missing",
    "check_update_of_listed",
    "check_update_race",
]

_RACERS = 8


def check_create(subject: Subject) -> None:
    """A create-only put writes what is not there and never replaces."""
    key = subject.key("log/00000000000000000001.json")
    subject.store.put(key, b"first", Create())
    refused(PreconditionError, lambda: subject.other.put(key, b"second", Create()), "create over an object")
    refused(PreconditionError, lambda: subject.store.put(key, b"first", Create()), "create of the same content")
    equal(subject.store.get(key), b"first", "content")
    # An empty object is an object: neither side's emptiness makes room.
    empty = subject.key("empty")
    subject.store.put(empty, b"", Create())
    refused(PreconditionError, lambda: subject.store.put(empty, b"full", Create()), "create over an empty object")
    refused(PreconditionError, lambda: subject.store.put(empty, b"", Create()), "empty create over an empty object")
    refused(PreconditionError, lambda: subject.store.put(key, b"", Create()), "empty create over an object")
    equal(subject.store.get(empty), b"", "content")


def check_create_after_delete(subject: Subject) -> None:
    """A key is free again when its object is deleted."""
    key = subject.key("log/1")
    subject.store.put(key, b"1", Create())
    subject.store.delete(key)
    subject.store.put(key, b"2", Create())
    equal(subject.store.get(key), b"2", "content")


def check_update(subject: Subject) -> None:
    """An update writes over the expected object only."""
    key = subject.key("object")
    first = subject.store.put(key, b"1")
    second = subject.other.put(key, b"22", Update(first.etag))
    refused(PreconditionError, lambda: subject.store.put(key, b"333", Update(first.etag)), "update over another object")
    equal(subject.store.get(key), b"22", "content")
    subject.store.put(key, b"4444", Update(second.etag))
    equal(subject.store.get(key), b"4444", "content")


def check_update_of_listed(subject: Subject) -> None:
    """The etag that head and listings show is the one that an update expects."""
    key = subject.key("object")
    subject.store.put(key, b"1")
    subject.store.put(key, b"22", Update(subject.other.head(key).etag))
    [listed] = subject.store.list_page(key).objects
    subject.store.put(key, b"333", Update(listed.etag))
    equal(subject.store.get(key), b"333", "content")


def check_update_missing(subject: Subject) -> None:
    """An update of what is gone, or was never there, writes nothing."""
    key = subject.key("object")
    etag = subject.store.put(key, b"1").etag
    subject.store.delete(key)
    refused(PreconditionError, lambda: subject.store.put(key, b"2", Update(etag)), "update of what is gone")
    never = subject.key("never")
    refused(PreconditionError, lambda: subject.store.put(never, b"2", Update(etag)), "update of what never was")
    equal(subject.listed(), [], "listing")


def _winners(subject: Subject, put: Callable[[int], object]) -> list[int]:
    def race(racer: int) -> int | None:
        try:
            put(racer)
        except PreconditionError:
            return None
        return racer

    return [racer for racer in ThreadRunner(_RACERS).map(race, range(_RACERS)) if racer is not None]


def check_create_race(subject: Subject) -> None:
    """Of many who create one key at once, exactly one succeeds, and its content is there."""
    for attempt in range(5):
        key = subject.key(f"race-{attempt}")
        handles = (subject.store, subject.other)

        def create(racer: int, key: str = key, handles: tuple[object, ...] = handles) -> object:
            return (subject.store, subject.other)[racer % 2].put(key, b"%d" % racer, Create())

        winners = _winners(subject, create)
        expect(len(winners) == 1, f"one of {_RACERS} creates succeeds, not {len(winners)}")
        equal(subject.store.get(key), b"%d" % winners[0], "content")


def check_update_race(subject: Subject) -> None:
    """Of many who update one object at once, exactly one succeeds, and its content is there."""
    key = subject.key("object")
    etag = subject.store.put(key, b"start").etag
    for attempt in range(5):

        def update(racer: int, attempt: int = attempt, etag: str = etag) -> object:
            return (subject.store, subject.other)[racer % 2].put(key, b"%d-%d" % (attempt, racer), Update(etag))

        winners = _winners(subject, update)
        expect(len(winners) == 1, f"one of {_RACERS} updates succeeds, not {len(winners)}")
        equal(subject.store.get(key), b"%d-%d" % (attempt, winners[0]), "content")
        etag = subject.store.head(key).etag
