"""Copy files between namespaces, object stores and this machine: what a place can do.

So a copy does not depend on where it leads from and to. Each place publishes a file complete and at once, or not at
all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from holdfast.cli.fs.items import walk_tree
from holdfast.commit import CommitContext
from holdfast.commit.context import Place as StoreRoot
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import PartBufferBudget, UploadSink
from holdfast.commit.task import ATTEMPT_METADATA, complete_upload
from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError
from holdfast.namespace import FileStatus, Namespace
from holdfast.namespace.errors import PathNotFoundError
from holdfast.namespace.paths import NsPath
from holdfast.runtime import Runner, SerialRunner, ThreadRunner
from holdfast.stores.base import ObjectInfo, is_marker, iter_objects, multipart
from holdfast.stores.checks import check_key

PIECE_BYTES = 8 * 1024 * 1024
"""How many bytes are read and written at a time."""

Failed = Callable[[str, HoldfastError], None]
"""Called with the URL of a path that cannot be copied, and the reason; the others are copied."""


@dataclass(frozen=True, slots=True)
class FileOrDirectory:
    """A file or a directory to copy, in a namespace, in an object store or on this machine.

    Attributes:
        path: the path or key in the namespace, store or file system.
        relative: the path below the directory that was listed, with ``/`` between its components; empty if no
            directory was listed.
        size: size of a file in bytes; None if it is unknown, as that of a pipe.
        etag: names the version of an object; empty outside object stores.
    """

    path: str
    is_directory: bool
    relative: str = ""
    size: int | None = None
    etag: str = ""


def read_pieces(read: Callable[[int, int], bytes], size: int, readers: int) -> Iterator[bytes]:
    """Yield the pieces of a file in order, while several are fetched in parallel.

    Args:
        read: returns the bytes of a piece, given its start and its length.
        size: size of the file in bytes.
        readers: how many pieces are fetched at the same time.
    """
    starts = range(0, size, PIECE_BYTES)
    runner: Runner = ThreadRunner(threads=readers) if readers > 1 and len(starts) > 1 else SerialRunner()
    yield from runner.map(lambda start: read(start, min(PIECE_BYTES, size - start)), starts)


class Sink(Protocol):
    """A new file, invisible until it is closed."""

    def write(self, data: bytes, /) -> object:
        """Append bytes."""
        ...

    def close(self) -> object:
        """Complete the file and make it visible at its path.

        Raises:
            ConflictError: another file has appeared at the path, and may not be replaced.
        """
        ...

    def discard(self) -> object:
        """Delete the unfinished file, so that it never appears; do nothing after `close`."""
        ...


class NamespacePlace:
    """A namespace, as a source or target of copies. `StorePlace` and `LocalPlace` have the same methods.

    Args:
        base: the URL of the namespace, ``holdfast://name``.

    Attributes:
        has_directories: whether a file needs a directory, and a directory can be empty. False for object stores.
    """

    has_directories = True

    def __init__(self, namespace: Namespace, base: str) -> None:
        self._namespace = namespace
        self._base = base

    def location(self, path: str) -> str:
        """Return the URL of a path, for messages."""
        return self._base + path

    def name(self, path: str) -> str:
        """Return the name that a file or directory keeps when it is copied into a directory; empty if it has none."""
        return str(NsPath.parse(path)).rpartition("/")[2]

    def join(self, directory: str, relative: str) -> str:
        """Return the path of `relative` in `directory`.

        Raises:
            InvalidRequestError: the path is not allowed in this namespace, store or file system.
        """
        path = f"{directory.rstrip('/')}/{relative}"
        NsPath.parse(path)
        return path

    def parent(self, path: str) -> str:
        """Return the path of the directory that contains a path."""
        return str(NsPath.parse(path).parent)

    def find(self, path: str) -> FileOrDirectory | None:
        """Return the file or directory at a path; None if there is none."""
        status = self._namespace.find(path)
        return None if status is None else _namespace_entry(status, "")

    def walk_below(self, path: str, failed: Failed) -> Iterator[FileOrDirectory]:
        """Yield all files and directories below a directory; call `failed` for each that cannot be read."""
        start = len(path.rstrip("/")) + 1
        for _, status in walk_tree(
            self._namespace, path, failed=lambda directory, error: failed(self.location(directory), error)
        ):
            yield _namespace_entry(status, status.path[start:])

    def read(self, entry: FileOrDirectory, readers: int = 1) -> Iterator[bytes]:
        """Yield the content of a file in pieces, all from the version that exists when the first one is read.

        Args:
            readers: how many pieces may be read at the same time, where each of them is a request; memory holds twice
                as many.
        """
        file = self._namespace.open(entry.path)
        return read_pieces(file.read, file.size, readers)

    def create(self, path: str, *, overwrite: bool) -> Sink:
        """Open a new file at a path for writing; it is invisible until it is closed.

        Args:
            overwrite: whether it may replace an existing file.
        """
        return self._namespace.create(path, overwrite=overwrite, parents=False)

    def make_directory(self, path: str) -> None:
        """Make a directory in an existing one; do nothing if it exists."""
        self._namespace.mkdirs(path)


def _namespace_entry(status: FileStatus, relative: str) -> FileOrDirectory:
    return FileOrDirectory(
        status.path,
        is_directory=status.is_directory,
        relative=relative,
        size=None if status.is_directory else status.size,
    )


class ObjectSink:
    """A `Sink` that writes a new object of a store: with one put if it is small, else with a multipart upload."""

    def __init__(self, ctx: CommitContext, key: str) -> None:
        self._ctx = ctx
        self._key = key
        self._background = ctx.runner.background()
        self._buffer = bytearray()
        self._upload: UploadSink | None = None

    def write(self, data: bytes, /) -> None:
        """See `Sink`."""
        if self._upload is not None:
            self._upload.write(data)
            return
        self._buffer += data
        if len(self._buffer) > self._ctx.settings.part_size_bytes:
            self._upload = self._start_upload()
            self._upload.write(self._buffer)
            self._buffer.clear()

    def close(self) -> None:
        """Put the object, or complete its upload; see `Sink`."""
        try:
            if self._upload is None:
                self._ctx.store.put(self._key, bytes(self._buffer))
            else:
                self._upload.close()
                self._background.drain()
                self._upload = None
        except BaseException:
            self.discard()
            raise
        self._background.close()

    def discard(self) -> None:
        """See `Sink`. Errors of the store are suppressed: the error that caused the discard matters more."""
        with contextlib.suppress(Exception):  # `write` or `close` has already raised it
            self._background.drain()
        self._background.close()
        if self._upload is not None:
            with contextlib.suppress(HoldfastError):
                self._upload.discard()

    def _start_upload(self) -> UploadSink:
        ctx = self._ctx
        token = ctx.ids.token()  # distinguishes this file from others at the same key

        def complete_upload_of_file(file: FileEntry) -> None:
            if not complete_upload(ctx, file, token):  # type: ignore[arg-type]  # any text can serve as an attempt id
                raise NotFoundError("the upload of the file was aborted: write the file again", key=file.path)

        return UploadSink(
            multipart(ctx.store),
            self._key,
            self._key,
            background=self._background,
            budget=PartBufferBudget(ctx.settings.part_buffer_bytes),
            base_part_bytes=ctx.settings.part_size_bytes,
            metadata={ATTEMPT_METADATA: token},
            on_uploaded=complete_upload_of_file,
        )


class StorePlace:
    """An object store, as a source or target of copies; paths are keys.

    Args:
        ctx: the context that was opened at a URL of the store.
    """

    has_directories = False

    def __init__(self, ctx: CommitContext) -> None:
        self.path = ctx.prefix.rstrip("/")
        self._root = ctx.url[: len(ctx.url) - len(self.path)].rstrip("/") if self.path else ctx.url.rstrip("/")
        self._ctx = ctx.at(StoreRoot(store=ctx.store, prefix="", url=self._root))

    def location(self, path: str) -> str:
        """See `NamespacePlace`."""
        return f"{self._root}/{path}"

    def name(self, path: str) -> str:
        """See `NamespacePlace`."""
        return path.rpartition("/")[2]

    def join(self, directory: str, relative: str) -> str:
        """See `NamespacePlace`."""
        key = f"{directory}/{relative}" if directory else relative
        check_key(key)
        return key

    def parent(self, path: str) -> str:
        """See `NamespacePlace`."""
        return path.rpartition("/")[0]

    def find(self, path: str) -> FileOrDirectory | None:
        """See `NamespacePlace`. A key below which there are others is a directory, unless it is an object too."""
        if path:
            try:
                info = self._ctx.store.head(path)
            except NotFoundError:
                pass  # a missing bucket is reported by the listing
            else:
                return _object_entry(info, "")
        prefix = f"{path}/" if path else ""
        page = self._ctx.store.list_page(prefix, max_keys=1)
        is_directory = not path or any(info.key.startswith(prefix) for info in page.objects)
        return FileOrDirectory(path, is_directory=True) if is_directory else None

    def walk_below(self, path: str, failed: Failed) -> Iterator[FileOrDirectory]:
        """See `NamespacePlace`. The marker of an empty directory is a directory."""
        prefix = f"{path}/" if path else ""
        for info in iter_objects(self._ctx.store, prefix, markers=True):
            relative = info.key[len(prefix) :]
            if is_marker(info):
                relative = relative.removesuffix("_$folder$").rstrip("/")
                if relative:
                    yield FileOrDirectory(info.key, is_directory=True, relative=relative)
            elif relative.endswith("/"):
                error = InvalidRequestError("the key ends in a slash and is not a directory: rename it", key=info.key)
                failed(self.location(info.key), error)
            else:
                yield _object_entry(info, relative)

    def read(self, entry: FileOrDirectory, readers: int = 1) -> Iterator[bytes]:
        """See `NamespacePlace`. All pieces come from the object that was listed."""

        def read_piece(start: int, length: int) -> bytes:
            try:
                found = self._ctx.store.get(entry.path, start, length, entry.etag)
            except NotFoundError as error:
                raise PathNotFoundError("the object is gone: list again", key=entry.path) from error
            if len(found) != length:
                raise PathNotFoundError("the object is shorter than it was: list again", key=entry.path)
            return found

        return read_pieces(read_piece, entry.size or 0, readers)

    def create(self, path: str, *, overwrite: bool) -> Sink:
        """See `NamespacePlace`.

        Ignores `overwrite`, which the caller has checked: not every store can write conditionally.
        """
        return ObjectSink(self._ctx, path)

    def make_directory(self, path: str) -> None:
        """Do nothing: a directory is there as long as there is a key below it."""


def _object_entry(info: ObjectInfo, relative: str) -> FileOrDirectory:
    return FileOrDirectory(info.key, False, relative, info.size_bytes, info.etag)
