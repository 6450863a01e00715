"""Check that deleted trees have left the tree."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect


def _find(facts: Facts) -> Iterator[Suspect]:
    for number in facts.deleted:
        if number in facts.ids:
            yield Suspect(number=number)


DELETED_TREES = Checker(
    FindingKind(
        "deleted-tree",
        Severity.DAMAGE,
        "a directory waits for its collection, and still exists",
        "repair before the next holdfast namespace gc, which would delete its entries: the directory stays",
    ),
    _find,
)
