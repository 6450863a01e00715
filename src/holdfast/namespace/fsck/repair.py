"""Repair what a check finds, in rounds, until nothing is left that can be repaired.

Nothing is deleted but records of what does not exist. Entries and blobs that belong nowhere become entries of
``/lost+found/<time>``, and so do the bytes of damaged records. One repair may uncover the next: the entries of a
directory whose record was damaged are found as orphans in the next round. The young blobs of a damaged inode are found
only when their safety age is over: so such a repair is complete with the next one (`damage`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.errors import FencedError, HoldfastError
from holdfast.namespace.configuration import Configuration, require_configuration
from holdfast.namespace.fsck.check import Subject, check
from holdfast.namespace.fsck.findings import KINDS, Finding, Progress, Report, silent
from holdfast.namespace.fsck.repairs import REPAIRS, Workbench
from holdfast.namespace.fsck.survey import CLOSING_S, leased_files
from holdfast.namespace.maintenance import MaintenanceLock, forget_damage
from holdfast.namespace.paths import NsPath

_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """A finding whose repair failed, and why."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """The result of a repair.

    Attributes:
        repaired: what was found and repaired, in order.
        failed: what could not be repaired, though it is of a kind that can.
        report: a check after all repairs.
        shelf: the directory in /lost+found; empty if there was no need for one.
    """

    repaired: Sequence[Finding]
    failed: Sequence[Failure]
    report: Report
    shelf: str

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {
            "repaired": [finding.to_json() for finding in self.repaired],
            "failed": [{**failure.finding.to_json(), "reason": failure.reason} for failure in self.failed],
            "lost_and_found": self.shelf,
            **self.report.to_json(),
        }


def repair(subject: Subject, configuration: Configuration, progress: Progress = silent) -> RepairReport:
    """Repair a namespace, which may be in use.

    Guarantee: every step is one transaction, which validates what the check saw. The content of files does not change.

    Raises:
        ConflictError: another process repairs or sweeps: wait.
        FencedError: another process has taken over.
        InvalidRequestError: the blobs belong to another namespace; nothing happened.

    Crash: some repairs are done; call it again.
    """
    subject = replace(subject, safety_age_s=max(subject.safety_age_s, CLOSING_S))
    subject.blobs.hold()
    with MaintenanceLock.hold(subject.database, subject.environment, "repair") as lock:
        require_configuration(subject.database, subject.identity)  # now that losing it loses the lock

        def renewing(stage: str, done: int, total: int) -> None:
            lock.renew_if_due()
            progress(stage, done, total)

        work = _Work()
        shelf: NsPath | None = None
        while True:
            store_now_s = subject.blobs.store_time_s()
            leased = leased_files(subject.database)
            lock.announce()
            found = check(subject, renewing, store_now_s=store_now_s, leased=leased)
            bench = Workbench(subject, configuration, lock, shelf, store_now_s)
            is_done = not _repair_round(bench, found.findings, work, renewing)
            shelf = bench.shelf
            if is_done:
                break
        if KINDS["unowned-blob"] not in found.totals:
            forget_damage(subject.database, lock, store_now_s, subject.safety_age_s)
        return RepairReport(
            repaired=work.repaired,
            failed=list(work.failed.values()),
            report=found,
            shelf="" if shelf is None else str(shelf),
        )


_Identity = tuple[object, ...]


@dataclass(slots=True)
class _Work:
    """What all rounds have done.

    Attributes:
        tries: how often each finding was repaired: a repair that does not help must not be repeated without end.
    """

    repaired: list[Finding] = field(default_factory=list)
    failed: dict[_Identity, Failure] = field(default_factory=dict)
    tries: Counter[_Identity] = field(default_factory=Counter)


def _repair_round(bench: Workbench, findings: Sequence[Finding], work: _Work, progress: Progress) -> bool:
    """Repair each finding of a check once; return whether something was repaired."""
    before = len(work.repaired)
    for number, finding in enumerate(findings):
        identity = (finding.kind.name, *finding.keys, finding.blob, finding.number)
        if finding.kind.name not in REPAIRS or work.tries[identity] >= _MOST_TRIES:
            continue
        work.tries[identity] += 1
        progress("repairs", number, len(findings))
        try:
            is_repaired = REPAIRS[finding.kind.name](bench, finding)
        except FencedError:
            raise
        except HoldfastError as error:
            work.failed[identity] = Failure(finding, str(error))
            continue
        if is_repaired:
            work.failed.pop(identity, None)
            work.repaired.append(finding)
    bench.operations.times.flush()
    return len(work.repaired) > before
