"""Prove from the records alone that a namespace is whole: a second opinion, which shares no code with `fsck`.

It decodes keys and values by itself, so that a mistake in the code under test cannot hide in the check.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from holdfast.stores.base import ObjectStore, iter_objects
from holdfast.transactions.base import Backend

__all__ = ["problems_of"]


@dataclass
class _Inode:
    key: bytes
    fields: dict[str, Any]

    @property
    def id(self) -> int:
        return int(self.fields["id"])

    @property
    def parent(self) -> int:
        return int.from_bytes(self.key[1:17], "big")

    @property
    def is_directory(self) -> bool:
        return bool(self.fields["kind"] == "directory")

    @property
    def space(self) -> int:
        sizes = sum(length for _, length, _ in self.fields.get("extents", ()))
        return int(sizes * self.fields.get("replication", 0))


@dataclass
class _Records:
    """All records by kind; the inodes by parent."""

    inodes: list[_Inode] = field(default_factory=list)
    below: dict[int, list[_Inode]] = field(default_factory=dict)
    others: dict[str, dict[bytes, Any]] = field(default_factory=dict)


def _read(database: Backend) -> _Records:
    found = _Records()
    with database.snapshot() as snapshot:
        page = snapshot.scan(b"\0", b"\xff", 10_000_000)
    for key, record in page.records:
        if key[:1] == b"i":
            inode = _Inode(key, json.loads(record.value))
            found.inodes.append(inode)
            found.below.setdefault(inode.parent, []).append(inode)
        else:
            found.others.setdefault(key[:1].decode(), {})[key[1:]] = record
    return found


def problems_of(
    database: Backend, store: ObjectStore | None = None, prefix: str = "", *, strays: bool = False
) -> list[str]:
    """Describe what is wrong with a namespace; nothing if it is whole.

    Args:
        store, prefix: where the blobs are; None if all files are small.
        strays: whether blobs that nothing refers to are allowed: clients that die leave some.
    """
    records = _read(database)
    problems = []
    roots = records.below.get(0, [])
    if [(one.key[17:], one.is_directory) for one in roots] != [(b"", True)]:
        return ["there is not exactly one root, or it is no directory"]
    live = _tree(records, roots[0].id)
    dead: dict[int, _Inode] = {}
    deleted = {}
    for key, record in records.others.get("r", {}).items():
        value = json.loads(record.value)
        number = int.from_bytes(key, "big")
        if value["inode"]["id"] != number:
            problems.append(f"deleted tree {number} contains another inode")
        deleted[number] = value
        dead |= {one.id: one for one in _tree(records, number)}
    known = {one.id for one in live} | dead.keys() | {roots[0].id}
    counts = Counter(one.id for one in records.inodes)
    problems += [f"{count} inodes have the id {number}" for number, count in counts.items() if count > 1]
    problems += [f"inode {one.id} is an orphan or in a cycle" for one in records.inodes if one.id not in known]
    problems += [f"inode {number} is alive and deleted" for number in {one.id for one in live} & dead.keys()]
    files = [one for one in records.inodes if not one.is_directory]
    problems += [f"file {one.id} has entries" for one in files if one.id in records.below]
    directories = {one.id for one in records.inodes if one.is_directory} | deleted.keys()
    for kind in "tw":
        for key in records.others.get(kind, {}):
            if int.from_bytes(key, "big") not in directories:
                problems.append(f"record {kind} of a directory that does not exist")
    problems += _leases(records, files)
    stored = (
        {one.key.rpartition("blobs/")[2]: one.size_bytes for one in iter_objects(store, f"{prefix}blobs/")}
        if store
        else {}
    )
    problems += _blobs(records, files, stored, strays=strays)
    problems += _usage(records, [roots[0], *live], deleted)
    return problems


def _tree(records: _Records, top: int) -> list[_Inode]:
    """Return everything below a directory; stops at what it has seen."""
    found: dict[int, _Inode] = {}
    waiting = [top]
    while waiting:
        for one in records.below.get(waiting.pop(), []):
            if one.id not in found and one.key[1:17] != bytes(16):
                found[one.id] = one
                if one.is_directory:
                    waiting.append(one.id)
    return list(found.values())


def _leases(records: _Records, files: list[_Inode]) -> list[str]:
    problems = []
    by_key = {one.key: one for one in files}
    leases = {int.from_bytes(key, "big"): json.loads(one.value) for key, one in records.others.get("l", {}).items()}
    for number, lease in leases.items():
        inode = by_key.get(bytes.fromhex(lease["key"]))
        if inode is None or inode.id != number or inode.fields.get("writer") != lease["holder"]:
            problems.append(f"the lease of file {number} does not lead to it")
    for one in files:
        if one.fields.get("writer") and one.id not in leases:
            problems.append(f"file {one.id} is being written without a lease")
    return problems


def _blobs(records: _Records, files: list[_Inode], stored: dict[str, int], *, strays: bool) -> list[str]:
    problems = []
    inline = {key.decode(): len(one.value) for key, one in records.others.get("s", {}).items()}
    garbage = {key[8:].decode() for key in records.others.get("g", {})}
    used: Counter[str] = Counter()
    for one in files:
        for blob, length, is_inline in one.fields.get("extents", ()):
            used[blob] += 1
            if (inline if is_inline else stored).get(blob, -1) < length:
                problems.append(f"file {one.id} lacks the blob {blob}")
            if blob in garbage:
                problems.append(f"blob {blob} of file {one.id} is garbage")
    problems += [f"{count} files share the blob {blob}" for blob, count in used.items() if count > 1]
    problems += [f"the small blob {blob} belongs to no file" for blob in inline.keys() - used.keys()]
    if not strays:
        problems += [f"the blob {blob} belongs to no file" for blob in stored.keys() - used.keys() - garbage]
    return problems


def _usage(records: _Records, live: list[_Inode], deleted: dict[int, Any]) -> list[str]:
    problems = []
    counters = {(int.from_bytes(key[:16], "big"), key[16:].decode()): one.number for key, one in _u(records).items()}
    for one in live:
        limits = one.fields.get("names_quota"), one.fields.get("space_quota")
        if limits == (None, None):
            continue
        below = _tree(records, one.id)
        names, space = 1 + len(below), sum(each.space for each in below)
        for number, tree in deleted.items():
            if one.fields["quota_id"] in tree["charged"]:
                gone = _tree(records, number)
                names, space = names + 1 + len(gone), space + sum(each.space for each in gone)
        found = [counters.pop((one.fields["quota_id"], what), 0) for what in "ns"]
        if found != [names, space]:
            problems.append(f"the quota of directory {one.id} counts {found}, and {names}, {space} are there")
    return problems


def _u(records: _Records) -> dict[bytes, Any]:
    return records.others.get("u", {})
