"""Copy files from and to a namespace."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.fs.descent import descend
from holdfast.cli.fs.places.base import Entry, Failed, Sink, read_pieces
from holdfast.namespace import FileStatus, Namespace
from holdfast.namespace.inode import FILE_MODE
from holdfast.namespace.paths import NsPath


class NamespacePlace:
    """A namespace.

    Args:
        base: its URL, ``holdfast://name``.
    """

    has_directories = True

    def __init__(self, namespace: Namespace, base: str) -> None:
        self._namespace = namespace
        self._base = base

    def url(self, path: str) -> str:
        """See `Place`."""
        return self._base + path

    def name(self, path: str) -> str:
        """See `Place`."""
        return str(NsPath.parse(path)).rpartition("/")[2]

    def join(self, directory: str, relative: str) -> str:
        """See `Place`."""
        path = f"{directory.rstrip('/')}/{relative}"
        NsPath.parse(path)
        return path

    def parent(self, path: str) -> str:
        """See `Place`."""
        return str(NsPath.parse(path).parent)

    def find(self, path: str) -> Entry | None:
        """See `Place`."""
        status = self._namespace.find(path)
        return None if status is None else _entry(status, "")

    def below(self, path: str, failed: Failed) -> Iterator[Entry]:
        """See `Place`."""
        start = len(path.rstrip("/")) + 1
        for _, status in descend(
            self._namespace, path, failed=lambda directory, error: failed(self.url(directory), error)
        ):
            yield _entry(status, status.path[start:])

    def read(self, entry: Entry, readers: int = 1) -> Iterator[bytes]:
        """See `Place`. All pieces come from the file that is there when the first one is read."""
        file = self._namespace.open(entry.path)
        return read_pieces(file.read, file.size, readers)

    def create(self, path: str, source: Entry, *, overwrite: bool, preserve: bool) -> Sink:
        """See `Place`."""
        mode = FILE_MODE if not preserve or source.mode is None else source.mode & 0o777
        writer = self._namespace.create(path, overwrite=overwrite, mode=mode, parents=False)
        if preserve and source.mtime_ms is not None:
            writer.set_mtime(max(source.mtime_ms, 0))
        return writer

    def make_directory(self, path: str) -> None:
        """See `Place`."""
        self._namespace.mkdirs(path)


def _entry(status: FileStatus, relative: str) -> Entry:
    return Entry(
        status.path,
        is_directory=status.is_directory,
        relative=relative,
        size=None if status.is_directory else status.size,
        mode=status.mode,
        mtime_ms=status.mtime_ms,
    )
