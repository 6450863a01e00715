"""Turn paths of fsspec into those of a namespace, and files and directories into fsspec's dictionaries.

To fsspec, a path is ``name/directory/file``, and the name of the namespace is the first component. Percent signs,
``#`` and ``?`` are ordinary characters.
"""

from __future__ import annotations

import stat
from typing import Any

from holdfast.namespace import FileStatus, split_url
from holdfast.namespace.catalog import SCHEME


def split(path: str) -> tuple[str, str]:
    """Return the name of the namespace and the path in it, which is at least ``/``.

    Raises:
        InvalidRequestError: the path names no namespace.
    """
    return split_url(f"{SCHEME}://{path}")


def entry_of(name: str, status: FileStatus) -> dict[str, Any]:
    """Describe a file or a directory; times are seconds since the epoch, and the mode is that of `os.stat`."""
    return {
        "name": name if status.path == "/" else name + status.path,
        "size": status.size,
        "type": "directory" if status.is_directory else "file",
        "mtime": status.mtime_ms / 1000,
        "mode": (stat.S_IFDIR if status.is_directory else stat.S_IFREG) | status.mode,
        "owner": status.owner,
        "group": status.group,
        "ino": status.id,
        "is_open": status.is_open,
        **({} if status.is_directory else {"ETag": status.etag}),  # by this name, caches ask whether a file has changed
    }


def directory_entry(path: str) -> dict[str, Any]:
    """Describe the root above all namespaces, or a namespace in it that nobody has opened yet."""
    return {"name": path, "size": 0, "type": "directory"}
