"""Check that times and places of directories belong to directories."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect
from holdfast.namespace.keys import place_key, times_key


def _times(facts: Facts) -> Iterator[Suspect]:
    for number in facts.stray_times:
        yield Suspect(key=times_key(number), detail=f"inode {number}")


def _places(facts: Facts) -> Iterator[Suspect]:
    for number in facts.stray_places:
        yield Suspect(key=place_key(number), detail=f"inode {number}")


STRAY_TIMES = Checker(
    FindingKind(
        "stray-time",
        Severity.LEFTOVER,
        "the time of a directory that does not exist",
        "run holdfast namespace gc --sweep, or repair: it is deleted",
    ),
    _times,
)
STRAY_PLACES = Checker(
    FindingKind(
        "stray-place",
        Severity.LEFTOVER,
        "the place of a renamed directory that does not exist",
        "run holdfast namespace gc --sweep, or repair: it is deleted",
    ),
    _places,
)
