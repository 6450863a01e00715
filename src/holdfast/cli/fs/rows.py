"""Describe files and directories: as fields for programs, and as rows of tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.fs.items import Item
from holdfast.cli.output import size, when
from holdfast.namespace import FileStatus

LONG_COLUMNS = ["mode", "owner", "group", "size", "modified (UTC)", "name"]
"""The columns of `long_row`."""

RIGHT = ["size"]
"""Those of `LONG_COLUMNS` that are right-aligned."""


def fields(item: Item) -> dict[str, object]:
    """Return all that is known about a file or a directory, for programs."""
    status = item.status
    return {
        "url": item.url,
        "path": status.path,
        "type": "directory" if status.is_directory else "file",
        "size": status.size,
        "mode": f"{status.mode:04o}",
        "permissions": status.permissions,
        "owner": status.owner,
        "group": status.group,
        "modified": when(status.mtime_ms / 1000),
        "modified_ms": status.mtime_ms,
        "accessed_ms": status.atime_ms,
        "replication": status.replication,
        "block_size": status.block_size,
        "id": status.id,
        "being_written": status.is_open,
    }


def long_row(status: FileStatus, name: str, *, human: bool) -> tuple[str, ...]:
    """Return the row of a long listing.

    Args:
        name: how the file or directory is called in the listing.
        human: whether to show sizes in units such as MiB.
    """
    shown = "-" if status.is_directory else amount(status.size, human=human)
    modified = when(status.mtime_ms / 1000)
    minute = modified[:-4] if modified.endswith("Z") else modified  # seconds would leave names no room
    return (status.permissions, status.owner, status.group, shown, minute, name)


def titles(items: Sequence[Item]) -> list[str]:
    """Return what to call items in a table: their paths, or their URLs if they are in several namespaces."""
    is_one = len({item.base for item in items}) < 2
    return [item.status.path if is_one else item.url for item in items]


def amount(number: int, *, human: bool) -> str:
    """Return a number of bytes, exact or in a unit."""
    return size(number) if human else str(number)
