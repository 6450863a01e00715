"""Repair the tree: what hangs nowhere moves to /lost+found, with everything below it."""

from __future__ import annotations

from dataclasses import replace

from holdfast.namespace.changes import Changes
from holdfast.namespace.fsck.findings import Finding
from holdfast.namespace.fsck.repairs.workbench import Workbench
from holdfast.namespace.fsck.survey import is_readable
from holdfast.namespace.keys import (
    NO_PARENT,
    ROOT_ID,
    ROOT_KEY,
    children_range,
    data_key,
    deleted_key,
    lease_key,
    name_of,
)
from holdfast.namespace.view import Entry

_PAGE = 100


def make_root(bench: Workbench, finding: Finding) -> bool:
    """Make a root. The bytes of a damaged one are kept as the record of a small file, which no file refers to yet."""
    record = bench.records([ROOT_KEY]).get(ROOT_KEY)
    seen = bench.inode(ROOT_KEY)
    if seen is not None and seen.inode.is_directory and seen.inode.id == ROOT_ID:
        return False
    changes: Changes[None] = Changes(None)
    root = bench.new_directory(ROOT_ID, 0o755)
    changes.puts[ROOT_KEY] = replace(root, namespace=bench.configuration.identity)
    if record is not None:
        _, stored = bench.subject.blobs.small(ROOT_ID, record.value)
        changes.new_values.update({data_key(blob): value for blob, value in stored.items()})
    return bench.commit(changes, {ROOT_KEY: None if record is None else Entry(record.version, None)})


def rename_badly_named(bench: Workbench, finding: Finding) -> bool:
    """Move an entry whose name no path can have."""
    (key,) = finding.keys
    seen = bench.inode(key)
    return seen is not None and bench.move(key, seen.inode.id, f"name-{name_of(key).hex()}")


def attach_orphans(bench: Workbench, finding: Finding) -> bool:
    """Make the missing directory again, with its id: so all its entries are in it again, however many there are."""
    start, end = children_range(finding.number)
    page = bench.subject.database.scan(start, end, _PAGE)
    entries = [(key, record) for key, record in page.records if key != ROOT_KEY and is_readable(key, record)]
    if not entries:
        return False
    if finding.number == NO_PARENT:  # no directory can have this id
        moved = [bench.move(key, seen.inode.id, _name_of_lost(key)) for key, _ in entries if (seen := bench.inode(key))]
        return any(moved)
    key, record = entries[0]
    changes: Changes[None] = Changes(None)
    directory = bench.new_directory(finding.number)
    return bench.shelve(f"directory-{finding.number}", directory, changes, {key: Entry(record.version, None)})


def _name_of_lost(key: bytes) -> str:
    return f"entry-{name_of(key).decode(errors='replace')}".replace("/", "-").replace(":", "-").replace("\0", "-")


def break_cycle(bench: Workbench, finding: Finding) -> bool:
    """Move one directory of a cycle, and with it all the others."""
    return bench.move(finding.keys[0], finding.number, f"directory-{finding.number}")


def give_new_ids(bench: Workbench, finding: Finding) -> bool:
    """Give all but one of several inodes new ids. Entries stay with the one that keeps the id: a directory."""
    found = [seen for key in finding.keys if (seen := bench.inode(key)) and seen.inode.id == finding.number]
    if len(found) < 2:
        return False
    keeper, *others = sorted(found, key=lambda seen: not seen.inode.is_directory)
    changes: Changes[None] = Changes(None)
    for seen in others:
        changes.puts[seen.key] = replace(
            seen.inode, id=bench.new_id(), writer="", names_quota=None, space_quota=None, quota_id=0
        )
    return bench.commit(changes, {seen.key: seen.entry for seen in (keeper, *others)})


def split_file_with_children(bench: Workbench, finding: Finding) -> bool:
    """Give the file another id: its entries are then those of a directory that does not exist."""
    seen = bench.inode(finding.keys[0])
    if seen is None or seen.inode.is_directory or seen.inode.id != finding.number:
        return False
    changes: Changes[None] = Changes(None)
    changes.puts[seen.key] = replace(seen.inode, id=bench.new_id(), writer="")
    if seen.inode.writer:
        changes.deletes.add(lease_key(finding.number))
    return bench.commit(changes, {seen.key: seen.entry})


def forget_deleted_tree(bench: Workbench, finding: Finding) -> bool:
    """Delete the note that a directory waits for its collection: it still exists."""
    seen = bench.inode(finding.keys[0])
    key = deleted_key(finding.number)
    record = bench.records([key]).get(key)
    if seen is None or record is None or seen.inode.id != finding.number:
        return False
    changes: Changes[None] = Changes(None)
    changes.deletes.add(key)
    return bench.commit(changes, {seen.key: seen.entry, key: Entry(record.version, None)})
