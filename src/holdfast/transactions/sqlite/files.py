"""Translate errors of the operating system about files beside, or instead of, a database."""

from __future__ import annotations

import errno

from holdfast.errors import AccessDeniedError, HoldfastError, StorageFullError, UnavailableError

__all__ = ["file_error"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_CROWDED = (errno.EMFILE, errno.ENFILE)


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
