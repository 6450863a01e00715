"""Check unconditional calls under many concurrent writers: listings, and puts and uploads to one key."""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.stores.base import ObjectStore, iter_objects, multipart
from holdfast.stores.conformance.subject import Subject

_MOST_OBJECTS = 20  # per writer, because each writer lists all of them after each put


def check_listing_under_writers(subject: Subject) -> None:
    """Check that each writer's listings show what it wrote and not what it deleted, while others write and delete.

    Job commits that find their files by listing depend on this (`Capabilities.consistent_listing`).
    """

    def write(racer: int, store: ObjectStore) -> str:
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

    for found in subject.race(write):
        expect(not found, f"every writer's listing shows what it wrote: {found}")


def check_overwrite_race(subject: Subject) -> None:
    """Check that after concurrent puts and uploads to one key, the object is exactly one of the written objects."""
    key, size = subject.key("object"), 200_000

    def write(racer: int, store: ObjectStore) -> bytes:
        content = b"%d" % racer * size
        if racer % 2 and store.capabilities.multipart is not None:
            uploads = multipart(store)
            upload_id = uploads.create_upload(key)
            uploads.complete_upload(key, upload_id, [uploads.upload_part(key, upload_id, 1, content)])
        else:
            store.put(key, content)
        return content

    written = subject.race(write)
    expect(subject.other.get(key) in written, "the object is exactly one of those that were written")
    equal(subject.listed(), ["object"], "listing")
