"""Histories on a database that forgets: what may be undone, and what must not."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import cast

import pytest

from holdfast_checker.histories.history import History, Operation, Outcome
from holdfast_checker.histories.linearizable import (
    CRASH,
    Model,
    client_operations,
    judge_linearizable,
    judge_with_crashes,
    last_crash_position,
    lossy_crashes,
)


def _apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """A list to which marks are appended; whoever believes in a mark that is not there appends no other one."""
    marks = cast("str", state)
    if operation.name == "append" and "!" + operation.who not in marks:
        return marks + str(operation.args[0]), None
    if operation.name == "believe":
        return f"{marks}!{operation.who}", None
    return state, marks.partition("!")[0] if operation.name == "read" else "refused"


_LIST = Model(initial="", apply=_apply)


def _history(*events: str) -> tuple[Operation, ...]:
    """Return a history of events such as ``a+x`` (a appends x), ``a=xy`` (a reads xy), and ``crash 1``."""
    history = History()
    for event in events:
        if event.startswith("crash"):
            history = history.invoke("database", CRASH, (int(event[-1]),)).end("database", Outcome.OK)
            continue
        who, kind, rest = event[0], event[1], event[2:]
        history = history.invoke(who, "append" if kind == "+" else "read", (rest,) if kind == "+" else ())
        history = history.end(who, Outcome.OK, None if kind == "+" else rest)
    return history.operations


def _judge(*events: str, remembers: bool = False) -> str:
    history = _history(*events)

    def undone(operation: Operation) -> Operation | None:
        return replace(operation, name="believe", value=None) if remembers and operation.name == "append" else None

    return judge_with_crashes(client_operations(history), lossy_crashes(history), _LIST, undone)


@pytest.mark.parametrize(
    "events",
    [
        ("a+x", "crash 1", "b="),
        ("a+x", "crash 1", "b=x"),
        ("a+x", "b+y", "crash 1", "c=x"),
        ("a+x", "b=x", "crash 1", "c="),
        ("a+x", "a+y", "crash 1", "a+z", "b=xz"),
        ("a+x", "crash 1", "a+y", "crash 1", "b="),
        ("a+x", "crash 1", "a+y", "crash 1", "b=y"),
    ],
)
def test_what_began_before_a_crash_may_be_undone(events: tuple[str, ...]) -> None:
    assert _judge(*events) == ""


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (("a+x", "b="), "b: read() -> '' is impossible"),
        (("a+x", "crash 1", "b+y", "c="), "c: read() -> '' is impossible"),
        (("a+x", "crash 1", "b+y", "c=yx"), "whichever operations the crash has undone"),
        (("a+x", "a+y", "crash 1", "b=yx"), "if it has undone a: append('y') -> None"),
    ],
)
def test_all_else_must_have_an_order(events: tuple[str, ...], words: str) -> None:
    assert words in _judge(*events)


def test_a_hole_is_not_allowed_to_a_caller_that_remembers() -> None:
    events = ("a+x", "a+y", "crash 1", "a+z", "b=xz")
    assert _judge(*events) == ""
    assert "a: append('z') -> None is impossible" in _judge(*events, remembers=True)


def test_of_each_caller_operations_that_follow_each_other_are_undone() -> None:
    assert _judge("a+x", "a+y", "a+z", "crash 1", "b=xy") == _judge("a+x", "a+y", "a+z", "crash 3", "b=") == ""
    assert _judge("a+x", "a+y", "a+z", "crash 2", "b=y"), "x and z do not follow each other"


def test_the_end_of_crashes() -> None:
    assert last_crash_position(_history("a+x")) == -1
    history = _history("a+x", "crash 1", "b+y")
    first, crash, last = history
    assert first.precedes(crash) and crash.precedes(last)
    assert lossy_crashes(history) == [crash] and client_operations(history) == [first, last]
    assert last_crash_position(history) == crash.ended


@pytest.mark.parametrize("events", [("a+x", "b=x"), ("a+x", "b="), ("a+x", "b+y", "c=yx")])
def test_without_a_crash_nothing_may_be_undone(events: tuple[str, ...]) -> None:
    history = _history(*events)
    assert _judge(*events) == judge_linearizable(history, _LIST).words
