"""Urls of databases become options, and mistakes are explained without secrets."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.transactions.mysql.options import MysqlOptions, parse_mysql_url


def test_a_full_url() -> None:
    options = parse_mysql_url("mysql://us%40er:p%2Fw%3A@db.example:3307/a%20b?connections=3&ssl=require&timeout=1.5")
    assert options == MysqlOptions(
        host="db.example",
        port=3307,
        user="us@er",
        password="p/w:",
        database="a b",
        ssl="require",
        connections=3,
        timeout_s=1.5,
    )
    assert options.where == "mysql://db.example:3307/a b"
    assert "p/w" not in repr(options)


def test_defaults() -> None:
    options = parse_mysql_url("mysql://user@[::1]/d")
    assert (options.host, options.port, options.password, options.ssl) == ("::1", 3306, "", "prefer")
    assert options.where == "mysql://[::1]:3306/d"
    assert parse_mysql_url("mysql://user@h/d?ssl_ca=/a.pem").ssl == "verify"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://user:canary@h/d", "the url of the database is invalid: write mysql://user:password@host:port"),
        ("mysql:///d", "the url of the database is invalid"),
        ("mysql://h/d", "the url of the database is invalid"),
        ("mysql://user:canary@h/d#part", "write # as %23"),
        ("mysql://user:can#ary@h/d", "write # as %23"),
        ("mysql://user:can/ary@h/d", "percent-encode special characters"),
        ("mysql://user:can?ary@h/d", "percent-encode special characters"),
        ("mysql://user:can@ary@h/d", "percent-encode special characters"),
        ("mysql://user:canary/d", "the port of the database url is not a number"),
        ("mysql://user:canary@h:70000/d", "the port of the database url is not a number below 65536"),
        ("mysql://user:canary@h", "the url names no database"),
        ("mysql://user:canary@h/d/e", "the url names no database"),
        ("mysql://user:canary@h/d?conections=3", "unknown option: did you mean connections"),
        ("mysql://user:canary@h/d?ssl=off&ssl=off", "has an option twice"),
        ("mysql://user:canary@h/d?connections=0", "connections is a number from 1 to 1000"),
        ("mysql://user:canary@h/d?connections=many", "connections is a number from 1 to 1000"),
        ("mysql://user:canary@h/d?timeout=0", "timeout is a number of seconds"),
        ("mysql://user:canary@h/d?timeout=nan", "timeout is a number of seconds"),
        ("mysql://user:canary@h/d?ssl=yes", "ssl is one of off, prefer, require, verify"),
        ("mysql://user:canary@h/d?ssl_ca=", "ssl_ca is the path of a file"),
        ("mysql://user:canary@h/d?ssl=off&ssl_ca=/a", "ssl_ca has no effect without ssl=verify"),
    ],
)
def test_mistakes(url: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        parse_mysql_url(url)
    assert "canary" not in str(caught.value)
