"""Write and move the files of the object store: what a `RenameStore` does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import PathExistsError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import upload_key
from holdfast.namespace.object_store.batch import etag_of
from holdfast.namespace.object_store.uploads import Upload
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.rename import Rename
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import Chain, View
from holdfast.stores.base import ObjectInfo

__all__ = ["MoveDirectory", "StreamedFile"]


class StreamedFile:
    """A new file that appears when it is closed, unless its directory has gone by then."""

    def __init__(self, key: str, writer: FileWriter) -> None:
        self._key = key
        self._writer = writer
        self._info: ObjectInfo | None = None

    def write(self, data: bytes | memoryview, /) -> int:
        return self._writer.write(data)

    def close(self) -> ObjectInfo:
        if self._info is None:
            try:
                inode = self._writer.close()
            except PathExistsError as error:
                raise PreconditionError("the object exists already: read it, then decide", key=self._key) from error
            if inode is None:
                raise InvalidRequestError("the file was discarded: write it again", key=self._key)
            self._info = ObjectInfo(self._key, inode.size, etag_of(inode), inode.mtime_ms / 1000)
        return self._info

    def discard(self) -> None:
        self._writer.discard()


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveDirectory:
    """Rename a directory, and the pending uploads below it with it.

    Group: that of `Rename`, and the uploads, exclusively.

    Attributes:
        uploads: the tokens of the pending uploads below the source.
    """

    rename: Rename
    uploads: Sequence[str]

    @property
    def paths(self) -> tuple[NsPath, ...]:
        """Source and target."""
        return self.rename.paths

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the records of the uploads."""
        return [*self.rename.also(chains), *map(upload_key, self.uploads)]

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return no range: nothing is replaced."""
        return None

    def execute(self, view: View, context: Context) -> Changes[Inode | None]:
        """See `Rename`.

        Raises:
            NotFoundError: the source is not a directory, and has no uploads.
            PathExistsError: the target exists.
        """
        source, target = view.chains[0].target, view.chains[1].target
        changes: Changes[Inode | None] = Changes(None)
        if (source is not None and not source.is_directory) or (source is None and not self.uploads):
            raise NotFoundError("no such directory: check the key", key=str(self.rename.source)[1:])
        if target is not None:
            raise PathExistsError("the target exists: choose another one", path=str(self.rename.target))
        if source is not None:
            changes = self.rename.execute(view, context)
        for token in self.uploads:
            key = upload_key(token)
            value = view.value(key)
            if value is not None:
                upload = Upload.decode(key, value)
                path = str(self.rename.target) + upload.path[len(str(self.rename.source)) :]
                changes.values[key] = replace(upload, path=path).encode()
        return changes
