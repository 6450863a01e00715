"""Copy files from and to the file system of this machine, and from its pipes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO

from holdfast.cli.fs.interrupts import delay_signals
from holdfast.cli.fs.places import PIECE_BYTES, Failed, FileOrDirectory, Sink
from holdfast.errors import HoldfastError, InvalidRequestError, StorageFullError
from holdfast.namespace.errors import PathExistsError, PathNotFoundError
from holdfast.runtime import Ids

STDIN = "-"
"""The path of standard input."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class LocalPlace:
    """The file system of this machine, as a source or target of copies. Links are followed.

    Args:
        ids: names the hidden files in which new files are written.
    """

    has_directories = True

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def location(self, path: str) -> str:
        """Return the path itself, for messages."""
        return path

    def name(self, path: str) -> str:
        """Return the last component of a path; empty for the root, ``.``, ``..`` and standard input."""
        name = os.path.basename(path.rstrip("/"))
        return "" if name in (".", "..") or path == STDIN else name

    def join(self, directory: str, relative: str) -> str:
        """See `NamespacePlace`."""
        if "\0" in relative or any(name in ("", ".", "..") for name in relative.split("/")):
            raise InvalidRequestError("no local file can have this path: copy it under another name", path=relative)
        return os.path.join(directory, relative)

    def parent(self, path: str) -> str:
        """See `NamespacePlace`."""
        return os.path.dirname(path.rstrip("/")) or "."

    def find(self, path: str) -> FileOrDirectory | None:
        """See `NamespacePlace`.

        Raises:
            InvalidRequestError: the path cannot be looked up.
        """
        if path == STDIN:
            return FileOrDirectory(STDIN, is_directory=False)
        try:
            with _convert_os_errors(path):
                return _local_entry(path, os.stat(path), "")
        except PathNotFoundError:
            return None

    def walk_below(self, path: str, failed: Failed) -> Iterator[FileOrDirectory]:
        """See `NamespacePlace`. A link that leads back to a directory above it is not followed."""
        with _convert_os_errors(path):
            top = os.stat(path)
        waiting = [(path, "", frozenset({(top.st_dev, top.st_ino)}))]
        while waiting:
            directory, relative, above = waiting.pop()
            for one in self._list_entries(directory, relative, failed):
                if one.is_directory:
                    with _report_unreadable_path(one.path, failed):
                        status = os.stat(one.path)
                        number = (status.st_dev, status.st_ino)
                        if number in above:
                            raise InvalidRequestError("a link leads back to a directory above it", path=one.path)
                        waiting.append((one.path, one.relative, above | {number}))
                        yield one
                elif one.size is None:
                    failed(one.path, InvalidRequestError("this is neither a file nor a directory", path=one.path))
                else:
                    yield one

    def _list_entries(self, directory: str, relative: str, failed: Failed) -> list[FileOrDirectory]:
        found: list[FileOrDirectory] = []
        with _report_unreadable_path(directory, failed):
            for name in sorted(os.listdir(directory)):
                path = os.path.join(directory, name)
                with _report_unreadable_path(path, failed):
                    found.append(_local_entry(path, os.stat(path), f"{relative}/{name}" if relative else name))
        return found

    def read(self, entry: FileOrDirectory, readers: int = 1) -> Iterator[bytes]:
        """See `NamespacePlace`. Ignores `readers`: one is as fast as the disk."""
        with _convert_os_errors(entry.path), _open_local_file(entry.path) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def create(self, path: str, *, overwrite: bool) -> Sink:
        """See `NamespacePlace`.

        A link is followed: the file that it leads to is replaced, and the new one has its rights.
        """
        target = os.path.realpath(path)
        hidden = os.path.join(os.path.dirname(target), f".holdfast-{self._ids.token()}")
        with _convert_os_errors(path):
            replaced = os.stat(target) if os.path.exists(target) else None
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(hidden, flags, 0o666 if replaced is None else 0o600)
        return _LocalSink(descriptor, hidden, target, replaced, overwrite=overwrite)

    def make_directory(self, path: str) -> None:
        """See `NamespacePlace`."""
        with _convert_os_errors(path), contextlib.suppress(FileExistsError):
            os.mkdir(path)


class _LocalSink:
    """A file under a hidden name, which is renamed when it is complete.

    Args:
        replaced: the file that is replaced: the new one gets its permissions and, as far as possible, its owner.
    """

    def __init__(
        self, descriptor: int, hidden: str, target: str, replaced: os.stat_result | None, *, overwrite: bool
    ) -> None:
        self._file = open(descriptor, "wb", buffering=0)  # noqa: SIM115  # close and discard close it
        self._hidden = hidden
        self._target = target
        self._replaced = replaced
        self._overwrite = overwrite

    def write(self, data: bytes, /) -> None:
        """Append bytes."""
        view = memoryview(data)
        with _convert_os_errors(self._target):
            while view:
                view = view[self._file.write(view) :]

    def close(self) -> None:
        """Publish the file; see `Sink`."""
        with _convert_os_errors(self._target):
            if self._replaced is not None:
                with contextlib.suppress(OSError):
                    os.fchown(self._file.fileno(), self._replaced.st_uid, self._replaced.st_gid)
                os.fchmod(self._file.fileno(), self._replaced.st_mode & 0o777)
            self._file.close()
            if self._overwrite:
                os.replace(self._hidden, self._target)
            else:
                self._rename_if_free()

    def _rename_if_free(self) -> None:
        """Rename the file unless something has the name."""
        try:
            os.link(self._hidden, self._target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if os.path.lexists(self._target):
                raise FileExistsError(self._target) from None
            os.rename(self._hidden, self._target)
            return
        os.unlink(self._hidden)

    def discard(self) -> None:
        """Discard the file; see `Sink`. A second Ctrl-C does not interrupt the deletion of the hidden file."""
        with delay_signals():
            with contextlib.suppress(OSError):
                self._file.close()
            with contextlib.suppress(FileNotFoundError), _convert_os_errors(self._hidden):
                os.unlink(self._hidden)


def _local_entry(path: str, status: os.stat_result, relative: str) -> FileOrDirectory:
    is_file = stat.S_ISREG(status.st_mode)
    return FileOrDirectory(
        path,
        is_directory=stat.S_ISDIR(status.st_mode),
        relative=relative,
        size=status.st_size if is_file else None,
    )


@contextlib.contextmanager
def _open_local_file(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        if sys.stdin is None:  # it was closed when this process started
            raise InvalidRequestError("standard input is closed: give it a file or a pipe")
        yield sys.stdin.buffer
        return
    with open(path, "rb", buffering=0) as file:
        yield file


@contextlib.contextmanager
def _report_unreadable_path(path: str, failed: Failed) -> Iterator[None]:
    try:
        with _convert_os_errors(path):
            yield
    except HoldfastError as error:
        failed(path, error)


@contextlib.contextmanager
def _convert_os_errors(path: str) -> Iterator[None]:
    """Raise errors of the operating system as Holdfast's.

    Raises:
        PathNotFoundError: the path does not exist.
        PathExistsError: something has the path.
        StorageFullError: the disk is full.
        InvalidRequestError: anything else; the message says what.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, HoldfastError):
            raise
        if isinstance(error, FileNotFoundError):
            raise PathNotFoundError("the local path does not exist: check it", path=path) from error
        if isinstance(error, FileExistsError):
            raise PathExistsError("a local file has this path: replace it with --overwrite", path=path) from error
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise StorageFullError(f"the local disk is full: {reason.lower()}", path=path) from error
        raise InvalidRequestError(f"the local path cannot be used: {reason.lower()}", path=path) from error
