"""List the checkers. A new kind of finding needs a line here, and one in `repairs.registry` if it can be repaired."""

from __future__ import annotations

from holdfast.namespace.fsck.checkers.blobs import (
    DAMAGED_BLOBS,
    FOREIGN_OBJECTS,
    MISSING_BLOBS,
    SHARED_BLOBS,
    SHORT_BLOBS,
    UNOWNED,
)
from holdfast.namespace.fsck.checkers.deleted_trees import DELETED_TREES
from holdfast.namespace.fsck.checkers.garbage import REFERENCED_GARBAGE
from holdfast.namespace.fsck.checkers.ids import DUPLICATE_IDS
from holdfast.namespace.fsck.checkers.leases import LEASES_WITHOUT_FILE, STALE_LEASES, WRITERS_WITHOUT_LEASE
from holdfast.namespace.fsck.checkers.marks import EXPIRED_MARKS
from holdfast.namespace.fsck.checkers.quotas import STRAY_USAGE, WRONG_USAGE
from holdfast.namespace.fsck.checkers.records import BAD_NAMES, DAMAGED_RECORDS
from holdfast.namespace.fsck.checkers.times import STRAY_PLACES, STRAY_TIMES
from holdfast.namespace.fsck.checkers.tree import CYCLES, FILES_WITH_CHILDREN, NO_ROOT, ORPHANS
from holdfast.namespace.fsck.findings import Checker

# In this order they are repaired: new inodes need a root to hang on.
CHECKERS: tuple[Checker, ...] = (
    NO_ROOT,
    DAMAGED_RECORDS,
    BAD_NAMES,
    DUPLICATE_IDS,
    FILES_WITH_CHILDREN,
    DELETED_TREES,
    ORPHANS,
    CYCLES,
    REFERENCED_GARBAGE,
    MISSING_BLOBS,
    SHORT_BLOBS,
    DAMAGED_BLOBS,
    SHARED_BLOBS,
    UNOWNED,
    FOREIGN_OBJECTS,
    WRITERS_WITHOUT_LEASE,
    LEASES_WITHOUT_FILE,
    STALE_LEASES,
    EXPIRED_MARKS,
    STRAY_TIMES,
    STRAY_PLACES,
    STRAY_USAGE,
    WRONG_USAGE,
)
