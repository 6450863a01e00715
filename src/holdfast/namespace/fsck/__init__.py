"""Check a namespace, and repair it.

Start at `check` for what happens, at `survey` for the pass over the records, at `findings` and `checks.sql` for what
can be found, and at `repair` for what is done about it.
"""

from holdfast.namespace.fsck.check import Subject, check
from holdfast.namespace.fsck.findings import Counts, Finding, FindingKind, Progress, Report, Severity, silent
from holdfast.namespace.fsck.repair import Failure, RepairReport, repair

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
