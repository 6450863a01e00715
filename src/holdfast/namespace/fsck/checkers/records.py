"""Check that records and names can be read."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect


def _damaged(facts: Facts) -> Iterator[Suspect]:
    for key, _ in facts.damaged:
        yield Suspect(key=key)


def _misnamed(facts: Facts) -> Iterator[Suspect]:
    for key, _ in facts.misnamed:
        yield Suspect(key=key)


DAMAGED_RECORDS = Checker(
    FindingKind(
        "damaged-record",
        Severity.DAMAGE,
        "a record cannot be read",
        "repair: its bytes become a file in /lost+found; what it described is found in the next round",
    ),
    _damaged,
    lambda facts: facts.damaged.total,
)
BAD_NAMES = Checker(
    FindingKind(
        "bad-name",
        Severity.DAMAGE,
        "an entry has a name that no path can have",
        "repair: it moves to /lost+found under another name",
    ),
    _misnamed,
    lambda facts: facts.misnamed.total,
)
