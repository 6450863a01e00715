"""Turn errors into HDFS's: the class of the exception, which Hadoop's client raises again, and the status.

Source: Hadoop's ``ExceptionHandler`` for the status of each class; ``RemoteException`` for the document.
"""

from __future__ import annotations

from holdfast.errors import (
    AccessDeniedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    TransactionConflictError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.namespace.errors import DirectoryFrozenError

_IO = "java.io.IOException"
_ACCESS = "org.apache.hadoop.security.AccessControlException"
_NOT_FOUND = "java.io.FileNotFoundException"
_ARGUMENT = "java.lang.IllegalArgumentException"
_BAD_ARGUMENT = "org.apache.hadoop.HadoopIllegalArgumentException"
_UNSUPPORTED = "java.lang.UnsupportedOperationException"
_RETRIABLE = "org.apache.hadoop.ipc.RetriableException"
STANDBY = "org.apache.hadoop.ipc.StandbyException"

_CLASSES: tuple[tuple[type[HoldfastError], str], ...] = (
    (DirectoryFrozenError, _RETRIABLE),
    (TransactionConflictError, _RETRIABLE),
    (UnavailableError, STANDBY),
    (NotFoundError, _NOT_FOUND),
    (AccessDeniedError, _ACCESS),
    (InvalidRequestError, _BAD_ARGUMENT),
    (UnsupportedError, _UNSUPPORTED),
)
"""The exceptions of errors that do not name one themselves (`java_class`); all others are `IOException`."""

_BAD_REQUEST = (
    _ARGUMENT,
    _UNSUPPORTED,
    _BAD_ARGUMENT,
    "org.apache.hadoop.fs.InvalidPathException",
)


class UnauthenticatedError(AccessDeniedError):
    """The request does not prove who sends it. Send a token, or a certificate."""


class StandbyError(UnavailableError):
    """This server does not answer now. Ask another one."""

    java_class = STANDBY


def java_class_of(error: Exception) -> str:
    """Return the full name of the exception that HDFS would raise."""
    named: str | None = getattr(error, "java_class", None)
    if named is not None:
        return named
    return next((name for kind, name in _CLASSES if isinstance(error, kind)), _IO)


def status_of(error: Exception, java_class: str) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, UnauthenticatedError):
        return 401
    if java_class == _NOT_FOUND:
        return 404
    return 400 if java_class in _BAD_REQUEST else 403


def make_failure(java_class: str, message: str) -> dict[str, object]:
    """Return the document of an exception."""
    name = java_class.rpartition(".")[2].rpartition("$")[2]
    return {"RemoteException": {"exception": name, "javaClassName": java_class, "message": message}}
