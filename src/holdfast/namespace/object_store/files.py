"""Write the files of the object store from start to end: `RenameStore.open_write`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from holdfast.errors import PreconditionError
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import PathExistsError, PathNotFoundError
from holdfast.namespace.expiry import Expiry
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import deleted_key, place_key
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.directories import DirectoriesOnPath, mark_directories
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.files import FileGroup, Publish
from holdfast.namespace.paths import NsPath
from holdfast.namespace.status import etag_of
from holdfast.namespace.view import Chain, View
from holdfast.stores.base import ObjectInfo


class StreamedFile:
    """A new file that appears when it is closed.

    A directory that was made for objects is made again if it was removed meanwhile, because somebody has deleted the
    last object in it. But if the directory was renamed, or deleted with all that it contains, the file has gone with
    it; so it has with any other directory that is gone.

    A file that is discarded takes the directories with it that were made for it, if they are empty. Crash: they stay,
    until the store removes the last object from them.

    Args:
        directories: those on the path.
        opened: tells for how long the file may rely on traces of deleted directories.
        remove_new: removes the directories that were made for the file; raises nothing.
    """

    def __init__(
        self,
        key: str,
        namespace: Namespace,
        writer: FileWriter,
        directories: DirectoriesOnPath,
        *,
        opened: Expiry,
        remove_new: Callable[[], None],
    ) -> None:
        self._key = key
        self._namespace = namespace
        self._writer = writer
        self._directories = directories
        self._opened = opened
        self._remove_new = remove_new
        self._info: ObjectInfo | None = None

    def write(self, data: bytes | memoryview, /) -> int:
        return self._writer.write(data)

    def close(self) -> ObjectInfo:
        if self._info is None:
            if not self._writer.is_prepared:
                self._writer.prepare()
            try:
                with self._writer.publishing() as file:
                    assert isinstance(file, Publish), "the file has no lease"
                    operation = PublishStreamed(file=file, directories=self._directories, is_old=self._opened.is_over)
                    inode = self._namespace.run(operation)
            except PathExistsError as error:
                raise PreconditionError("the object exists already: read it, then decide", key=self._key) from error
            self._writer.end()
            self._info = ObjectInfo(self._key, inode.size, etag_of(inode), inode.mtime_ms / 1000)
        return self._info

    def discard(self) -> None:
        if self._writer.discard():
            self._remove_new()


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
    def paths(self) -> tuple[NsPath]:
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
                not made for objects, or nobody knows any more who has removed it.
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
