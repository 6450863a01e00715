"""Provide the store of ``file://`` URLs and of plain paths."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import HadoopFileSystem, Location, StoreOptions, StoreProvider

if TYPE_CHECKING:
    from holdfast.stores.local.store import LocalStore


def absolute_path(path: str) -> str:
    """Make a path absolute; ``~`` at its beginning is the user's home directory.

    Raises:
        InvalidRequestError: the path is relative and the working directory was deleted.
    """
    try:
        return os.path.abspath(os.path.expanduser(path))
    except FileNotFoundError as error:
        raise InvalidRequestError(
            "the path is relative and the working directory was deleted: give an absolute path", path=path
        ) from error


def locate_path(path: str) -> Location:
    """Return the location of an absolute or relative path on this machine.

    Guarantee: symbolic links are resolved. So each directory has only one location, and the parents in it are those of
    the directory itself, not those of a link to it.

    Raises:
        InvalidRequestError: `path` cannot be a path, or is a link to a path that does not exist.
    """
    if not path:
        raise InvalidRequestError("this cannot be a path, since it is empty: write file:///path")
    if "\0" in path:
        raise InvalidRequestError("this cannot be a path: give another one", path=path)
    absolute = absolute_path(path)
    if os.path.islink(absolute) and not os.path.exists(absolute):
        raise InvalidRequestError(
            "the path is a dangling symbolic link: create the directory that it points to", path=path
        )
    return Location("/", os.path.realpath(absolute).strip("/"))


def _locate(rest: str) -> Location:
    host, _, path = rest.partition("/")
    if host not in ("", "localhost"):
        raise InvalidRequestError("a file url names no host: write file:///path", host=host)
    return locate_path(f"/{path}")


def _open(location: Location, _options: StoreOptions) -> LocalStore:
    from holdfast.stores.local.store import LocalStore

    return LocalStore(location.root, keep=location.prefix)


LOCAL = StoreProvider(schemes=("file",), open=_open, locate=_locate, hadoop=HadoopFileSystem(scheme="file"))
"""``file:///path``."""
