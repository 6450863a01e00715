"""Translate errors of the operating system about files beside, or instead of, a database."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from holdfast.errors import AccessDeniedError, HoldfastError, StorageFullError, UnavailableError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_CROWDED = (errno.EMFILE, errno.ENFILE)


def flush_file(path: str) -> None:
    """Write to the disk what the system keeps of a file, if it exists; whoever wrote it.

    Raises:
        UnavailableError, StorageFullError: that failed; what is on the disk is unknown.
    """
    with suppress(FileNotFoundError):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _FULL:
                raise StorageFullError("the disk of the database is full: free some space", path=path) from error
            raise UnavailableError("the log of the database cannot be flushed: repeat later", path=path) from error


def file_error(error: OSError | ValueError, otherwise: str, path: str) -> HoldfastError:
    """Return Holdfast's error for a file that could not be made or opened. Nothing happened.

    Args:
        otherwise: the message if neither space nor descriptors are missing.
    """
    code = error.errno if isinstance(error, OSError) else None
    if code in _FULL:
        return StorageFullError("the disk of the database is full: free some space, then repeat", path=path)
    if code in _CROWDED:
        return UnavailableError("too many files are open: allow more, or repeat later", path=path)
    return AccessDeniedError(otherwise, path=path)
