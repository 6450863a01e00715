"""Describe files and directories to callers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from holdfast.namespace.inode import Inode
from holdfast.namespace.paths import NsPath


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """A file or a directory, as HDFS's ``FileStatus`` has it.

    Attributes:
        path: the whole path.
        is_directory: whether it is a directory.
        size: bytes; 0 for a directory.
        mtime_ms, atime_ms: milliseconds since the epoch.
        id: of the inode: stays the same when the path changes.
        is_open: whether somebody is writing the file.
        etag: changes with the content of a file, and never comes again; empty for a directory.
    """

    path: str
    is_directory: bool
    size: int
    mode: int
    owner: str
    group: str
    mtime_ms: int
    atime_ms: int
    replication: int
    block_size: int
    id: int
    is_open: bool = False
    etag: str = ""

    @property
    def name(self) -> str:
        """The last component of the path; empty for the root."""
        return self.path.rpartition("/")[2]

    @property
    def permissions(self) -> str:
        """The mode as ``ls`` shows it, such as ``drwxr-xr-x``."""
        letters = "".join(
            letter if self.mode >> bit & 1 else "-" for bit, letter in zip(range(8, -1, -1), "rwxrwxrwx", strict=True)
        )
        if self.mode & 0o1000:
            letters = letters[:-1] + ("t" if self.mode & 1 else "T")
        return ("d" if self.is_directory else "-") + letters


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSummary:
    """What is in a tree, as HDFS's ``ContentSummary`` has it. The root of the tree counts as a directory.

    Attributes:
        space: bytes times replication.
        names_quota, space_quota: of the root of the tree; None for no limit.
    """

    files: int
    directories: int
    size: int
    space: int
    names_quota: int | None = None
    space_quota: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUsage:
    """The quotas of a file or a directory and what counts against them, as HDFS's ``QuotaUsage`` has it.

    Attributes:
        names_quota, space_quota: None for no limit.
        names, space: what is used, with the directory itself and with replication; 0 if there is no quota at all.
            Deleted trees count until they are collected.
    """

    names_quota: int | None
    space_quota: int | None
    names: int
    space: int


def etag_of(inode: Inode) -> str:
    """Return a text that changes with the content of a file, and never comes again.

    No two files have one id. Between two truncations a file only gets extents, whose blobs are new or another file's.
    """
    text = f"{inode.cuts};" + "".join(f"{one.blob}:{one.length};" for one in inode.extents)
    return f"{inode.id:x}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def status_of(path: NsPath, inode: Inode, entries_ms: int = 0) -> FileStatus:
    """Return the status of an inode.

    Args:
        entries_ms: when the entries of a directory changed last, milliseconds since the epoch.
    """
    return FileStatus(
        path=str(path),
        is_directory=inode.is_directory,
        size=inode.size,
        mode=inode.mode,
        owner=inode.owner,
        group=inode.group,
        mtime_ms=max(inode.mtime_ms, entries_ms),
        atime_ms=inode.atime_ms,
        replication=inode.replication,
        block_size=inode.block_size,
        id=inode.id,
        is_open=bool(inode.writer),
        etag="" if inode.is_directory else etag_of(inode),
    )
