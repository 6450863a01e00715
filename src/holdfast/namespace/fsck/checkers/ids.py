"""Check that inode ids are used once."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect


def _duplicates(facts: Facts) -> Iterator[Suspect]:
    for number in facts.ids.duplicates():
        yield Suspect(number=number)


DUPLICATE_IDS = Checker(
    FindingKind(
        "duplicate-id",
        Severity.DAMAGE,
        "several inodes have one id",
        "repair: all but one get another id; entries stay with the directory that keeps it",
    ),
    _duplicates,
)
