"""Decode the database records of a namespace in a state of the world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from holdfast.namespace.blobs import BLOBS as FOLDER
from holdfast.namespace.blobs import unframe_blob_range
from holdfast.namespace.inode import Extent, Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, data_key, entry_name_in_key, lease_key, parent_id_in_key, usage_key
from holdfast.namespace.other_records import DeletedTree, Upload
from holdfast.transactions.base import Record
from holdfast_checker.kernel.world import View
from holdfast_checker.namespace.model import ModelNode, ModelTree
from holdfast_checker.simulated.database import DATABASE, DatabaseState, RecordMap

_decoded = lru_cache(maxsize=100_000)(decode_inode)


@dataclass(frozen=True)
class NamespaceContents:
    """The decoded database records of a namespace: inodes, deleted trees, uploads.

    Attributes:
        inodes: files and directories, by key of their record.
        deleted: the deleted trees that wait for garbage collection.
        uploads: the uploads that are not completed.
    """

    records: Mapping[bytes, Record]

    @cached_property
    def inodes(self) -> Mapping[bytes, Inode]:
        return {key: _decoded(key, one.value) for key, one in self.records.items() if key.startswith(b"i")}

    @cached_property
    def deleted(self) -> Mapping[bytes, DeletedTree]:
        return {key: DeletedTree.decode(key, one.value) for key, one in self.records.items() if key.startswith(b"r")}

    @cached_property
    def uploads(self) -> Sequence[Upload]:
        return [Upload.decode(key, one.value) for key, one in self.records.items() if key.startswith(b"p")]

    @cached_property
    def children_by_parent(self) -> Mapping[int, list[bytes]]:
        found: dict[int, list[bytes]] = {}
        for key in self.inodes:
            found.setdefault(parent_id_in_key(key), []).append(key)
        return found

    @cached_property
    def structure_faults(self) -> tuple[str, ...]:
        """Descriptions of structural errors: inodes that do not form a tree, or a writer without a lease."""
        root = self.inodes.get(ROOT_KEY)
        found = [] if root is not None and root.is_directory else ["the root is no directory"]
        to_visit = [(b"", tree.root) for tree in self.deleted.values()] + ([] if root is None else [(ROOT_KEY, root)])
        reached, ids = set[bytes](), set[int]()
        while to_visit:
            key, inode = to_visit.pop()
            reached.add(key)
            if inode.id in ids:
                found.append(f"two paths lead to the inode {inode.id}")
                continue
            ids.add(inode.id)
            below = self.children_by_parent.get(inode.id, [])
            if below and not inode.is_directory:
                found.append(f"{entry_name_in_key(below[0]).decode()!r} is in a file")
            to_visit += [(one, self.inodes[one]) for one in below]
        lost = sorted(entry_name_in_key(key).decode() for key in self.inodes.keys() - reached)
        found += [f"no path leads to {', '.join(lost)}"] if lost else []
        unled = (key for key, one in self.inodes.items() if one.writer and lease_key(one.id) not in self.records)
        return (*found, *(f"{entry_name_in_key(key).decode()!r} has a writer and no lease" for key in unled))

    @cached_property
    def blobs(self) -> frozenset[str]:
        """The names of all blobs in the object store that files refer to."""
        return frozenset(one.blob for inode in self.inodes.values() for one in inode.extents if not one.inline)

    @cached_property
    def missing_inline_blobs(self) -> tuple[str, ...]:
        """The names of blobs that files refer to, whose bytes must be in the database, but are missing."""
        inline = [one.blob for inode in self.inodes.values() for one in inode.extents if one.inline]
        return tuple(blob for blob in inline if data_key(blob) not in self.records)

    @cached_property
    def wrong_quota_counters(self) -> tuple[str, ...]:
        """Descriptions of quota counters that differ from the actual numbers of names and bytes."""
        found = []
        for key, inode in self.inodes.items():
            if inode.has_quota:
                inodes = list(self.descendants(inode))
                for tree in self.deleted.values():
                    inodes += self.descendants(tree.root) if inode.quota_id in tree.charged else ()
                uses = ((b"n", "names", len(inodes)), (b"s", "bytes", sum(one.space for one in inodes)))
                for what, kind, used in uses:
                    record = self.records.get(usage_key(inode.quota_id, what))
                    counted = 0 if record is None else record.number
                    if counted != used:
                        found.append(
                            f"{entry_name_in_key(key).decode()!r} uses {used} {kind}, and {counted} are counted"
                        )
        return tuple(found)

    def descendants(self, inode: Inode) -> Iterator[Inode]:
        """Yield an inode and all its descendants."""
        yield inode
        for key in self.children_by_parent.get(inode.id, ()):
            yield from self.descendants(self.inodes[key])

    def paths(
        self, inode: Inode, path: tuple[str, ...] = (), above: frozenset[int] = frozenset()
    ) -> Iterator[tuple[tuple[str, ...], Inode]]:
        """Yield (path, inode) of an inode and all its descendants, of each directory once even in a cycle."""
        if inode.id in above:
            return
        yield path, inode
        for key in self.children_by_parent.get(inode.id, ()):
            yield from self.paths(self.inodes[key], (*path, entry_name_in_key(key).decode()), above | {inode.id})


_KNOWN: dict[RecordMap, NamespaceContents] = {}


def decode_namespace(view: View) -> NamespaceContents:
    """Decode the records of a namespace in a state of the world; cached for equal records."""
    records = cast("DatabaseState", view.states[DATABASE]).records
    if records not in _KNOWN:
        if len(_KNOWN) > 20_000:
            _KNOWN.clear()
        _KNOWN[records] = NamespaceContents(records.as_dict())
    return _KNOWN[records]


def tree_of_records(records: RecordMap, blobs: Mapping[str, bytes]) -> ModelTree:
    """Convert the records and blobs of a namespace to the corresponding state of the sequential model."""
    contents = NamespaceContents(records.as_dict())

    def make_node(inode: Inode) -> ModelNode:
        if inode.is_directory:
            return ModelNode(quota=inode.names_quota or 0, owner=inode.owner, mode=inode.mode)
        content = read_extents(contents, blobs, inode.extents).decode()
        return ModelNode(content, inode.writer, owner=inode.owner, mode=inode.mode)

    found = contents.paths(contents.inodes[ROOT_KEY])
    return ModelTree(tuple(sorted(((path, make_node(inode)) for path, inode in found), key=lambda one: one[0])))


def read_extents(contents: NamespaceContents, blobs: Mapping[str, bytes], extents: Iterable[Extent]) -> bytes:
    """Read the bytes of a file, given its extents, from the database or from blobs.

    Raises:
        KeyError: a blob or a record with its bytes does not exist.
    """

    def stored_bytes_of_blob(extent: Extent) -> bytes:
        return contents.records[data_key(extent.blob)].value if extent.inline else blobs[f"{FOLDER}{extent.blob}"]

    return b"".join(unframe_blob_range(one.blob, 0, one.length, stored_bytes_of_blob(one)) for one in extents)
