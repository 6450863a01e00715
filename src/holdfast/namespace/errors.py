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
    │   │   └── PathNotDirectoryError                      the path itself is a file: check it
    │   ├── PathIsDirectoryError(IsADirectoryError)        a directory is where a file should be: check the path
    │   │   └── DirectoryInTheWayError                     a file should be written there: choose another path
    │   ├── DirectoryNotEmptyError(OSError)                delete recursively, or empty it first
    │   ├── RenameError(OSError)                           this rename is impossible: choose another target
    │   ├── ReplicationError                               the number is out of range: change it
    │   ├── XattrError                                     it exists, or not, or there are too many: see the message
    │   └── QuotaExceededError(OSError)                    free some space, or raise the quota
    │       ├── NamesQuotaExceededError                    the quota of names
    │       └── SpaceQuotaExceededError                    the quota of space
    ├── UnsupportedError
    │   └── FeatureUnsupportedError(NotImplementedError)   HDFS has this feature, and the namespace does not
    ├── ConflictError
    │   ├── PathExistsError(FileExistsError)               something has this path: choose another, or overwrite
    │   └── BeingWrittenError                              another client has the file's lease: wait, or recover it
    ├── UnavailableError
    │   ├── DirectoryFrozenError                                a directory on the path is being counted: repeat later
    │   ├── UncheckedTreeError                             a tree is deleted: check its permissions, then repeat
    │   └── UncountedTreeError                             a directory moves between quotas: count it, then repeat
    ├── OutcomeUnknownError
    │   └── RepeatUnclearError                             it may have taken effect before: look, and ask again
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
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)


class InvalidPathError(InvalidRequestError):
    """The text is not a valid path of a namespace. Fix the path."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.InvalidPathException"


class PathTooLongError(InvalidPathError):
    """The path or its depth exceeds HDFS's limits. Shorten it."""

    java_class = "java.io.IOException"


class ComponentTooLongError(PathTooLongError):
    """A component of the path exceeds HDFS's limit. Shorten it."""

    java_class = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"


class PathNotFoundError(NotFoundError, FileNotFoundError):
    """No file or directory has this path. Check the path."""

    java_class: ClassVar[str] = "java.io.FileNotFoundException"
    errno = errno.ENOENT


class PathExistsError(ConflictError, FileExistsError):
    """A file or directory has this path already. Choose another path, or ask to overwrite."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.FileAlreadyExistsException"
    errno = errno.EEXIST


class ParentNotDirectoryError(InvalidRequestError, NotADirectoryError):
    """A component of the path, other than the last, is a file. Check the path."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.ParentNotDirectoryException"
    errno = errno.ENOTDIR


class PathNotDirectoryError(ParentNotDirectoryError):
    """The operation needs a directory, and the path is a file. Check the path."""

    java_class = "org.apache.hadoop.fs.PathIsNotDirectoryException"


class PathIsDirectoryError(InvalidRequestError, IsADirectoryError):
    """The operation needs a file, and the path is a directory. Check the path."""

    java_class: ClassVar[str] = "java.io.FileNotFoundException"
    errno = errno.EISDIR


class DirectoryInTheWayError(PathIsDirectoryError):
    """A file cannot be written, because a directory has its path. Choose another path."""

    java_class = "org.apache.hadoop.fs.FileAlreadyExistsException"


class DirectoryNotEmptyError(InvalidRequestError, OSError):
    """The directory has entries. Delete it recursively, or empty it first."""

    java_class: ClassVar[str] = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"
    errno = errno.ENOTEMPTY


class RenameError(InvalidRequestError, OSError):
    """The rename can never succeed, such as that of the root, or of a directory into itself. Choose another target."""

    java_class: ClassVar[str] = "java.io.IOException"
    errno = errno.EINVAL


class ReplicationError(InvalidRequestError):
    """A replication is out of range. Change it."""

    java_class: ClassVar[str] = "java.io.IOException"


class XattrError(InvalidRequestError):
    """An extended attribute exists, or does not, against the caller's word, or is one too many. See the message."""

    java_class: ClassVar[str] = "java.io.IOException"


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


class DirectoryFrozenError(UnavailableError):
    """A directory on the path is frozen: another client counts its tree, to move it between quotas or to give it a
    quota. Repeat later.
    """

    java_class: ClassVar[str] = "org.apache.hadoop.ipc.RetriableException"


class RepeatUnclearError(OutcomeUnknownError):
    """A request is either the repeat of one that took effect, or new; its path has been changed meanwhile. Nothing
    happened now: look at the path, and ask again.
    """

    java_class: ClassVar[str] = "java.io.IOException"


class UncheckedTreeError(UnavailableError):
    """A recursive deletion needs a check of the caller's permissions in the whole tree first. `Namespace.delete`
    checks them itself; otherwise check them, then repeat.
    """

    java_class: ClassVar[str] = "org.apache.hadoop.ipc.RetriableException"


class UncountedTreeError(UnavailableError):
    """A directory gets a quota, or moves between quotas, and its tree was not counted. `Namespace` counts it; otherwise
    count it, then repeat.
    """

    java_class: ClassVar[str] = "org.apache.hadoop.ipc.RetriableException"


class LeaseLostError(FencedError):
    """The file was deleted or replaced, or the lease of this writer was recovered. Write the file again."""

    java_class: ClassVar[str] = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException"


class FeatureUnsupportedError(UnsupportedError, NotImplementedError):
    """HDFS or fsspec has this feature, and the namespace does not."""

    java_class: ClassVar[str] = "java.lang.UnsupportedOperationException"
