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


def test_update_of_what_is_gone(script: Script) -> None:
    """Scenario 79: If-Match on a deleted object answers 404."""
    store, _ = script(error("NoSuchKey", 404))
    with pytest.raises(PreconditionError, match="gone"):
        store.put("a", b"1", Update("e1"))


def test_update_in_a_missing_bucket(script: Script) -> None:
    store, _ = script(error("NoSuchBucket", 404))
    with pytest.raises(NotFoundError, match="no such bucket"):
        store.put("a", b"1", Update("e1"))
