"""Check that inode ids are used once."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect
from holdfast.namespace.keys import NEXT_ID

__all__ = ["DUPLICATE_IDS", "NEXT_ID_TOO_LOW"]


def _duplicates(facts: Facts) -> Iterator[Suspect]:
    for number in facts.ids.duplicates():
        yield Suspect(number=number)


def _next_id(facts: Facts) -> Iterator[Suspect]:
    quotas = (quota.quota_id for quota in facts.quotas.values())
    largest = max(facts.ids.largest, facts.deleted.largest, facts.largest_upload, max(quotas, default=0))
    if largest >= facts.next_id:
        yield Suspect(key=NEXT_ID, number=largest, detail=f"next {facts.next_id}, used {largest}")


DUPLICATE_IDS = Checker(
    FindingKind(
        "duplicate-id",
        Severity.DAMAGE,
        "several inodes have one id",
        "repair: all but one get another id; entries stay with the directory that keeps it",
    ),
    _duplicates,
)
NEXT_ID_TOO_LOW = Checker(
    FindingKind(
        "next-id", Severity.DAMAGE, "ids are in use that will be given out again", "repair: the next id is raised"
    ),
    _next_id,
)
