"""Errors of the driver are sorted by what they mean for a transaction."""

from __future__ import annotations

import ssl

import pymysql
import pytest

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.transactions.mysql.server import (
    as_holdfast_error,
    convert_mysql_errors,
    error_code,
    is_busy_error,
    is_connection_lost_error,
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (pymysql.OperationalError(1045, "Access denied"), AccessDeniedError),
        (pymysql.OperationalError(1142, "CREATE command denied"), AccessDeniedError),
        (pymysql.OperationalError(1049, "Unknown database"), NotFoundError),
        (pymysql.ProgrammingError(1146, "Table does not exist"), NotFoundError),
        (pymysql.OperationalError(1114, "The table is full"), StorageFullError),
        (pymysql.InternalError(3, 'Error writing file (Errcode: 28 "No space left on device")'), StorageFullError),
        (pymysql.InternalError(3, 'Error writing file (Errcode: 5 "Input/output error")'), CorruptDataError),
        (pymysql.OperationalError(1213, "Deadlock found"), UnavailableError),
        (pymysql.OperationalError(2013, "Lost connection"), UnavailableError),
        (pymysql.OperationalError(1040, "Too many connections"), UnavailableError),
        (pymysql.OperationalError(1290, "read-only"), UnavailableError),
        (pymysql.InterfaceError(0, ""), UnavailableError),
        (pymysql.OperationalError(1665, "binlog"), UnsupportedError),
        (pymysql.OperationalError(2026, "SSL is required"), InvalidRequestError),
        (pymysql.ProgrammingError(1064, "syntax"), CorruptDataError),
    ],
)
def test_what_the_caller_gets(error: pymysql.MySQLError, kind: type[HoldfastError]) -> None:
    found = as_holdfast_error(error, "mysql://h:3306/d")
    assert type(found) is kind
    assert found.variables["database"] == "mysql://h:3306/d"
    with pytest.raises(kind) as caught, convert_mysql_errors("mysql://h:3306/d"):
        raise error
    assert caught.value.__cause__ is error


def test_what_may_be_repeated() -> None:
    assert [code for code in (1205, 1213, 1045, 2013) if is_busy_error(pymysql.OperationalError(code, ""))] == [
        1205,
        1213,
    ]
    assert [
        code for code in (1205, 1213, 1045, 2013) if is_connection_lost_error(pymysql.OperationalError(code, ""))
    ] == [2013]
    assert is_connection_lost_error(pymysql.InternalError("Packet sequence number wrong - got 1 expected 2"))
    assert error_code(ValueError()) == -1


def test_a_certificate_that_fails_is_not_worth_a_repetition() -> None:
    error = pymysql.OperationalError(2003, "Can't connect")
    refused = ssl.SSLCertVerificationError("refused")
    refused.verify_message = "certificate has expired"
    error.original_exception = refused
    assert not is_connection_lost_error(error)
    found = as_holdfast_error(error, "d")
    assert type(found) is InvalidRequestError
    assert found.variables["reason"] == "certificate has expired"
