"""Map each kind of finding to its repair. A kind without a line here is reported only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.namespace.fsck.checkers.blobs import SHARED_BLOBS, UNOWNED
from holdfast.namespace.fsck.checkers.deleted_trees import DELETED_TREES
from holdfast.namespace.fsck.checkers.garbage import REFERENCED_GARBAGE
from holdfast.namespace.fsck.checkers.ids import DUPLICATE_IDS
from holdfast.namespace.fsck.checkers.leases import LEASES_WITHOUT_FILE, STALE_LEASES, WRITERS_WITHOUT_LEASE
from holdfast.namespace.fsck.checkers.marks import EXPIRED_MARKS
from holdfast.namespace.fsck.checkers.quotas import STRAY_USAGE, WRONG_USAGE
from holdfast.namespace.fsck.checkers.records import BAD_NAMES, DAMAGED_RECORDS
from holdfast.namespace.fsck.checkers.times import STRAY_PLACES, STRAY_TIMES
from holdfast.namespace.fsck.checkers.tree import CYCLES, FILES_WITH_CHILDREN, NO_ROOT, ORPHANS
from holdfast.namespace.fsck.findings import Finding, FindingKind
from holdfast.namespace.fsck.repairs import blobs, leases, records, tree
from holdfast.namespace.fsck.repairs.workbench import Workbench

RepairStep = Callable[[Workbench, Finding], bool]
"""Repair one finding in a transaction that validates what it saw; return False if there is nothing to do anymore."""

REPAIRS: Mapping[FindingKind, RepairStep] = {
    NO_ROOT.kind: tree.make_root,
    DAMAGED_RECORDS.kind: records.keep_damaged_record,
    BAD_NAMES.kind: tree.rename_badly_named,
    DUPLICATE_IDS.kind: tree.give_new_ids,
    FILES_WITH_CHILDREN.kind: tree.split_file_with_children,
    DELETED_TREES.kind: tree.forget_deleted_tree,
    ORPHANS.kind: tree.attach_orphans,
    CYCLES.kind: tree.break_cycle,
    REFERENCED_GARBAGE.kind: blobs.delete_notes,
    SHARED_BLOBS.kind: blobs.copy_shared,
    UNOWNED.kind: blobs.attach_unowned,
    WRITERS_WITHOUT_LEASE.kind: leases.close_file,
    LEASES_WITHOUT_FILE.kind: leases.delete_lease,
    STALE_LEASES.kind: leases.end_stale_lease,
    EXPIRED_MARKS.kind: records.remove_mark,
    STRAY_TIMES.kind: records.delete_record,
    STRAY_PLACES.kind: records.delete_record,
    STRAY_USAGE.kind: records.delete_record,
    WRONG_USAGE.kind: records.count_again,
}
