"""Handle symbolic links in a local tree, and copy files between file systems.

A tree includes what its symbolic links point to, as in Spark's own listing: a partition that was moved to another disk
and replaced by a link is still a partition. Unlike Spark, Holdfast does not follow a link that points to one of its own
parent directories. Spark follows such a link until the operating system stops it, and returns the same rows dozens of
times.
"""

from __future__ import annotations

import errno
import os
import shutil

from holdfast.errors import NotFoundError
from holdfast.runtime import SystemClock
from holdfast.stores.local.locks import lock

_COPY_S = 3600.0  # how long another process may copy the same file
_BUFFER_BYTES = 1024 * 1024
_COPY_BYTES = 1 << 30
_COPY_RANGE_REFUSED = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def leads_back(path: str) -> bool:
    """Check whether the directory at an absolute path is identical to one of its own parents."""
    try:
        own = _identity(path)
        while path != "/":
            path = os.path.dirname(path)
            if _identity(path) == own:
                return True
    except FileNotFoundError:
        pass  # deleted in the meantime
    return False


def is_behind_link(path: str) -> bool:
    """Check whether a directory in `path` is a symbolic link."""
    directory = os.path.dirname(path)
    return os.path.realpath(directory) != directory


def passes_back(path: str) -> bool:
    """Check whether `path` passes through a link to a parent directory, which listings do not follow."""
    directory = os.path.dirname(path)
    if not is_behind_link(path):
        return False
    while directory != "/":
        if os.path.isdir(directory) and leads_back(directory):
            return True
        directory = os.path.dirname(directory)
    return False


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


# --- bytes from one file system to another ----------------------------------------------------------------------------
def open_source(path: str, key: str) -> int:
    """Open and lock a file in order to move it by copying; closing the descriptor releases the lock.

    Raises:
        NotFoundError: another process has moved the file.
        UnavailableError: another process has been moving it for an hour: repeat later.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock(descriptor, path, _COPY_S, SystemClock())
        try:
            still_there = _identity(path) == _identity_of(descriptor)
        except FileNotFoundError:
            still_there = False
        if not still_there:
            raise NotFoundError("nothing exists at the source: it may have been renamed before", key=key)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _identity_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def append(source: int, target: int) -> None:
    """Append the rest of one open file to another: inside the kernel if possible, else through a buffer."""
    copied = 1
    try:
        while copied:
            copied = os.copy_file_range(source, target, _COPY_BYTES)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _COPY_RANGE_REFUSED:
            raise
    # Some file systems report the end of the file too early (such as those with made-up sizes), so continue reading.
    with open(source, "rb", closefd=False) as content, open(target, "wb", closefd=False) as file:
        shutil.copyfileobj(content, file, _BUFFER_BYTES)
