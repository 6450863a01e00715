"""Check that every file has its bytes, and that all blobs belong to files."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.blobs import writer_of
from holdfast.namespace.fsck.blob_table import NOTED, OWNED, PROTECTED, YOUNG, BlobRow, BlobTable
from holdfast.namespace.fsck.facts import Facts, Few
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect
from holdfast.namespace.keys import data_key


def _blobs(found: Few[str]) -> Iterator[Suspect]:
    for blob, detail in found:
        yield Suspect(blob=blob, detail=detail)


def unreferenced(table: BlobTable) -> Iterator[BlobRow]:
    """Yield the blobs to which nothing refers, no garbage note either; not foreign objects."""
    return (row for row in table.rows_without(OWNED | NOTED | PROTECTED) if writer_of(row.name) is not None)


def is_in_progress(facts: Facts, row: BlobRow) -> bool:
    """Check whether an unreferenced blob may still be published: it is young, or its writer has a lease.

    A lease protects it however long the writer is silent: until somebody takes the lease, the writer may publish.
    """
    writer = writer_of(row.name)
    return bool(row.flags & YOUNG) or writer in facts.leases or writer in facts.leased


def unowned(facts: Facts) -> Iterator[BlobRow]:
    """Yield the objects to which nothing refers, and nothing ever will."""
    return (row for row in unreferenced(facts.objects) if not is_in_progress(facts, row))


def _unowned(facts: Facts) -> Iterator[Suspect]:
    for row in unowned(facts):
        yield Suspect(object=row.name, detail=f"{row.size} bytes")
    for row in facts.data.rows_without(OWNED | PROTECTED):
        yield Suspect(key=data_key(row.name), detail=f"{row.size} bytes")


def _foreign(facts: Facts) -> Iterator[Suspect]:
    for row in facts.objects.rows_without(OWNED | NOTED | PROTECTED):
        if writer_of(row.name) is None:
            yield Suspect(object=row.name, detail=f"{row.size} bytes")


MISSING_BLOBS = Checker(
    FindingKind(
        "missing-blob",
        Severity.DAMAGE,
        "bytes of a file are missing",
        "restore the object from a backup, or delete the file: no repair can bring them back",
        repairable=False,
    ),
    lambda facts: _blobs(facts.missing),
    lambda facts: facts.missing.total,
)
SHORT_BLOBS = Checker(
    FindingKind(
        "short-blob",
        Severity.DAMAGE,
        "a blob is shorter than its file needs",
        "restore the object from a backup, or truncate the file: no repair can bring the bytes back",
        repairable=False,
    ),
    lambda facts: _blobs(facts.short),
    lambda facts: facts.short.total,
)
DAMAGED_BLOBS = Checker(
    FindingKind(
        "damaged-blob",
        Severity.DAMAGE,
        "bytes of a file are not those that were written",
        "restore the blob from a backup, or write the file again: no repair can bring the bytes back",
        repairable=False,
    ),
    lambda facts: _blobs(facts.damaged_blobs),
    lambda facts: facts.damaged_blobs.total,
)
SHARED_BLOBS = Checker(
    FindingKind(
        "shared-blob",
        Severity.DAMAGE,
        "several files have one blob",
        "repair: all but one get copies; without, deleting one file destroys the others",
    ),
    lambda facts: _blobs(facts.shared),
    lambda facts: facts.shared.total,
)
UNOWNED = Checker(
    FindingKind(
        "unowned-blob",
        Severity.LEFTOVER,
        "a blob belongs to no file",
        "run holdfast namespace gc --sweep, which deletes it, unless it is in the database or damaged records may have "
        "named it; or repair: it becomes a file in /lost+found",
    ),
    _unowned,
)
FOREIGN_OBJECTS = Checker(
    FindingKind(
        "foreign-object",
        Severity.LEFTOVER,
        "an object among the blobs is not one",
        "move it elsewhere: Holdfast did not write it, and never touches it",
        repairable=False,
    ),
    _foreign,
)
