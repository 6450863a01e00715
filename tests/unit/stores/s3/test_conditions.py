"""S3's conditional puts: sent once, understood by servers that read them differently."""

from __future__ import annotations

import pytest

from holdfast.errors import HoldfastError, NotFoundError, OutcomeUnknownError, PreconditionError, UnsupportedError
from holdfast.stores.base import Create, Update
from tests.unit.stores.s3.scripted_server import LOST, Answer, error
from tests.unit.stores.s3.scripted_store import PUT_DONE, Script


def test_conditions_are_sent(script: Script) -> None:
    store, server = script(PUT_DONE)
    store.put("a", b"1")
    store.put("a", b"1", Create())
    store.put("a", b"1", Update("e1"))
    sent = [(headers.get("if-none-match"), headers.get("if-match")) for headers in server.headers]
    assert sent == [(None, None), ("*", None), (None, '"e1"')]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error("PreconditionFailed", 412), PreconditionError),
        (error("ConditionalRequestConflict", 409), PreconditionError),
        (error("NotImplemented", 501), UnsupportedError),
        (LOST, OutcomeUnknownError),
        (error("InternalError", 500), OutcomeUnknownError),
    ],
)
@pytest.mark.parametrize("mode", [Create(), Update("e1")])
def test_conditional_put_is_sent_once(
    script: Script, answer: Answer, expected: type[HoldfastError], mode: Create | Update
) -> None:
    """Scenarios 79 and 80, LOST RESPONSE: a repeated conditional put is refused for its own first success."""
    store, server = script(answer)
    with pytest.raises(expected):
        store.put("a", b"1", mode)
    assert [method for method, _ in server.requests].count("PUT") == 1


def test_a_server_that_refuses_a_quoted_etag_is_asked_without_quotes_from_then_on(script: Script) -> None:
    """radosgw 16.2 answers 412 to the quotes: found out once, by the etag that is there."""
    there = Answer(headers={"ETag": '"e1"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"})
    store, server = script(error("PreconditionFailed", 412), there, PUT_DONE)
    store.put("a", b"1", Update("e1"))
    assert [method for method, _ in server.requests] == ["PUT", "HEAD", "PUT"]
    assert [headers.get("if-match") for headers in server.headers] == ['"e1"', None, "e1"]
    store.put("a", b"1", Update("e1"))
    assert server.headers[-1]["if-match"] == "e1"
    assert len(server.requests) == 4


def test_another_object_is_no_misunderstanding(script: Script) -> None:
    there = Answer(headers={"ETag": '"e2"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"})
    store, server = script(error("PreconditionFailed", 412), there, PUT_DONE, error("PreconditionFailed", 412))
    with pytest.raises(PreconditionError):
        store.put("a", b"1", Update("e1"))
    store.put("a", b"1", Update("e1"))
    with pytest.raises(PreconditionError):
        store.put("a", b"1", Update("e1"))  # quotes are known to be taken by now: nothing to find out
    assert [method for method, _ in server.requests] == ["PUT", "HEAD", "PUT", "PUT"]


def test_an_update_that_is_refused_without_quotes_too_teaches_nothing(script: Script) -> None:
    there = Answer(headers={"ETag": '"e1"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"})
    store, server = script(error("PreconditionFailed", 412), there, error("PreconditionFailed", 412), PUT_DONE)
    with pytest.raises(PreconditionError):
        store.put("a", b"1", Update("e1"))
    store.put("a", b"1", Update("e1"))
    assert server.headers[-1]["if-match"] == '"e1"'


def test_update_of_what_is_gone(script: Script) -> None:
    """Scenario 79: If-Match on a deleted object answers 404."""
    store, _ = script(error("NoSuchKey", 404))
    with pytest.raises(PreconditionError, match="gone"):
        store.put("a", b"1", Update("e1"))


def test_update_in_a_missing_bucket(script: Script) -> None:
    store, _ = script(error("NoSuchBucket", 404))
    with pytest.raises(NotFoundError, match="no such bucket"):
        store.put("a", b"1", Update("e1"))
