"""Repair single records: keep the bytes of damaged ones, delete those of what does not exist."""

from __future__ import annotations

from dataclasses import replace

from holdfast.namespace.changes import Changes
from holdfast.namespace.fsck.damage import NAMES_BLOBS, damage_note
from holdfast.namespace.fsck.findings import Finding
from holdfast.namespace.fsck.repairs.tree import make_root
from holdfast.namespace.fsck.repairs.workbench import Workbench
from holdfast.namespace.fsck.survey import is_readable
from holdfast.namespace.inode import Extent
from holdfast.namespace.keys import DAMAGED, ROOT_KEY, data_key
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import Entry


def keep_damaged_record(bench: Workbench, finding: Finding) -> bool:
    """Move the bytes of a damaged record into a file; its key is an attribute of the file."""
    (key,) = finding.keys
    if key == ROOT_KEY:
        return make_root(bench, finding)
    record = bench.records([key]).get(key)
    if record is None or is_readable(key, record):
        return False
    changes: Changes[None] = Changes(None)
    changes.deletes.add(key)
    if key[:1] in NAMES_BLOBS:
        changes.values[DAMAGED] = damage_note(bench.store_now_s)
    extents: tuple[Extent, ...] = ()
    if record.value:
        extent, stored = bench.subject.blobs.small(bench.new_id(), record.value)
        changes.new_values.update({data_key(blob): value for blob, value in stored.items()})
        extents = (extent,)
    file = bench.new_file(extents, {"user.key": key, "user.number": str(record.number).encode()})
    name = f"record-{chr(key[0])}-{key[1:].hex()}"
    return bench.shelve(name, file, changes, {key: Entry(record.version, None)})


def delete_record(bench: Workbench, finding: Finding) -> bool:
    """Delete the record of something that does not exist, and whose id is never used again."""
    (key,) = finding.keys
    record = bench.records([key]).get(key)
    if record is None or finding.version not in (0, record.version):
        return False
    changes: Changes[None] = Changes(None)
    changes.deletes.add(key)
    return bench.commit(changes, {key: Entry(record.version, None)})


def remove_mark(bench: Workbench, finding: Finding) -> bool:
    """Remove a mark that has expired."""
    seen = bench.inode(finding.keys[0])
    if seen is None or not seen.inode.moving or seen.inode.is_frozen(bench.now_ms()):
        return False
    changes: Changes[None] = Changes(None)
    changes.puts[seen.key] = replace(seen.inode, moving="", moving_until_ms=0)
    return bench.commit(changes, {seen.key: seen.entry})


def count_again(bench: Workbench, finding: Finding) -> bool:
    """Count what a directory with a quota uses, while nobody can change it."""
    bench.trees.recount(NsPath.parse(finding.path), bench.caller)
    return True
