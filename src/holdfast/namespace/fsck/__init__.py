"""Check a namespace, and repair it.

Start at `check` for what happens, at `survey` for the pass over the records, at `findings` and `checks.sql` for what
can be found, and at `repair` for what is done about it.
"""

from holdfast.namespace.fsck.check import CheckedNamespace, check
from holdfast.namespace.fsck.findings import (
    Finding,
    FindingKind,
    NamespaceCounts,
    Progress,
    Report,
    Severity,
    ignore_progress,
)
from holdfast.namespace.fsck.repair import Failure, RepairReport, repair

__all__ = [
    "CheckedNamespace",
    "Failure",
    "Finding",
    "FindingKind",
    "NamespaceCounts",
    "Progress",
    "RepairReport",
    "Report",
    "Severity",
    "check",
    "ignore_progress",
    "repair",
]
