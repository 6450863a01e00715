"""Check that the files that are being written, and the leases of their writers, belong together."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect
from holdfast.namespace.keys import lease_key
from holdfast.namespace.lease import HARD_LIMIT_MS, Lease


def _writers_without_lease(facts: Facts) -> Iterator[Suspect]:
    for number, file in facts.open_files.items():
        if number not in facts.leases:
            yield Suspect(key=file.key)


def _leases_without_file(facts: Facts) -> Iterator[Suspect]:
    for number, lease in facts.leases.items():
        if not _fits(facts, number, lease):
            yield Suspect(key=lease_key(number), detail=f"inode {number}")


def _stale(facts: Facts) -> Iterator[Suspect]:
    for number, lease in facts.leases.items():
        if _fits(facts, number, lease) and lease.is_silent(facts.now_ms, HARD_LIMIT_MS):
            minutes = (facts.now_ms - lease.renewed_ms) // 60_000
            detail = f"silent for {minutes} minutes" if minutes >= 0 else "dated by a wrong clock"
            yield Suspect(key=lease.key, detail=detail)


def _fits(facts: Facts, number: int, lease: Lease) -> bool:
    file = facts.open_files.get(number)
    return file is not None and (file.key, file.writer) == (lease.key, lease.holder)


WRITERS_WITHOUT_LEASE = Checker(
    FindingKind(
        "writer-without-lease", Severity.DAMAGE, "a file is being written without a lease", "repair: it is closed"
    ),
    _writers_without_lease,
)
LEASES_WITHOUT_FILE = Checker(
    FindingKind(
        "lease-without-file",
        Severity.DAMAGE,
        "a lease of a file that its holder does not write",
        "repair: it is deleted",
    ),
    _leases_without_file,
)
STALE_LEASES = Checker(
    FindingKind(
        "stale-lease",
        Severity.LEFTOVER,
        "the writer of a file is silent",
        "run holdfast namespace gc, or repair: the file is closed, with what was synced",
    ),
    _stale,
)
