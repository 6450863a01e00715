"""Turn errors into HDFS's: the class of the exception, which Hadoop's client raises again, and the status.

Source: Hadoop's ``ExceptionHandler`` for the status of each class; ``RemoteException`` for the document.
"""

from __future__ import annotations

from holdfast.errors import (
    AccessDeniedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    StorageFullError,
    TransactionConflictError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.namespace.errors import DirectoryFrozenError

IO_ERROR = "java.io.IOException"
ACCESS_DENIED = "org.apache.hadoop.security.AccessControlException"
_NOT_FOUND = "java.io.FileNotFoundException"
BAD_ARGUMENT = "java.lang.IllegalArgumentException"
_HADOOP_ARGUMENT = "org.apache.hadoop.HadoopIllegalArgumentException"
UNSUPPORTED = "java.lang.UnsupportedOperationException"
_RETRIABLE = "org.apache.hadoop.ipc.RetriableException"
STANDBY = "org.apache.hadoop.ipc.StandbyException"
SECURITY = "java.lang.SecurityException"
TOKEN_INVALID = "org.apache.hadoop.security.token.SecretManager$InvalidToken"

_CLASSES: tuple[tuple[type[HoldfastError], str], ...] = (
    (DirectoryFrozenError, _RETRIABLE),
    (TransactionConflictError, _RETRIABLE),
    (StorageFullError, IO_ERROR),  # other servers have no more space
    (UnavailableError, STANDBY),
    (NotFoundError, IO_ERROR),  # a bucket is missing, not a path
    (AccessDeniedError, IO_ERROR),  # the object store refuses the server, not the server a user
    (InvalidRequestError, _HADOOP_ARGUMENT),
    (UnsupportedError, UNSUPPORTED),
)
"""The exceptions of errors that do not name one themselves (`java_class`); all others are `IOException`. Those of the
namespace name one, so these come from the object store or the database.
"""

_BAD_REQUEST = (
    BAD_ARGUMENT,
    UNSUPPORTED,
    _HADOOP_ARGUMENT,
    "org.apache.hadoop.fs.InvalidPathException",
)


class RequestRefusedError(Exception):
    """The server refuses a request, in HDFS's way. Not a `HoldfastError`: it is made to be sent.

    Args:
        message: for the client.
        java_class: the exception that Hadoop's client raises.
        is_anonymous: whether the request does not prove who sends it.
    """

    def __init__(self, message: str, java_class: str = BAD_ARGUMENT, *, is_anonymous: bool = False) -> None:
        super().__init__(message)
        self.java_class = java_class
        self.is_anonymous = is_anonymous


def java_class_of(error: Exception) -> str:
    """Return the full name of the exception that HDFS would raise."""
    named: str | None = getattr(error, "java_class", None)
    if named is not None:
        return named
    return next((name for kind, name in _CLASSES if isinstance(error, kind)), IO_ERROR)


def status_of(error: Exception, java_class: str) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, RequestRefusedError) and error.is_anonymous:
        return 401
    if java_class == _NOT_FOUND:
        return 404
    return 400 if java_class in _BAD_REQUEST else 403


def make_failure(java_class: str, message: str) -> dict[str, object]:
    """Return the document of an exception."""
    name = java_class.rpartition(".")[2].rpartition("$")[2]
    return {"RemoteException": {"exception": name, "javaClassName": java_class, "message": message}}
