"""Every error becomes an exception of HDFS, with its status."""

from __future__ import annotations

import pytest

from holdfast import errors
from holdfast.errors import HoldfastError
from holdfast.namespace import errors as namespace_errors
from holdfast.webhdfs.failures import (
    SECURITY,
    STANDBY,
    TOKEN_INVALID,
    RequestRefusedError,
    java_class_of,
    make_failure,
    status_of,
)
from holdfast.webhdfs.settings import Limits, ServerSettings
from tests.unit.webhdfs.served import serve_fresh

_ACCESS = "org.apache.hadoop.security.AccessControlException"
_NO_XATTR = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException"
_HADOOP_ARGUMENT = "org.apache.hadoop.HadoopIllegalArgumentException"
_ARGUMENT = "java.lang.IllegalArgumentException"
_IO = "java.io.IOException"
_NOT_FOUND = "java.io.FileNotFoundException"
_RETRIABLE = "org.apache.hadoop.ipc.RetriableException"
_UNSUPPORTED = "java.lang.UnsupportedOperationException"

_EXPECTED = {
    # errors
    "HoldfastError": (403, _IO),
    "InvalidRequestError": (400, _HADOOP_ARGUMENT),
    "NotFoundError": (403, _IO),
    "AccessDeniedError": (403, _IO),
    "InputChangedError": (400, _HADOOP_ARGUMENT),
    "UnsupportedError": (400, _UNSUPPORTED),
    "ConflictError": (403, _IO),
    "PreconditionError": (403, _IO),
    "DestinationExistsError": (403, _IO),
    "DeadlockError": (403, _IO),
    "TransactionConflictError": (403, _RETRIABLE),
    "UnavailableError": (403, STANDBY),
    "StorageFullError": (403, _IO),  # other servers have no more space
    "OutcomeUnknownError": (403, _IO),
    "RepeatUnclearError": (403, _IO),
    "FencedError": (403, _IO),
    "LogRemovedError": (403, _IO),
    "LogTrimmedError": (403, _IO),
    "CorruptDataError": (403, _IO),
    # namespace.errors
    "InvalidPathError": (400, "org.apache.hadoop.fs.InvalidPathException"),
    "PathTooLongError": (403, _IO),
    "ComponentTooLongError": (403, "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"),
    "PathNotFoundError": (404, _NOT_FOUND),
    "PathExistsError": (403, "org.apache.hadoop.fs.FileAlreadyExistsException"),
    "ParentNotDirectoryError": (403, "org.apache.hadoop.fs.ParentNotDirectoryException"),
    "PathNotDirectoryError": (403, "org.apache.hadoop.fs.PathIsNotDirectoryException"),
    "PathIsDirectoryError": (404, _NOT_FOUND),
    "DirectoryInTheWayError": (403, "org.apache.hadoop.fs.FileAlreadyExistsException"),
    "DirectoryNotEmptyError": (403, "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"),
    "RenameError": (403, _IO),
    "ReplicationError": (403, _IO),
    "XattrError": (403, _IO),
    "QuotaExceededError": (403, "org.apache.hadoop.hdfs.protocol.QuotaExceededException"),
    "NamesQuotaExceededError": (403, "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException"),
    "SpaceQuotaExceededError": (403, "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException"),
    "PermissionDeniedError": (403, _ACCESS),
    "BeingWrittenError": (403, "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException"),
    "DirectoryFrozenError": (403, _RETRIABLE),
    "UncheckedTreeError": (403, _RETRIABLE),
    "UncountedTreeError": (403, _RETRIABLE),
    "LeaseLostError": (403, "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException"),
    "FeatureUnsupportedError": (400, _UNSUPPORTED),
}


def _all_classes() -> dict[str, type[HoldfastError]]:
    """Return the classes of errors that the server may pass on."""
    found = {**vars(errors), **vars(namespace_errors)}
    return {name: one for name, one in found.items() if isinstance(one, type) and issubclass(one, HoldfastError)}


def test_every_error_is_in_the_table() -> None:
    assert _all_classes().keys() == _EXPECTED.keys()


@pytest.mark.parametrize("name", _EXPECTED)
def test_an_error_has_the_class_and_the_status_of_hdfs(name: str) -> None:
    error = _all_classes()[name]("it failed")
    java_class = java_class_of(error)
    assert (status_of(error, java_class), java_class) == _EXPECTED[name]


def test_an_error_without_a_class_of_its_own_is_its_parents() -> None:
    class NewError(namespace_errors.PermissionDeniedError):
        pass

    assert java_class_of(NewError("no")) == _ACCESS
    assert java_class_of(OSError("no")) == _IO


@pytest.mark.parametrize(
    ("error", "status", "java_class"),
    [
        (RequestRefusedError("no"), 400, _ARGUMENT),
        (RequestRefusedError("no", _UNSUPPORTED), 400, _UNSUPPORTED),
        (RequestRefusedError("no", _HADOOP_ARGUMENT), 400, _HADOOP_ARGUMENT),
        (RequestRefusedError("no", STANDBY), 403, STANDBY),
        (RequestRefusedError("no", SECURITY), 403, SECURITY),
        (RequestRefusedError("no", TOKEN_INVALID), 403, TOKEN_INVALID),
        (RequestRefusedError("no", _NO_XATTR), 403, _NO_XATTR),
        (RequestRefusedError("no", _ACCESS), 403, _ACCESS),
        (RequestRefusedError("no", _ACCESS, is_anonymous=True), 401, _ACCESS),
    ],
)
def test_a_refusal_takes_the_class_that_it_is_given(error: RequestRefusedError, status: int, java_class: str) -> None:
    assert java_class_of(error) == java_class
    assert status_of(error, java_class_of(error)) == status


def test_the_document_names_the_class_in_short_and_in_full() -> None:
    assert make_failure("a.b.Outer$Inner", "no") == {
        "RemoteException": {"exception": "Inner", "javaClassName": "a.b.Outer$Inner", "message": "no"}
    }


def test_who_waits_for_too_long_is_told_so() -> None:
    """Defect: the connection was reset, and whoever deleted a very large tree saw no reason."""
    with serve_fresh(ServerSettings(url="", limits=Limits(request_s=0.0))) as served:
        for method, query in (("PUT", "op=MKDIRS"), ("PUT", "op=SETPERMISSION&permission=700")):
            refused = served.ask(method, "/", f"{query}&user.name=root")
            assert refused.status == 403
            assert "taken too long" in refused.document["RemoteException"]["message"]
