"""What scripts do on a real store is what they mean."""

from __future__ import annotations

import contextlib

import pytest

from holdfast.transactions.base import Commit, Committed, Conflict
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.transaction import Transaction
from holdfast_checker.histories.history import Operation
from holdfast_checker.transactions.scenes import SCENES
from holdfast_checker.transactions.scripts import (
    FAILED,
    Contents,
    InconsistentReadError,
    Script,
    ScriptLog,
    apply_to_model,
    decode_text,
    encode_text,
    guard_key,
    run_script,
)


def _store(contents: Contents) -> MemoryBackend:
    store = MemoryBackend()
    store.commit(Commit(puts={name.encode(): encode_text(value) for name, (value, _number) in contents}))
    store.commit(Commit(adds={name.encode(): number for name, (_value, number) in contents}))
    return store


def _contents(store: MemoryBackend) -> Contents:
    records = store.scan(b"", b"\xff", 1000).records
    return tuple((key.decode(), (decode_text(record.value), record.number)) for key, record in records)


def _meaning(contents: Contents, played: ScriptLog) -> tuple[object, object]:
    return apply_to_model(contents, Operation(who="one", name="transaction", args=tuple(played.steps)))


def test_scripts_mean_what_they_do() -> None:
    """Plays the transactions of all scenes, one after the other."""
    for scene in SCENES.values():
        contents: Contents = tuple(sorted(scene.start.items()))
        store = _store(contents)
        for work in (work for works in scene.works.values() for work in works):
            transaction, played = Transaction(store), ScriptLog()
            with contextlib.suppress(InconsistentReadError):
                run_script(transaction, work.script, played, looks=work.looks)
            took_effect = isinstance(store.commit(transaction.to_commit()), Committed)
            after, answer = _meaning(contents, played)
            assert answer == (("saw", tuple(played.saw)) if took_effect else ("refused",))
            assert after == _contents(store)
            contents = _contents(store)


def _refused(contents: Contents, script: Script) -> None:
    """Check that a script means that it is refused, and that its commit conflicts."""
    store = _store(contents)
    transaction, played = Transaction(store), ScriptLog()
    run_script(transaction, script, played)
    assert isinstance(store.commit(transaction.to_commit()), Conflict)
    assert _meaning(contents, played) == (contents, ("refused",))


def test_conditions() -> None:
    _refused((("x", ("", 0)),), (("insert", "x", ""),))
    _refused((("x", ("", 3)),), (("add", "y", 1), ("bounded", "x", 2, 4)))


def test_a_failed_function_has_read() -> None:
    store = _store((("x", ("1", 0)), ("y", ("2", 0))))
    played = ScriptLog()
    with pytest.raises(InconsistentReadError):
        run_script(Transaction(store), (("put", "z", ""), ("together", "x", "y"), ("put", "w", "")), played)
    played.steps.append(FAILED)
    assert _meaning(_contents(store), played) == (_contents(store), ("saw", (("1", 0), ("2", 0))))


def test_steps_that_are_not_possible_are_left_out() -> None:
    store = _store((("x", ("1", 0)),))
    transaction, played = Transaction(store), ScriptLog()
    run_script(transaction, (("put", "y", ""), ("add", "y", 1), ("get", "x"), ("insert", "x", "")), played)
    assert played.steps == [("put", "y", ""), ("get", "x")]


def test_unless_ends_a_script() -> None:
    store = _store((("x", ("1", 0)),))
    played = ScriptLog()
    run_script(Transaction(store), (("unless", "y"), ("unless", "x"), ("put", "z", "")), played)
    assert played.steps == [("get", "y"), ("get", "x")]


def test_each_directory_has_its_guard() -> None:
    assert guard_key("x") == guard_key("w1") == "guard"
    assert guard_key("left/1") == guard_key("left/") != guard_key("right/1")
    transaction = Transaction(MemoryBackend())
    run_script(transaction, (("claim", "left/", "left0", "right/1"),), ScriptLog(), looks=True)
    commit = transaction.to_commit()
    assert [one.guard for one in commit.ranges] == [b"guard of left"]
    assert b"guard of right" in commit.reads
