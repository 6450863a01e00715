"""Symbolic links in a local tree: what lies behind them belongs to it, as Spark's own listing has it.

A partition moved to another disk, with a link in its place, is still a partition. What Spark does not do: it goes round
a link that leads back up until the system stops it, and gives the rows dozens of times. Here such a link is no
directory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil

from holdfast.errors import NotFoundError

__all__ = ["append", "is_behind_link", "leads_back", "open_source", "passes_back"]

_BUFFER_BYTES = 1024 * 1024
_COPY_BYTES = 1 << 30
_COPY_RANGE_REFUSED = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def leads_back(path: str) -> bool:
    """Whether the directory at `path`, an absolute path, is one of those above it as well."""
    try:
        own = _identity(path)
        while path != "/":
            path = os.path.dirname(path)
            if _identity(path) == own:
                return True
    except FileNotFoundError:
        pass  # it went meanwhile
    return False


def is_behind_link(path: str) -> bool:
    """Whether `path` goes through a symbolic link before its last name."""
    directory = os.path.dirname(path)
    return os.path.realpath(directory) != directory


def passes_back(path: str) -> bool:
    """Whether `path` goes through a link that leads back up: listings show nothing behind it."""
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
    """Open a file that is about to be moved by copying, for this process alone; closing it lets others in.

    Raises:
        NotFoundError: somebody else has moved it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            still_there = _identity(path) == _identity_of(descriptor)
        except FileNotFoundError:
            still_there = False
        if not still_there:
            raise NotFoundError("nothing is there: it may have been renamed before", key=key)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _identity_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def append(source: int, target: int) -> None:
    """Copy the rest of one open file to another inside the kernel, or through it where that is not possible."""
    copied = 1
    try:
        while copied:
            copied = os.copy_file_range(source, target, _COPY_BYTES)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _COPY_RANGE_REFUSED:
            raise
    # Some file systems say that there is nothing more before the end (as those that make up sizes do).
    with open(source, "rb", closefd=False) as content, open(target, "wb", closefd=False) as file:
        shutil.copyfileobj(content, file, _BUFFER_BYTES)
