"""Define the errors of file operations: HDFS's errors, which Python programs also catch as the built-in ones.

    HoldfastError
    ├── InvalidRequestError
    │   ├── NotFoundError
    │   │   └── PathNotFoundError(FileNotFoundError)       nothing has this path: check it
    │   ├── AccessDeniedError
    │   │   └── PermissionDeniedError(PermissionError)     the user lacks a permission: ask the owner
    │   ├── InvalidPathError                               not a path of the namespace: fix it
    │   │   └── PathTooLongError                           the path or its depth is too long: shorten it
    │   │       └── ComponentTooLongError                  a component is too long: shorten it
    │   ├── ParentNotDirectoryError(NotADirectoryError)    a file is where a directory should be: check the path
    │   ├── PathIsDirectoryError(IsADirectoryError)        a directory is where a file should be: check the path
    │   │   └── DirectoryInTheWayError                     a file should be written there: choose another path
    │   ├── DirectoryNotEmptyError(OSError)                delete recursively, or empty it first
    │   ├── RenameError(OSError)                           this rename is impossible: choose another target
    │   └── QuotaExceededError(OSError)                    free some space, or raise the quota
    │       ├── NamesQuotaExceededError                    the quota of names
    │       └── SpaceQuotaExceededError                    the quota of space
    ├── UnsupportedError
    │   └── FeatureUnsupportedError(NotImplementedError)   HDFS has this feature, and the namespace does not
    ├── ConflictError
    │   ├── PathExistsError(FileExistsError)               something has this path: choose another, or overwrite
    │   └── BeingWrittenError                              another client has the file's lease: wait, or recover it
    ├── UnavailableError
    │   ├── TreeMovingError                                a directory on the path is being counted: repeat later
    │   ├── UncheckedTreeError                             a tree is deleted: check its permissions, then repeat
    │   └── UncountedTreeError                             a directory moves between quotas: count it, then repeat
    └── FencedError
        └── LeaseLostError                                 the file is not this writer's anymore: start over

`java_class` is the class that HDFS raises in the same situation, for servers that speak to Hadoop's clients.
"""

from __future__ import annotations

import errno
from typing import ClassVar

from holdfast.errors import (
    AccessDeniedError,
    ConflictError,
    FencedError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)


class InvalidPathError(InvalidRequestError):
    """The text is no path of the namespace. Fix the path."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.InvalidPathException"


class PathTooLongError(InvalidPathError):
    """The path or its depth exceeds HDFS's limits. Shorten it."""

    java_class = "java.io.IOException"


class ComponentTooLongError(PathTooLongError):
    """A component of the path exceeds HDFS's limit. Shorten it."""

    java_class = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"


class PathNotFoundError(NotFoundError, FileNotFoundError):
    """Nothing has this path. Check the path."""

    java_class: ClassVar[str] = "java.io.FileNotFoundException"
    errno = errno.ENOENT


class PathExistsError(ConflictError, FileExistsError):
    """Something has this path already. Choose another path, or ask to overwrite."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.FileAlreadyExistsException"
    errno = errno.EEXIST


class ParentNotDirectoryError(InvalidRequestError, NotADirectoryError):
    """A component of the path, other than the last, is a file. Check the path."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.ParentNotDirectoryException"
    errno = errno.ENOTDIR


class PathIsDirectoryError(InvalidRequestError, IsADirectoryError):
    """The operation needs a file, and the path is a directory. Check the path."""

    java_class: ClassVar[str] = "java.io.FileNotFoundException"
    errno = errno.EISDIR


class DirectoryInTheWayError(PathIsDirectoryError):
    """A file should be written where a directory is. Choose another path."""

    java_class = "org.apache.hadoop.fs.FileAlreadyExistsException"


class DirectoryNotEmptyError(InvalidRequestError, OSError):
    """The directory contains something. Delete it recursively, or empty it first."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"
    errno = errno.ENOTEMPTY


class RenameError(InvalidRequestError, OSError):
    """The rename is impossible, whatever the state of the namespace. Choose another target."""

    java_class: ClassVar[str] = "java.io.IOException"
    errno = errno.EINVAL


class QuotaExceededError(InvalidRequestError, OSError):
    """The operation would exceed a quota. Delete something below the directory, or raise its quota."""

    java_class: ClassVar[str] = "org.apache.hadoop.hdfs.protocol.QuotaExceededException"
    errno = errno.EDQUOT


class NamesQuotaExceededError(QuotaExceededError):
    """The operation would exceed a quota of names. Delete something below the directory, or raise its quota."""

    java_class = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException"


class SpaceQuotaExceededError(QuotaExceededError):
    """The operation would exceed a quota of space. Delete something below the directory, or raise its quota."""

    java_class = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException"


class PermissionDeniedError(AccessDeniedError, PermissionError):
    """The user lacks a permission. Ask the owner of the path, or the superuser."""

    java_class: ClassVar[str] = "org.apache.hadoop.security.AccessControlException"
    errno = errno.EACCES


class BeingWrittenError(ConflictError):
    """Another client is writing the file. Wait until it closes the file, or recover its lease if it is dead."""

    java_class: ClassVar[str] = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException"


class TreeMovingError(UnavailableError):
    """Another client counts the tree of a directory on the path, to move it or to limit it. Repeat later."""

    java_class: ClassVar[str] = "org.apache.hadoop.ipc.RetriableException"


class UncheckedTreeError(UnavailableError):
    """A tree is deleted, and the permissions in it were not checked. Check them, then repeat."""

    java_class: ClassVar[str] = "org.apache.hadoop.ipc.RetriableException"


class UncountedTreeError(UnavailableError):
    """A directory moves into another quota, and what is below it was not counted. Count it, then repeat."""

    java_class: ClassVar[str] = "org.apache.hadoop.ipc.RetriableException"


class LeaseLostError(FencedError):
    """The file was deleted or replaced, or the lease of this writer was recovered. Write the file again."""

    java_class: ClassVar[str] = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException"


class FeatureUnsupportedError(UnsupportedError, NotImplementedError):
    """HDFS or fsspec has this feature, and the namespace does not."""

    java_class: ClassVar[str] = "java.lang.UnsupportedOperationException"
