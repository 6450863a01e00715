"""Read the records of a namespace in the state of a world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from holdfast.namespace.blobs import BLOBS as FOLDER
from holdfast.namespace.blobs import content_of
from holdfast.namespace.inode import Extent, Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, data_key, name_of, parent_of
from holdfast.namespace.other_records import DeletedTree, Upload
from holdfast.transactions.base import Record
from holdfast_checker.kernel.world import View
from holdfast_checker.namespace.model import Node, Tree
from holdfast_checker.simulated.database import DATABASE, Image, Records

_decoded = lru_cache(maxsize=100_000)(decode_inode)


@dataclass(frozen=True)
class Contents:
    """The records of a namespace, decoded.

    Attributes:
        inodes: by key.
        deleted: the deleted trees that wait for their collection.
        uploads: those that are not completed.
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


def contents_of(view: View) -> Contents:
    """Return the records of the database, decoded; equal records are decoded once."""
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
            return Node(quota=inode.names_quota or 0, owner=inode.owner, mode=inode.mode)
        content = bytes_of(contents, blobs, inode.extents).decode()
        return Node(content, inode.writer, owner=inode.owner, mode=inode.mode)

    found = contents.paths(contents.inodes[ROOT_KEY])
    return Tree(tuple(sorted(((path, node(inode)) for path, inode in found), key=lambda one: one[0])))


def bytes_of(contents: Contents, blobs: Mapping[str, bytes], extents: Iterable[Extent]) -> bytes:
    """Return the bytes of a file, or of parts of it.

    Raises:
        KeyError: some of it does not exist.
    """
    return b"".join(
        content_of(
            one.blob,
            0,
            one.length,
            contents.records[data_key(one.blob)].value if one.inline else blobs[f"{FOLDER}{one.blob}"],
        )
        for one in extents
    )


def at_each_step(judge: Callable[[View], str | None]) -> Callable[[View, View, str], str | None]:
    """Judge the state after a step, unless it was as bad before."""

    def step(before: View, after: View, actor: str) -> str | None:
        return judge(after)

    return step
