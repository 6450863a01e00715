"""Check that all inodes hang together in one tree."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect
from holdfast.namespace.keys import ROOT_KEY


def _no_root(facts: Facts) -> Iterator[Suspect]:
    damaged = {key for key, _ in facts.damaged}
    if not facts.has_root and ROOT_KEY not in damaged:
        yield Suspect(key=ROOT_KEY)


def _orphans(facts: Facts) -> Iterator[Suspect]:
    for parent, children in facts.lost_parents:
        if parent not in facts.ids:
            yield Suspect(directory=parent, detail=f"entries: {children}")


def _files_with_children(facts: Facts) -> Iterator[Suspect]:
    for parent, children in facts.lost_parents:
        if parent in facts.ids:
            yield Suspect(number=parent, detail=f"entries: {children}")


def _cycles(facts: Facts) -> Iterator[Suspect]:
    for number, _ in facts.cycles:
        yield Suspect(number=number)


NO_ROOT = Checker(
    FindingKind(
        "no-root",
        Severity.DAMAGE,
        "there is no root directory",
        "repair: a root is made, and the tree hangs on it again",
    ),
    _no_root,
)
ORPHANS = Checker(
    FindingKind(
        "orphan",
        Severity.DAMAGE,
        "entries of a directory that does not exist",
        "repair: the directory is made again, with its entries, in /lost+found",
    ),
    _orphans,
)
FILES_WITH_CHILDREN = Checker(
    FindingKind(
        "file-with-children",
        Severity.DAMAGE,
        "a file has entries",
        "repair: the entries move to a directory in /lost+found",
    ),
    _files_with_children,
)
CYCLES = Checker(
    FindingKind("cycle", Severity.DAMAGE, "a directory is below itself", "repair: the directory moves to /lost+found"),
    _cycles,
)
