"""Check that nothing is noted as garbage that a file still needs."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect


def _find(facts: Facts) -> Iterator[Suspect]:
    for blob, _ in facts.referenced_notes:
        yield Suspect(blob=blob)


REFERENCED_GARBAGE = Checker(
    FindingKind(
        "referenced-garbage",
        Severity.DAMAGE,
        "a blob of a file is noted as garbage",
        "repair before the safety age of the blob is over: the note is deleted",
    ),
    _find,
    lambda facts: facts.referenced_notes.total,
)
