"""Repair files that are being written, and leases."""

from __future__ import annotations

from dataclasses import replace

from holdfast.namespace.changes import Changes
from holdfast.namespace.collector import end_silent_lease
from holdfast.namespace.fsck.findings import Finding
from holdfast.namespace.fsck.repairs.workbench import Workbench
from holdfast.namespace.keys import lease_key
from holdfast.namespace.lease import HARD_LIMIT_MS, Lease
from holdfast.namespace.view import Entry


def close_file(bench: Workbench, finding: Finding) -> bool:
    """Close a file whose writer has no lease; what was synced stays."""
    seen = bench.inode(finding.keys[0])
    if seen is None or not seen.inode.writer or lease_key(seen.inode.id) in bench.records([lease_key(seen.inode.id)]):
        return False
    changes: Changes[None] = Changes(None)
    changes.puts[seen.key] = replace(seen.inode, writer="")
    return bench.commit(changes, {seen.key: seen.entry, lease_key(seen.inode.id): None})


def delete_lease(bench: Workbench, finding: Finding) -> bool:
    """Delete a lease whose holder writes no file."""
    (key,) = finding.keys
    record = bench.records([key]).get(key)
    if record is None:
        return False
    lease = Lease.decode(key, record.value)
    seen = bench.inode(lease.key)
    if seen is not None and lease_key(seen.inode.id) == key and seen.inode.writer == lease.holder:
        return False
    changes: Changes[None] = Changes(None)
    changes.deletes.add(key)
    file = {} if seen is None else {seen.key: seen.entry}
    return bench.commit(changes, {key: Entry(record.version, None), **file})


def end_stale_lease(bench: Workbench, finding: Finding) -> bool:
    """Close the file of a silent writer, as the collector does."""
    seen = bench.inode(finding.keys[0])
    if seen is None:
        return False
    key = lease_key(seen.inode.id)
    record = bench.records([key]).get(key)
    if record is None or not Lease.decode(key, record.value).is_silent(bench.now_ms(), HARD_LIMIT_MS):
        return False
    return end_silent_lease(bench.subject.database, key, record)
