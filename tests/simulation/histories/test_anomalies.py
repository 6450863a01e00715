"""Each anomaly of the literature as a schedule: no backend allows it, and a database with the mistake for it does.

Sources: Berenson et al., "A critique of ANSI SQL isolation levels", SIGMOD 1995 (P0 to P4, A5A, A5B); Adya, Liskov,
O'Neil, "Generalized isolation level definitions", ICDE 2000 (G0 to G2); Fekete, O'Neil, O'Neil, "A read-only
transaction anomaly under snapshot isolation", SIGMOD Record 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from holdfast.transactions.memory import MemoryBackend
from tests.simulation.histories import wrong_backends as wrong
from tests.simulation.histories.interleaving import Interleaving
from tests.transaction_backends import BACKENDS, Handles, opened


@pytest.fixture(scope="module", params=[pytest.param(name, marks=marks) for name, (_open, marks) in BACKENDS.items()])
def handles(request: pytest.FixtureRequest) -> Iterator[Handles]:
    with opened(request.param, request) as found:
        yield found


# --- schedules: each runs to its end, and returns which transactions took effect --------------------------------------
def _dirty_write(run: Interleaving) -> list[bool]:
    """G0: the writes of two transactions alternate."""
    one, other = run.begin("one"), run.begin("other")
    one.put("x", "1")
    other.put("x", "2")
    other.put("y", "2")
    first = one.put("y", "1") or one.commit()
    second = other.commit()
    assert (run.value("x"), run.value("y")) == ("2", "2")
    return [first, second]


def _aborted_read(run: Interleaving) -> list[bool]:
    """G1a: one reads what the other has written, which did not commit."""
    one, other, third = run.begin("one"), run.begin("other"), run.begin("third")
    one.get("y")
    one.insert("in 2", "never")
    third.put("y", "3")
    found = [third.commit(), one.commit()]
    other.get("in 2")
    return [*found, other.commit()]


def _intermediate_read(run: Interleaving) -> list[bool]:
    """G1b: one reads what the other has written and writes again."""
    one, other = run.begin("one"), run.begin("other")
    one.put("x", "first")
    assert other.get("x") == "0"
    one.put("x", "last")
    return [one.commit(), other.commit()]


def _circular_information(run: Interleaving) -> list[bool]:
    """G1c: each reads what the other has written."""
    one, other = run.begin("one"), run.begin("other")
    one.put("x", "1")
    other.put("y", "2")
    assert one.get("y") == "0" and other.get("x") == "0"
    return [one.commit(), other.commit()]


def _lost_update(run: Interleaving) -> list[bool]:
    """P4: both read a record, and both write it."""
    one, other = run.begin("one"), run.begin("other")
    one.get("x")
    other.get("x")
    one.put("x", "1")
    other.put("x", "2")
    return [one.commit(), other.commit()]


def _lost_update_after_recreation(run: Interleaving) -> list[bool]:
    """P4 with ABA: the record is deleted and created with the same content in between."""
    one, other, third = run.begin("one"), run.begin("other"), run.begin("third")
    one.get("x")
    other.delete("x")
    found = [other.commit()]
    third.insert("x", "0")
    found.append(third.commit())
    one.put("x", "1")
    return [*found, one.commit()]


def _fuzzy_read(run: Interleaving) -> list[bool]:
    """P2: one reads a record twice, and the other writes it in between."""
    one, other = run.begin("one"), run.begin("other")
    first = one.get("x")
    other.put("x", "2")
    found = [other.commit()]
    assert one.get("x") == first, "a transaction keeps what it has seen"
    return [*found, one.commit()]


def _read_skew(run: Interleaving) -> list[bool]:
    """A5A, G-single: one reads x before, and y after the other has written both."""
    one, other = run.begin("one"), run.begin("other")
    one.get("x")
    other.put("x", "2")
    other.put("y", "2")
    found = [other.commit()]
    one.get("y")
    return [*found, one.commit()]


def _write_skew(run: Interleaving) -> list[bool]:
    """A5B, G2-item: both read both records, and each writes another one."""
    one, other = run.begin("one"), run.begin("other")
    for session in (one, other):
        session.get("x")
        session.get("y")
    one.put("x", "1")
    other.put("y", "2")
    return [one.commit(), other.commit()]


def _skew_through_absence(run: Interleaving) -> list[bool]:
    """G2-item on records that do not exist: each creates what the other one did not find."""
    one, other = run.begin("one"), run.begin("other")
    one.get("new x")
    other.get("new y")
    one.put("new y", "1")
    other.put("new x", "2")
    return [one.commit(), other.commit()]


def _phantom(run: Interleaving) -> list[bool]:
    """P3, G2: one counts a range twice, and the other inserts into it in between."""
    one, other = run.begin("one"), run.begin("other")
    before = one.scan()
    other.get("x")
    other.insert("in 2", "2")
    found = [other.commit()]
    assert one.scan() == before, "a transaction keeps what it has seen"
    one.put("x", str(len(before)))
    return [*found, one.commit()]


def _phantom_delete(run: Interleaving) -> list[bool]:
    """P3: one counts a range, and the other deletes from it."""
    one, other = run.begin("one"), run.begin("other")
    one.scan()
    other.get("x")
    other.delete("in 1")
    found = [other.commit()]
    one.put("x", "1")
    return [*found, one.commit()]


def _predicate_skew(run: Interleaving) -> list[bool]:
    """G2: both count a range, and each inserts into it."""
    one, other = run.begin("one"), run.begin("other")
    one.scan()
    other.scan()
    one.insert("in 2", "1")
    other.insert("in 3", "2")
    return [one.commit(), other.commit()]


def _read_only_anomaly(run: Interleaving) -> list[bool]:
    """Three transactions of which the one that only reads makes the difference.

    Savings x and checking y are 0. One withdraws from y, and is charged if x + y is too small; the other deposits in x;
    the reader sees the deposit, and no withdrawal.
    """
    one, other = run.begin("one"), run.begin("other")
    one.get("x")
    one.get("y")
    other.get("x")
    other.put("x", "20")
    found = [other.commit()]
    reader = run.begin("reader")
    assert (reader.get("x"), reader.get("y")) == ("20", "0")
    found.append(reader.commit())
    one.put("y", "-11")
    return [*found, one.commit()]


@dataclass(frozen=True)
class _Schedule:
    """A schedule, and how it must end.

    Attributes:
        effects: which transactions take effect, in the order of their commits.
        wrong: a database with the mistake for the anomaly; None if optimistic reads alone preclude it.
        anomaly: the name of the anomaly on the wrong database.
    """

    play: Callable[[Interleaving], list[bool]]
    effects: list[bool]
    wrong: type[MemoryBackend] | None = None
    anomaly: str = ""


_SCHEDULES: Mapping[str, _Schedule] = {
    "G0": _Schedule(_dirty_write, [True, True]),
    "G1a": _Schedule(_aborted_read, [True, False, True], wrong.LeavesFailedInserts, "G1a"),
    "G1b": _Schedule(_intermediate_read, [True, False]),
    "G1c": _Schedule(_circular_information, [True, False], wrong.ValidatesNothing, "G2-item"),
    "lost update": _Schedule(_lost_update, [True, False], wrong.ValidatesNothing, "lost update"),
    "lost update, ABA": _Schedule(_lost_update_after_recreation, [True, True, False], wrong.CountsVersions, "G-single"),
    "fuzzy read": _Schedule(_fuzzy_read, [True, False]),
    "read skew": _Schedule(_read_skew, [True, False], wrong.ValidatesNothing, "G-single"),
    "write skew": _Schedule(_write_skew, [True, False], wrong.ValidatesWhatItWrites, "G2-item"),
    "write skew, absent": _Schedule(_skew_through_absence, [True, False], wrong.ValidatesNoAbsence, "G2-item"),
    "phantom": _Schedule(_phantom, [True, False], wrong.CountsNothing, "G2-item"),
    "phantom, delete": _Schedule(_phantom_delete, [True, False], wrong.ChecksNothing, "G2-item"),
    "predicate skew": _Schedule(_predicate_skew, [True, False], wrong.CountsNothing, "lost update"),
    "read-only": _Schedule(_read_only_anomaly, [True, True, False], wrong.ValidatesWhatItWrites, "G2-item"),
}


def _start(handles: Handles, name: str) -> Interleaving:
    return Interleaving(handles.backend, f"anomalies/{name}", {"x": "0", "y": "0", "in 1": "0"})


@pytest.mark.parametrize("name", _SCHEDULES)
def test_no_backend_allows_it(handles: Handles, name: str) -> None:
    run = _start(handles, name)
    assert _SCHEDULES[name].play(run) == _SCHEDULES[name].effects
    assert run.anomalies() == []


@pytest.mark.parametrize("name", [name for name, one in _SCHEDULES.items() if one.wrong is not None])
def test_a_backend_with_the_mistake_allows_it(name: str) -> None:
    schedule = _SCHEDULES[name]
    assert schedule.wrong is not None
    backend = schedule.wrong()
    run = _start(Handles(backend, backend), name)
    schedule.play(run)
    assert schedule.anomaly in run.anomalies()
