"""Cycles of dependencies: compared with brute force over all orders, and each anomaly by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidRequestError
from holdfast_checker.histories.history import Operation, Outcome
from tests.simulation.histories.anomalies.serializable import find_anomalies
from tests.simulation.histories.anomalies.transactions import Level, Read, Transaction, Versions, Write

START = "start"


# --- against brute force ----------------------------------------------------------------------------------------------
@st.composite
def _histories(draw: st.DrawFn, most: int, keys: str = "xyz") -> tuple[list[Transaction], dict[str, Versions]]:
    """Draw transactions that write each key at most once; those of unknown outcome install any part of their writes."""
    count = draw(st.integers(2, most))
    writes = [draw(st.sets(st.sampled_from(keys), max_size=2)) for _ in range(count)]
    transactions = []
    for number in range(count):
        actions: list[Read | Write] = []
        for key in draw(st.permutations(keys))[: draw(st.integers(0, 2))]:
            written = [f"T{other}" for other in range(count) if key in writes[other]]
            actions.append(Read(key, draw(st.sampled_from([START, *written]))))
        actions += [Write(key, f"T{number}") for key in sorted(writes[number])]
        invoked = 2 * draw(st.integers(0, 3))
        outcome = draw(st.sampled_from([Outcome.OK, Outcome.OK, Outcome.OK, Outcome.UNKNOWN, Outcome.FAILED]))
        ended = None if outcome is Outcome.UNKNOWN else invoked + 1 + 2 * draw(st.integers(0, 3))
        operation = Operation(who=f"T{number}", name="run", invoked=invoked, ended=ended, outcome=outcome)
        transactions.append(Transaction(operation, tuple(actions)))
    versions = {}
    for key in keys:
        there = [
            f"T{number}"
            for number in range(count)
            if key in writes[number] and _may_be_there(draw, transactions[number])
        ]
        versions[key] = Versions((START, *draw(st.permutations(there))))
    return transactions, versions


def _may_be_there(draw: st.DrawFn, transaction: Transaction) -> bool:
    """Draw mistakes as well: an acknowledged write that is missing, a failed one that is installed."""
    usual = {Outcome.OK: True, Outcome.FAILED: False}.get(transaction.operation.outcome)
    return draw(st.booleans()) if usual is None or draw(st.integers(0, 15)) == 0 else usual


def _has_committed(transaction: Transaction) -> bool:
    return transaction.operation.outcome is Outcome.OK


def _is_open(transaction: Transaction) -> bool:
    return transaction.operation.outcome is Outcome.UNKNOWN


def _committed(transactions: Sequence[Transaction]) -> Iterator[list[Transaction]]:
    """Return sets of transactions that may have committed: all acknowledged ones, and any of unknown outcome."""
    sure, maybe = list(filter(_has_committed, transactions)), list(filter(_is_open, transactions))
    for count in range(len(maybe) + 1):
        for some in combinations(maybe, count):
            yield [*sure, *some]


def _replays(events: Sequence[tuple[str, Transaction]], versions: Mapping[str, Versions], settled: bool = True) -> bool:
    """Check whether the reads at "reads" and the writes at "writes" give what was read and the orders of versions.

    If the history is not settled, the last writes of transactions of unknown outcome need not be installed yet.
    """
    orders: dict[str, list[object]] = {key: [START] for key in versions}
    still_open = {one.operation.who for _event, one in events if _is_open(one)}
    for event, transaction in events:
        for action in transaction.actions:
            if event == "writes" and isinstance(action, Write):
                orders[action.key].append(action.version)
            if event == "reads" and isinstance(action, Read) and orders[action.key][-1] != action.version:
                return False
    for key, order in orders.items():
        there = len(versions[key].order)
        if tuple(order[:there]) != versions[key].order:
            return False
        if order[there:] and (settled or not still_open.issuperset(map(str, order[there:]))):
            return False
    return True


def _in_time(order: Sequence[Transaction]) -> bool:
    return not any(b.operation.precedes(a.operation) for n, a in enumerate(order) for b in order[n + 1 :])


def _is_serializable(
    transactions: list[Transaction], versions: Mapping[str, Versions], real_time: bool, settled: bool = True
) -> bool:
    return any(
        _replays([(event, one) for one in order for event in ("reads", "writes")], versions, settled)
        for there in _committed(transactions)
        for order in permutations(there)
        if not real_time or _in_time(order)
    )


def _is_snapshot_isolated(transactions: list[Transaction], versions: Mapping[str, Versions], real_time: bool) -> bool:
    """Check whether some order of snapshots and commits explains it: overlapping ones have disjoint write sets."""
    return any(_has_snapshots(there, versions, real_time) for there in _committed(transactions))


def _has_snapshots(there: list[Transaction], versions: Mapping[str, Versions], real_time: bool) -> bool:

    def may_begin(one: Transaction, events: list[tuple[str, Transaction]]) -> bool:
        done = [other for event, other in events if event == "writes"]
        earlier = [other for other in there if real_time and other.operation.precedes(one.operation)]
        return all(other in done for other in earlier) and not any(
            _written(one) & _written(other) for event, other in events if event == "reads" and other not in done
        )

    def may_go_on(events: list[tuple[str, Transaction]]) -> bool:
        begun = [one for event, one in events if event == "reads"]
        done = [one for event, one in events if event == "writes"]
        if len(done) == len(there):
            return _replays(events, versions)
        return any(
            may_go_on([*events, ("reads", one)]) for one in there if one not in begun and may_begin(one, events)
        ) or any(may_go_on([*events, ("writes", one)]) for one in begun if one not in done)

    return may_go_on([])


def _written(transaction: Transaction) -> set[str]:
    return {action.key for action in transaction.actions if isinstance(action, Write)}


@given(_histories(5), st.booleans(), st.booleans())
def test_serializable_as_brute_force(
    history: tuple[list[Transaction], dict[str, Versions]], real_time: bool, settled: bool
) -> None:
    found = find_anomalies(*history, real_time=real_time, settled=settled)
    assert (not found) is _is_serializable(*history, real_time, settled)


@given(_histories(4), st.booleans())
def test_snapshot_isolation_as_brute_force(
    history: tuple[list[Transaction], dict[str, Versions]], real_time: bool
) -> None:
    found = find_anomalies(*history, level=Level.SNAPSHOT_ISOLATION, real_time=real_time)
    assert (not found) is _is_snapshot_isolated(*history, real_time)


# --- names ------------------------------------------------------------------------------------------------------------
def _transaction(who: str, text: str, outcome: Outcome = Outcome.OK, at: tuple[int, int] = (0, 1)) -> Transaction:
    """`rx0 wx1` reads version 0 of x and writes version 1."""
    actions = [(Read if word[0] == "r" else Write)(word[1], word[2:]) for word in text.split()]
    ended = None if outcome is Outcome.UNKNOWN else at[1]
    return Transaction(Operation(who=who, name="run", invoked=at[0], ended=ended, outcome=outcome), tuple(actions))


def _names(
    transactions: Sequence[Transaction],
    orders: Mapping[str, str],
    level: Level = Level.SERIALIZABLE,
    settled: bool = True,
) -> list[str]:
    versions = {key: Versions(tuple(order)) for key, order in orders.items()}
    return [anomaly.name for anomaly in find_anomalies(transactions, versions, level=level, settled=settled)]


T = _transaction


@pytest.mark.parametrize(
    ("name", "transactions", "orders"),
    [
        ("G0", [T("a", "wx1 wy1"), T("b", "wx2 wy2")], {"x": "012", "y": "021"}),
        ("G1a", [T("a", "wx1", Outcome.FAILED), T("b", "rx1")], {"x": "0"}),
        ("G1a", [T("a", "wx1", Outcome.UNKNOWN), T("b", "rx1")], {"x": "0"}),
        ("G1b", [T("a", "wx1 wx2"), T("b", "rx1")], {"x": "012"}),
        ("G1c", [T("a", "wx1 ry1"), T("b", "wy1 rx1")], {"x": "01", "y": "01"}),
        ("lost update", [T("a", "rx0 wx1"), T("b", "rx0 wx2")], {"x": "012"}),
        ("G-single", [T("a", "rx0 ry1"), T("b", "wx1 wy1")], {"x": "01", "y": "01"}),
        (
            "G-nonadjacent",
            [T("a", "rx0 ry1"), T("b", "wx1 wu1"), T("c", "ru1 rz0"), T("d", "wz1 wy1")],
            {"x": "01", "y": "01", "z": "01", "u": "01"},
        ),
        ("G2-item", [T("a", "rx0 wy1"), T("b", "ry0 wx1")], {"x": "01", "y": "01"}),
        ("G-single-realtime", [T("a", "wx1", at=(0, 1)), T("b", "rx0", at=(2, 3))], {"x": "01"}),
        ("G0-realtime", [T("a", "wx1", at=(0, 1)), T("b", "wx2", at=(2, 3))], {"x": "021"}),
        ("internal", [T("a", "wx1 rx0")], {"x": "01"}),
        ("internal", [T("a", "rx1 wx1")], {"x": "01"}),
        ("internal", [T("a", "wx1"), T("b", "rx0 rx1")], {"x": "01"}),
        ("incompatible order", [T("a", "wx1 wx2")], {"x": "021"}),
        ("unwritten read", [T("a", "rx7")], {"x": "0"}),
        ("missing write", [T("a", "wx1")], {"x": "0"}),
        ("missing write", [T("a", "wx1 wy1", Outcome.UNKNOWN)], {"x": "01", "y": "0"}),
        ("missing write", [T("a", "wx1 wx2", Outcome.UNKNOWN)], {"x": "01"}),
        ("aborted write", [T("a", "wx1", Outcome.FAILED)], {"x": "01"}),
        ("unwritten version", [T("a", "wx1")], {"x": "012"}),
        ("version twice", [T("a", "wx1")], {"x": "011"}),
    ],
)
def test_anomalies_have_their_names(name: str, transactions: list[Transaction], orders: dict[str, str]) -> None:
    assert _names(transactions, orders)[0] == name


def test_nothing_is_wrong() -> None:
    """Reads of own writes, a blind write, and transactions of unknown outcome, one committed and one not."""
    history = [
        T("a", "rx0 wx1 rx1 wx2 rx2", at=(0, 1)),
        T("b", "wy1", at=(0, 1)),
        T("c", "rx2 wx3", Outcome.UNKNOWN, at=(2, 3)),
        T("d", "rx3 ry1", at=(2, 3)),
        T("e", "rx0 wx4", Outcome.UNKNOWN, at=(2, 3)),
        T("f", "rx9 wx5", Outcome.FAILED, at=(2, 3)),
    ]
    assert _names(history, {"x": "0123", "y": "01"}) == []


_TORN = [T("a", "wx1 wy1", Outcome.UNKNOWN), T("b", "rx1 ry0")]


def test_who_sees_a_half_of_a_write_knows_of_the_whole() -> None:
    """The outcome of `a` is unknown; `b` saw one of its writes, so `a` committed."""
    half = {"x": "01", "y": "0"}
    assert _names(_TORN, half) == ["missing write", "G-single"]
    assert _names(_TORN, half, settled=False) == ["G-single"], "the other half would come too late"
    assert _names(_TORN[:1], half, settled=False) == [], "it may still come"
    assert _names([_TORN[0], T("b", "rx0 ry0")], dict.fromkeys("xy", "0")) == [], "or it has not committed at all"


def test_what_was_read_may_be_installed_later() -> None:
    """The writer is still running; then it has committed, and so has the writer of what it read."""
    chain = [T("a", "wx1", Outcome.UNKNOWN), T("b", "rx1 wy1", Outcome.UNKNOWN), T("c", "ry1 rx0")]
    assert _names(chain, dict.fromkeys("xy", "0"), settled=False) == ["G-single"]
    assert _names([*chain[:2], T("c", "ry1 rx1")], dict.fromkeys("xy", "0"), settled=False) == []
    assert _names(chain, dict.fromkeys("xy", "0")) == ["G1a"], "nothing came any more"


def test_snapshot_isolation_allows_two_in_a_row_alone() -> None:
    skew = [T("a", "rx0 wy1"), T("b", "ry0 wx1")]
    assert _names(skew, {"x": "01", "y": "01"}, Level.SNAPSHOT_ISOLATION) == []
    read_only = [T("a", "rx0 rz1"), T("b", "wx1 ry0"), T("c", "wy1 wz1")]  # rw, rw, wr: in any rotation
    assert _names(read_only, dict.fromkeys("xyz", "01"), Level.SNAPSHOT_ISOLATION) == []
    assert _names(read_only, dict.fromkeys("xyz", "01")) == ["G2-item"]
    apart = [T("a", "rx0 ry1"), T("b", "wx1 wu1"), T("c", "ru1 rz0"), T("d", "wz1 wy1")]
    found = _names(apart, dict.fromkeys("xyzu", "01"), Level.SNAPSHOT_ISOLATION)
    assert found == ["G-nonadjacent"]


def test_one_circle_is_told_once() -> None:
    """Not again as a longer cycle that contains it, nor with transactions that only lie between in time."""
    assert _names([T("a", "rx0 ry1"), T("b", "wx1 wy1")], {"x": "01", "y": "01"}) == ["G-single"]
    history = [T("a", "wx1", at=(0, 1)), T("b", "wy1", at=(2, 3)), T("c", "rx0", at=(4, 5))]
    (stale,) = find_anomalies(history, {"x": Versions(("0", "1")), "y": Versions(("0", "1"))})
    assert stale.words == (
        "G-single-realtime: let T1 = c: run (read x='0'); T2 = a: run (wrote x='1'). "
        "Then T1 < T2, because T1 read x='0', and T2 overwrote x='0' with '1'; "
        "however, T2 < T1, because T2 had ended before T1 began: a contradiction"
    )


def test_a_version_is_written_once() -> None:
    with pytest.raises(InvalidRequestError, match="give every write one of its own"):
        _names([T("a", "wx1"), T("b", "wx1")], {"x": "01"})
