"""Say what must hold for a namespace: N1 tree, N2 linearizable, N3 whole files, N5 counted, and nothing left over."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from holdfast.checker.histories.history import Operation, Outcome, history_of
from holdfast.checker.histories.linearizable import Model, judge_linearizable
from holdfast.checker.histories.tree import Row, what_is_no_tree
from holdfast.checker.kernel.canonical import canonical
from holdfast.checker.kernel.world import Property, View
from holdfast.checker.namespace.actors import BLOBS, Setting
from holdfast.checker.namespace.handles import Copy
from holdfast.checker.namespace.model import Node, Tree, apply
from holdfast.checker.transactions.database import DATABASE, Image
from holdfast.namespace.blobs import BLOBS as FOLDER
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.collector import Collector
from holdfast.namespace.deleted_tree import DeletedTree
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, data_key, kind_range, lease_key, name_of, parent_of, usage_key
from holdfast.runtime.simulated import CountingIds, StillClock
from holdfast.stores.memory.store import MemoryImage, MemoryStore
from holdfast.transactions.base import Record
from holdfast.transactions.memory.store import Records

__all__ = ["PROPERTIES", "Contents", "properties_for", "tree_of"]

_DELETED = -1
"""In place of a parent: the root of a deleted tree."""


@dataclass(frozen=True)
class Contents:
    """The records of a namespace, decoded.

    Attributes:
        inodes: by key.
        deleted: the deleted trees that wait for their collection.
    """

    records: Mapping[bytes, Record]

    @cached_property
    def inodes(self) -> Mapping[bytes, Inode]:
        return {key: decode_inode(key, one.value) for key, one in self.records.items() if key.startswith(b"i")}

    @cached_property
    def deleted(self) -> Mapping[bytes, DeletedTree]:
        return {key: DeletedTree.decode(key, one.value) for key, one in self.records.items() if key.startswith(b"r")}

    @cached_property
    def children(self) -> Mapping[int, list[bytes]]:
        found: dict[int, list[bytes]] = {}
        for key in self.inodes:
            found.setdefault(parent_of(key), []).append(key)
        return found

    def below(self, inode: Inode) -> Iterator[Inode]:
        """Yield an inode and all below it."""
        yield inode
        for key in self.children.get(inode.id, ()):
            yield from self.below(self.inodes[key])

    def paths(self, inode: Inode, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Inode]]:
        """Yield the paths below an inode."""
        yield path, inode
        for key in self.children.get(inode.id, ()):
            yield from self.paths(self.inodes[key], (*path, name_of(key).decode()))


_KNOWN: dict[Records, Contents] = {}


def _contents(view: View) -> Contents:
    records = cast("Image", view.states[DATABASE]).records
    if records not in _KNOWN:
        if len(_KNOWN) > 20_000:
            _KNOWN.clear()
        _KNOWN[records] = Contents(records.as_dict())
    return _KNOWN[records]


def tree_of(records: Records, blobs: Mapping[str, bytes]) -> Tree:
    """Return the state of the model that records mean."""
    contents = Contents(records.as_dict())

    def node(inode: Inode) -> Node:
        if inode.is_directory:
            return Node(quota=inode.names_quota or 0)
        return Node(_bytes(contents, blobs, inode).decode(), inode.writer)

    found = contents.paths(contents.inodes[ROOT_KEY])
    return Tree(tuple(sorted((path, node(inode)) for path, inode in found)))


def _bytes(contents: Contents, blobs: Mapping[str, bytes], inode: Inode) -> bytes:
    return b"".join(
        contents.records[data_key(one.blob)].value if one.inline else blobs[f"{FOLDER}{one.blob}"]
        for one in inode.extents
    )


# --- N1 ---------------------------------------------------------------------------------------------------------------
def _at_each_step(judge: Callable[[View], str | None]) -> Callable[[View, View, str], str | None]:
    """Judge the state after a step, unless it was as bad before."""

    def step(before: View, after: View, actor: str) -> str | None:
        return judge(after)

    return step


def _is_tree(setting: Setting) -> Property:
    known: dict[Records, str | None] = {}

    def judge(view: View) -> str | None:
        records = cast("Image", view.states[DATABASE]).records
        if records not in known:
            known[records] = "; ".join(_wrong_in(_contents(view))) or None
        return known[records]

    return Property(
        name="N1",
        title="a tree",
        meaning="Every inode is reachable from the root, or from a deleted tree that waits for its collection, by one "
        "path.",
        step=_at_each_step(judge),
    )


def _wrong_in(contents: Contents) -> list[str]:
    rows = [
        Row(
            inode.id,
            None if key == ROOT_KEY else parent_of(key),
            name_of(key).decode(),
            inode.is_directory,
        )
        for key, inode in contents.inodes.items()
    ]
    rows += [Row(tree.root.id, _DELETED, str(tree.root.id)) for tree in contents.deleted.values()]
    if contents.deleted:
        rows.append(Row(_DELETED, 1, "deleted trees"))
    found = what_is_no_tree(rows)
    for key, inode in contents.inodes.items():
        if inode.writer and lease_key(inode.id) not in contents.records:
            found.append(f"{name_of(key).decode()!r} has a writer and no lease")
    return found


# --- N2 ---------------------------------------------------------------------------------------------------------------
def _linearizable(setting: Setting) -> Property:
    model = Model(initial=tree_of(setting.start, setting.blobs), apply=apply, is_small=False)
    known: dict[Hashable, str | None] = {}

    def end(view: View) -> str | None:
        operations = history_of(view)
        last = max((one.ended or one.invoked for one in operations), default=0)
        blobs = {key: one.data for key, one in cast("MemoryImage", view.states[BLOBS]).objects.items()}
        final = _everything_at_the_end(last, _contents(view), blobs)
        key = canonical((operations, [one.value for one in final]))
        if key not in known:
            known[key] = judge_linearizable([*operations, *final], model).words or None
        return known[key]

    return Property(
        name="N2",
        title="linearizable",
        meaning="Every operation takes effect at one instant between its call and its return: in that order, each has "
        "the answer that it would have alone, and the tree in the end is what they made.",
        end=end,
    )


def _everything_at_the_end(last: int, contents: Contents, blobs: Mapping[str, bytes]) -> list[Operation]:
    """Return reads of the whole tree after the history."""

    def after(name: str, path: str, value: object) -> Operation:
        return Operation(
            who=f"afterwards {name} {path}",
            name=name,
            args=(path,),
            invoked=last + 1,
            ended=last + 2,
            outcome=Outcome.OK,
            value=value,
        )

    root = contents.inodes.get(ROOT_KEY)
    found = sorted(contents.paths(root), key=lambda one: one[0]) if root is not None else []
    reads = [after("walk", "/", tuple("/" + "/".join(path) for path, _inode in found if path))]
    for path, inode in found:
        if not inode.is_directory:
            try:
                content: object = _bytes(contents, blobs, inode).decode()
            except KeyError:
                content = "its bytes are lost"
            reads.append(after("read", "/" + "/".join(path), content))
    return reads


# --- N3 ---------------------------------------------------------------------------------------------------------------
def _whole_files(setting: Setting) -> Property:
    def judge(view: View) -> str | None:
        contents = _contents(view)
        objects = cast("MemoryImage", view.states[BLOBS]).objects
        lost = [
            one.blob
            for inode in contents.inodes.values()
            for one in inode.extents
            if (data_key(one.blob) not in contents.records if one.inline else f"{FOLDER}{one.blob}" not in objects)
        ]
        return f"the bytes of files are missing: {', '.join(sorted(lost))}" if lost else None

    return Property(
        name="N3",
        title="whole files",
        meaning="Every file that is visible has all its bytes.",
        step=_at_each_step(judge),
    )


# --- N5 ---------------------------------------------------------------------------------------------------------------
def _counted(setting: Setting) -> Property:
    known: dict[Records, str | None] = {}

    def judge(view: View) -> str | None:
        records = cast("Image", view.states[DATABASE]).records
        if records not in known:
            known[records] = "; ".join(_wrong_counters(_contents(view))) or None
        return known[records]

    def step(before: View, after: View, actor: str) -> str | None:
        return judge(after) or _exceeded(_contents(before), _contents(after))

    return Property(
        name="N5",
        title="counted",
        meaning="What a quota counts is what is in its directory, with what was deleted there and is not collected "
        "yet; and no step takes it over the quota.",
        step=step,
    )


def _wrong_counters(contents: Contents) -> Iterator[str]:
    for key, inode in contents.inodes.items():
        if inode.has_quota:
            names, space = _usage(contents, inode)
            for what, is_used in ((b"n", names), (b"s", space)):
                record = contents.records.get(usage_key(inode.quota_id, what))
                counted = 0 if record is None else record.number
                if counted != is_used:
                    kind = "names" if what == b"n" else "bytes"
                    yield f"{name_of(key).decode()!r} uses {is_used} {kind}, and {counted} are counted"


def _usage(contents: Contents, directory: Inode) -> tuple[int, int]:
    inodes = list(contents.below(directory))
    for tree in contents.deleted.values():
        if directory.quota_id in tree.charged:
            inodes += contents.below(tree.root)
    return len(inodes), sum(inode.space for inode in inodes)


def _exceeded(before: Contents, after: Contents) -> str | None:
    for key, inode in after.inodes.items():
        if inode.names_quota is not None:
            now = sum(1 for _ in after.below(inode))
            old = next((one for one in before.inodes.values() if one.id == inode.id), None)
            was = 0 if old is None else sum(1 for _ in before.below(old))
            if now > inode.names_quota and now > was and (old is None or old.names_quota is not None):
                return f"{name_of(key).decode()!r} has {now} names, and its quota is {inode.names_quota}"
    return None


# --- what is left -----------------------------------------------------------------------------------------------------
def _no_leftovers(setting: Setting) -> Property:
    """Run the shipped collector on what is left: once for trees and leases, and once for what is garbage then."""

    def end(view: View) -> str | None:
        database = Copy(cast("Image", view.states[DATABASE]).records)
        image = cast("MemoryImage", view.states[BLOBS])
        clock = StillClock(setting.start_s)
        store = MemoryStore(clock=clock, ids=CountingIds())
        store.restore(image)
        blobs = BlobStore(store, "", CountingIds())
        before = _tree_or_none(database.records, image)
        for _ in range(2):
            clock.at_s += setting.configuration.safety_age_s + 24 * 3600
            Collector(database, blobs, clock, setting.configuration.safety_age_s).run()
        return _left(database, store, before, setting.leaves_blobs)

    return Property(
        name="leftovers",
        title="nothing left over",
        meaning="Once all is done, two runs of the collector, days later, leave no deleted tree, no lease of the dead, "
        "no garbage and no counter of nothing, and lose nothing that is visible.",
        end=end,
    )


def _tree_or_none(records: Records, image: MemoryImage) -> Tree | None:
    """Return the state of the model, without writers; None if bytes are missing."""
    try:
        found = tree_of(records, {key: one.data for key, one in image.objects.items()})
    except KeyError:
        return None
    return Tree(tuple((path, Node(node.content, quota=node.quota)) for path, node in found.nodes))


def _left(database: Copy, store: MemoryStore, before: Tree | None, leaves_blobs: bool) -> str | None:
    contents = Contents(database.records.as_dict())
    found = []
    for kind, what in ((b"r", "deleted trees"), (b"l", "leases"), (b"g", "notes of garbage")):
        start, end = kind_range(kind)
        count = sum(start <= key < end for key in contents.records)
        if count:
            found.append(f"{count} {what}")
    quotas = {usage_key(one.quota_id, what) for one in contents.inodes.values() for what in (b"n", b"s")}
    lost = [key for key in contents.records if key.startswith(b"u") and key not in quotas]
    found += [f"{len(lost)} counters of nothing"] if lost else []
    used = {one.blob for inode in contents.inodes.values() for one in inode.extents}
    stray = {key[1:].decode() for key in contents.records if key.startswith(b"d")} - used
    if not leaves_blobs:
        stray |= {key.removeprefix(FOLDER) for key in store.image().objects} - used
    found += [f"blobs of no file: {', '.join(sorted(stray))}"] if stray else []
    if before is not None and _tree_or_none(database.records, store.image()) != before:
        found.append("the collection has changed the tree")
    return f"after a collection, there are: {'; '.join(found)}" if found else None


PROPERTIES: Mapping[str, Callable[[Setting], Property]] = {
    "N1": _is_tree,
    "N2": _linearizable,
    "N3": _whole_files,
    "N5": _counted,
    "leftovers": _no_leftovers,
}
"""N4, one writer, is part of N2: the model knows who has a lease, and answers others as the namespace must."""


def properties_for(setting: Setting, names: Sequence[str]) -> tuple[Property, ...]:
    """Return the properties with these names."""
    return tuple(PROPERTIES[name](setting) for name in names)
