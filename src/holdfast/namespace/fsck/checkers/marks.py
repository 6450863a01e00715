"""Look for directories that a client froze, and did not thaw before it died."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect


def _find(facts: Facts) -> Iterator[Suspect]:
    for key, _ in facts.marks:
        yield Suspect(key=key)


EXPIRED_MARKS = Checker(
    FindingKind(
        "expired-mark",
        Severity.LEFTOVER,
        "a directory is marked as being counted, and nobody counts it",
        "nothing: the next operation below it removes the mark; or repair",
    ),
    _find,
    lambda facts: facts.marks.total,
)
