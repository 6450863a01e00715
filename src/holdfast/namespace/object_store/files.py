"""Write the files of the object store from start to end: `RenameStore.open_write`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from holdfast.errors import PreconditionError
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import PathExistsError, PathNotFoundError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import deleted_key, place_key
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.directories import mark_directories
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.files import FileGroup, Publish
from holdfast.namespace.paths import NsPath
from holdfast.namespace.status import etag_of
from holdfast.namespace.view import Chain, View
from holdfast.stores.base import ObjectInfo

__all__ = ["PublishStreamed", "StreamedFile"]


class StreamedFile:
    """A new file that appears when it is closed.

    Its directory is made again if it was removed meanwhile, because somebody has deleted the last object in it. But if
    the directory was renamed, or deleted with all that it contains, the file has gone with it.

    Args:
        directories: the ids of the directories on the path, the root first.
    """

    def __init__(self, key: str, namespace: Namespace, writer: FileWriter, directories: tuple[int, ...]) -> None:
        self._key = key
        self._namespace = namespace
        self._writer = writer
        self._directories = directories
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
                    inode = self._namespace.run(PublishStreamed(file=file, directories=self._directories))
            except PathExistsError as error:
                raise PreconditionError("the object exists already: read it, then decide", key=self._key) from error
            self._writer.end()
            self._info = ObjectInfo(self._key, inode.size, etag_of(inode), inode.mtime_ms / 1000)
        return self._info

    def discard(self) -> None:
        self._writer.discard()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishStreamed(FileGroup):
    """Publish a file, and make its directories again if they were removed since it was opened; returns its inode.

    Group: that of `Publish`; and of the directories that are not on the path any more, the records that they have if
    they were renamed, or deleted with all that they contain.

    Attributes:
        directories: the ids of the directories on the path when the file was opened, the root first.
    """

    file: Publish
    directories: tuple[int, ...]

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return self.file.paths

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the records of the file, and of the directories that have gone."""
        return [*self.file.also(chains), *self._traces(chains[0])]

    def _traces(self, chain: Chain) -> list[bytes]:
        there = tuple(inode.id for inode in chain.ancestors)
        same = [one == other for one, other in zip(self.directories, there, strict=False)]
        gone = self.directories[same.index(False) if False in same else len(same) :]
        return [key for number in gone for key in (place_key(number), deleted_key(number))]

    def execute(self, view: View, context: Context) -> Changes[Inode]:
        """See `Publish`.

        Raises:
            PathNotFoundError: the directory was renamed, or deleted with all that it contains.
        """
        (chain,) = view.chains
        if not view.entries.keys().isdisjoint(self._traces(chain)):
            raise PathNotFoundError(
                "the directory was renamed or deleted while the file was written: write the file again",
                path=str(self.file.path),
            )
        changes = self.file.execute(view, context)
        mark_directories(changes)
        return changes
