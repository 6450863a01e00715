"""Check conditional puts under many concurrent writers.

A store may honor each single condition and still let two writers win. Adobe S3Mock does: it first checks whether the
key is free, and then writes. In 12 of 40 rounds with 8 drivers each, two drivers won.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from holdfast.conformance import equal, expect
from holdfast.errors import OutcomeUnknownError, PreconditionError, UnavailableError
from holdfast.stores.base import Create, ObjectStore, Update
from holdfast.stores.conformance.subject import Subject


class _End(enum.Enum):
    WON = enum.auto()
    LOST = enum.auto()
    UNKNOWN = enum.auto()


def _race(subject: Subject, key: str, put: Callable[[int, ObjectStore], object], word: str) -> None:
    """Raise if more than one racer succeeds, or if the object is not the winner's. Racer n writes the number n."""

    def run(racer: int, store: ObjectStore) -> _End:
        try:
            put(racer, store)
        except (PreconditionError, UnavailableError):
            return _End.LOST
        except OutcomeUnknownError:
            return _End.UNKNOWN
        return _End.WON

    ends = subject.race(run)
    winners = [racer for racer, end in enumerate(ends) if end is _End.WON]
    expect(len(winners) <= 1, f"one of {len(ends)} {word} succeeds, not {len(winners)}")
    possible = winners or [racer for racer, end in enumerate(ends) if end is _End.UNKNOWN]
    expect(bool(possible), f"one of {len(ends)} {word} succeeds, not none")
    found = subject.other.get(key)
    expect(found in [b"%d" % racer for racer in possible], f"the content is the winner's: {possible}, not {found!r}")


def check_create_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent creates of a key succeeds, and that its content is stored."""
    for attempt in range(subject.rounds):
        key = subject.key(f"race-{attempt}")

        def create(racer: int, store: ObjectStore, key: str = key) -> object:
            return store.put(key, b"%d" % racer, Create())

        _race(subject, key, create, "creates")


def check_create_delete_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent creates succeeds, even right after the key's object was deleted."""
    key = subject.key("again")
    for _ in range(subject.rounds):
        subject.store.put(key, b"old")
        subject.store.delete(key)
        _race(subject, key, lambda racer, store: store.put(key, b"%d" % racer, Create()), "creates after a delete")


def check_update_race(subject: Subject) -> None:
    """Check that exactly one of several concurrent updates of a key succeeds, and that its content is stored."""
    key = subject.key("object")
    for attempt in range(subject.rounds):
        etag = subject.store.put(key, b"start %d" % attempt).etag

        def update(racer: int, store: ObjectStore, etag: str = etag) -> object:
            return store.put(key, b"%d" % racer, Update(etag))

        _race(subject, key, update, "updates")
    equal(subject.listed(), ["object"], "listing")
