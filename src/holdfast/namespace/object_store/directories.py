"""Make the directories that objects need, and remove them when they have become empty; stream files into them.

An object store has no directories, so those that it makes by the way must go by the way. Others must stay: somebody
made them, and may have given them quotas, permissions or attributes. The difference has to be known by every client, so
a directory that was made for an object carries a mark: an extended attribute, with the rights that the directory had.
It is removed only as long as nothing but that is known about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from holdfast.errors import PreconditionError
from holdfast.namespace.blobs import Expiry
from holdfast.namespace.errors import ParentNotDirectoryError, PathExistsError, PathNotFoundError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.inode import MADE_FOR_OBJECTS, Inode
from holdfast.namespace.keys import children_range, deleted_key, place_key
from holdfast.namespace.listing import etag_of
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.operation import Changes, Context
from holdfast.namespace.operations.base import OnePath, check_chain
from holdfast.namespace.operations.files import FileGroup, Publish
from holdfast.namespace.operations.names import Delete, Mkdirs
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import WRITE
from holdfast.namespace.view import Chain, View
from holdfast.stores.base import ObjectInfo
from holdfast.transactions.base import RangeCount

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DirectoriesOnPath:
    """The directories on a path at some moment.

    Attributes:
        ids: of all, the root first.
        removable: ids of those that were made for objects, and were as they were made: the store removes them when they
            are empty, and makes them again.
        new: ids of those that the operation made that returns this.
    """

    ids: tuple[int, ...]
    removable: frozenset[int]
    new: frozenset[int]


def mark_directories(changes: Changes[R]) -> None:
    """Mark the directories that changes make."""
    for key, inode in changes.inserts.items():
        if inode.is_directory:
            changes.inserts[key] = replace(inode, xattrs={MADE_FOR_OBJECTS: _rights(inode)})


def _rights(inode: Inode) -> bytes:
    return f"{inode.mode:o} {inode.owner} {inode.group}".encode()


def _is_as_made(inode: Inode) -> bool:
    """Check whether a directory was made for an object, and is unchanged since."""
    return not inode.has_quota and not inode.unknown and inode.xattrs == {MADE_FOR_OBJECTS: _rights(inode)}


def may_go(inode: Inode, *, is_in_the_way: bool) -> bool:
    """Check whether a directory that contains no files may be removed.

    Args:
        is_in_the_way: see `RemoveEmptyDirectory`. Otherwise it must have been made for an object, and nobody may have
            changed it since.
    """
    if not inode.is_directory or inode.has_quota:
        return False
    return _is_as_made(inode) or (is_in_the_way and inode.xattrs.keys() <= {MADE_FOR_OBJECTS})


def directories_below(namespace: Namespace, path: NsPath) -> list[NsPath] | None:
    """Return everything below a path if nothing of it is a file, as it is at one moment; else None.

    Raises:
        PermissionDeniedError: the caller may not list one of the directories.
    """
    below: list[NsPath] = []
    try:
        for entry in namespace.walk(str(path)):
            if not entry.is_directory:
                return None
            below.append(NsPath(tuple(entry.path[1:].encode().split(b"/"))))  # deeper than a caller may name it
    except (PathNotFoundError, ParentNotDirectoryError):
        return []
    return below


def require_no_files(changes: Changes[R], chains: Sequence[Chain]) -> None:
    """Require that directories contain nothing but those of them that are in another one.

    Args:
        chains: of the directories. Those that are gone do not count, so their parents are seen to have changed.
    """
    there = [chain for chain in chains if chain.target is not None and chain.target.is_directory]
    inside = Counter(chain.keys[-2] for chain in there if chain.path.names)
    for chain in there:
        assert chain.target is not None
        span = children_range(chain.target.id)
        changes.ranges.append(RangeCount(chain.target_key, *span, inside[chain.target_key]))


@dataclass(frozen=True, slots=True)
class MakeDirectory(OnePath):
    """Make a directory for objects, if it is missing; returns the directories on the path, itself included.

    Group: that of `Mkdirs`.

    Attributes:
        stays: whether it is wanted for itself: it is not removed when it becomes empty, also if it exists already.
    """

    path: NsPath
    stays: bool = False

    def execute(self, view: View, context: Context) -> Changes[DirectoriesOnPath]:
        """See `Operation`.

        Raises:
            ParentNotDirectoryError: a file has the path, or is above it.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        try:
            made = Mkdirs(path=self.path).execute(view, context)
        except PathExistsError as error:
            raise ParentNotDirectoryError(
                "a component of the key is a file: choose another key", key=str(self.path)[1:]
            ) from error
        mark_directories(made)
        there = (*chain.inodes, *made.inserts.values())
        changes = Changes(
            DirectoriesOnPath(
                ids=tuple(one.id for one in there),
                removable=frozenset(one.id for one in there if _is_as_made(one)),
                new=frozenset(one.id for one in made.inserts.values()),
            ),
            inserts=made.inserts,
            adds=made.adds,
            bounds=made.bounds,
            touched=made.touched,
        )
        if self.stays and chain.target is None:
            key, new = next(reversed(changes.inserts.items()))
            changes.inserts[key] = replace(new, xattrs={})
        elif self.stays and chain.target is not None and chain.target.is_made_for_objects:
            context.caller.check(chain, len(self.path.names) - 1, WRITE)
            others = {name: value for name, value in chain.target.xattrs.items() if name != MADE_FOR_OBJECTS}
            changes.puts[chain.target_key] = replace(chain.target, xattrs=others)
        return changes


@dataclass(frozen=True, slots=True)
class RemoveEmptyDirectory(OnePath):
    """Remove a directory that has become empty; returns whether it is gone.

    It stays if it has entries, a quota or extended attributes, or if it was not made for an object.

    Group: that of `Delete`.

    Attributes:
        is_in_the_way: whether the caller wants the directory to go: then it goes too if somebody made it otherwise, but
            not with a quota or extended attributes.
        only_id: the id of the directory: another one at the path stays. 0 for any.
    """

    path: NsPath
    is_in_the_way: bool = False
    only_id: int = 0

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return the entries of a directory that may go."""
        target = chains[0].target
        return children_range(target.id) if target is not None and self._may_go(target) else None

    def _may_go(self, inode: Inode) -> bool:
        return self.only_id in (0, inode.id) and may_go(inode, is_in_the_way=self.is_in_the_way)

    def execute(self, view: View, context: Context) -> Changes[bool]:
        """See `Operation`.

        Raises:
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        if chain.target is None:
            check_chain(chain, context)
            return Changes(True)
        if not self._may_go(chain.target) or view.has_children:
            return Changes(False)
        return Delete(path=self.path).execute(view, context)


# --- streamed files ---------------------------------------------------------------------------------------------------
@dataclass(slots=True, kw_only=True)
class StreamedFile:
    """A new file that appears when it is closed.

    A directory that was made for objects is made again if it was removed meanwhile, because the last object in it
    was deleted. But if the directory was renamed, or deleted with all that it contains, the file has gone with
    it; so it has with any other directory that is gone.

    A file that is discarded takes the directories with it that were made for it, if they are empty. Crash: they stay,
    until the store removes the last object from them.

    Attributes:
        directories: those on the path.
        opened: tells for how long the file may rely on traces of deleted directories.
        remove_new: removes the directories that were made for the file; raises nothing.
    """

    key: str
    namespace: Namespace
    writer: FileWriter
    directories: DirectoriesOnPath
    opened: Expiry
    remove_new: Callable[[], None]
    _info: ObjectInfo | None = None

    def write(self, data: bytes | memoryview, /) -> int:
        return self.writer.write(data)

    def close(self) -> ObjectInfo:
        if self._info is None:
            if not self.writer.is_prepared:
                self.writer.prepare()
            try:
                with self.writer.publishing() as file:
                    assert isinstance(file, Publish), "the file has no lease"
                    operation = PublishStreamed(file=file, directories=self.directories, is_old=self.opened.is_over)
                    inode = self.namespace.run(operation)
            except PathExistsError as error:
                raise PreconditionError("the object exists already: read it, then decide", key=self.key) from error
            self.writer.end()
            self._info = ObjectInfo(self.key, inode.size, etag_of(inode), inode.mtime_ms / 1000)
        return self._info

    def discard(self) -> None:
        if self.writer.discard():
            self.remove_new()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishStreamed(FileGroup):
    """Publish a file, and make its directories again if they were removed since it was opened; returns its inode.

    Group: that of `Publish`; and of the directories that are not on the path any more, the records that they have if
    they were renamed, or deleted with all that they contain.

    Attributes:
        directories: those on the path when the file was opened.
        is_old: tells whether that was so long ago that the trace of a deleted directory may be gone.
    """

    file: Publish
    directories: DirectoriesOnPath
    is_old: Callable[[], bool] = field(compare=False)

    @property
    def paths(self) -> Sequence[NsPath]:
        """The path."""
        return self.file.paths

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the records of the file, and of the directories that have gone."""
        return [*self.file.also(chains), *self._traces(chains[0])]

    def _gone(self, chain: Chain) -> tuple[int, ...]:
        """Return the directories that are not on the path any more."""
        there = tuple(inode.id for inode in chain.ancestors)
        same = [one == other for one, other in zip(self.directories.ids, there, strict=False)]
        return self.directories.ids[same.index(False) if False in same else len(same) :]

    def _traces(self, chain: Chain) -> list[bytes]:
        return [key for number in self._gone(chain) for key in (place_key(number), deleted_key(number))]

    def execute(self, view: View, context: Context) -> Changes[Inode]:
        """See `Publish`.

        Raises:
            PathNotFoundError: the directory was renamed, or deleted with all that it contains; or it is gone, and was
                not made for objects, or it is unknown by now what has removed it.
        """
        (chain,) = view.chains
        gone = self._gone(chain)
        may_be_empty = self.directories.removable.issuperset(gone)
        has_traces = not view.entries.keys().isdisjoint(self._traces(chain))
        if gone and (has_traces or not may_be_empty or self.is_old()):
            raise PathNotFoundError(
                "the directory was renamed or deleted while the file was written: write the file again",
                path=str(self.file.path),
            )
        changes = self.file.execute(view, context)
        mark_directories(changes)
        return changes
