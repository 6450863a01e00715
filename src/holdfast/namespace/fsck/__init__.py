"""Check a namespace, and repair it.

Start at `check` for what happens, at `survey` for the pass over the records, at `checkers` for what can be found, and
at `repair` for what is done about it.
"""

from holdfast.namespace.fsck.check import Subject, check
from holdfast.namespace.fsck.findings import Finding, FindingKind, Severity
from holdfast.namespace.fsck.progress import Progress, silent
from holdfast.namespace.fsck.repair import Failure, RepairReport, repair
from holdfast.namespace.fsck.report import Counts, Report

__all__ = [
    "Counts",
    "Failure",
    "Finding",
    "FindingKind",
    "Progress",
    "RepairReport",
    "Report",
    "Severity",
    "Subject",
    "check",
    "repair",
    "silent",
]
