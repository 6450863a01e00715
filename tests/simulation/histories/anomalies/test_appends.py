"""Lists that only grow: compared with brute force over all orders, and each anomaly by its name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_checker.histories.history import Operation, Outcome
from tests.simulation.histories.anomalies.appends import find_anomalies_of_appends
from tests.simulation.histories.anomalies.transactions import Read, Transaction, Write


@st.composite
def _histories(draw: st.DrawFn) -> list[Transaction]:
    """Draw four transactions on two lists; a read is a prefix of some order of the elements."""
    count = draw(st.integers(2, 4))
    plans = [draw(st.lists(st.sampled_from(["rx", "ry", "wx", "wy"]), min_size=1, max_size=3)) for _ in range(count)]
    elements = {
        key: [
            f"{number}.{at}" for number, plan in enumerate(plans) for at, word in enumerate(plan) if word == f"w{key}"
        ]
        for key in "xy"
    }
    orders = {key: draw(st.permutations(them)) for key, them in elements.items()}
    history = []
    for number, plan in enumerate(plans):
        actions: list[Read | Write] = []
        for at, word in enumerate(plan):
            if word[0] == "w":
                actions.append(Write(word[1], f"{number}.{at}"))
            else:
                order = orders[word[1]]
                actions.append(Read(word[1], tuple(order[: draw(st.integers(0, len(order)))])))
        invoked = 2 * draw(st.integers(0, 2))
        outcome = draw(st.sampled_from([Outcome.OK, Outcome.OK, Outcome.OK, Outcome.UNKNOWN, Outcome.FAILED]))
        ended = None if outcome is Outcome.UNKNOWN else invoked + 1 + 2 * draw(st.integers(0, 2))
        operation = Operation(who=f"T{number}", name="run", invoked=invoked, ended=ended, outcome=outcome)
        history.append(Transaction(operation, tuple(actions)))
    return history


def _is_explained(history: Sequence[Transaction], real_time: bool) -> bool:
    sure = [one for one in history if one.operation.outcome is Outcome.OK]
    maybe = [one for one in history if one.operation.outcome is Outcome.UNKNOWN]
    return any(
        _replays(order)
        for count in range(len(maybe) + 1)
        for some in combinations(maybe, count)
        for order in permutations((*sure, *some))
        if not real_time
        or not any(b.operation.precedes(a.operation) for n, a in enumerate(order) for b in order[n + 1 :])
    )


def _replays(order: Sequence[Transaction]) -> bool:
    lists: dict[str, tuple[object, ...]] = {}
    for one in order:
        for action in one.actions:
            there = lists.get(action.key, ())
            if isinstance(action, Write):
                lists[action.key] = (*there, action.version)
            elif action.version != there:
                return False
    return True


@given(_histories(), st.booleans())
def test_as_brute_force(history: list[Transaction], real_time: bool) -> None:
    found = find_anomalies_of_appends(history, real_time=real_time)
    assert (not found) is _is_explained(history, real_time)


def T(who: str, text: str, outcome: Outcome = Outcome.OK, at: tuple[int, int] = (0, 1)) -> Transaction:
    """`rx12 wx3` reads the list 1, 2 and appends 3."""
    actions = [Read(word[1], tuple(word[2:])) if word[0] == "r" else Write(word[1], word[2:]) for word in text.split()]
    ended = None if outcome is Outcome.UNKNOWN else at[1]
    return Transaction(Operation(who=who, name="run", invoked=at[0], ended=ended, outcome=outcome), tuple(actions))


@pytest.mark.parametrize(
    ("name", "history"),
    [
        ("G0", [T("a", "wx1 wy1"), T("b", "wx2 wy2"), T("c", "rx12 ry21")]),
        ("G1a", [T("a", "wx1", Outcome.FAILED), T("b", "rx12"), T("c", "wx2")]),
        ("G1b", [T("a", "wx1 wx2"), T("b", "rx1")]),
        ("G1c", [T("a", "wx1 ry1"), T("b", "wy1 rx1")]),
        ("lost update", [T("a", "rx wx1"), T("b", "rx wx2")]),
        ("G-single", [T("a", "rx ry1"), T("b", "wx1 wy1")]),
        ("G2-item", [T("a", "rx wy1"), T("b", "ry wx1")]),
        ("G-single-realtime", [T("a", "wx1"), T("b", "rx", at=(2, 3))]),
        ("internal", [T("a", "wx1 rx")]),
        ("internal", [T("a", "rx wx1 rx21"), T("b", "wx2")]),
        ("internal", [T("a", "rx12 wx1"), T("b", "wx2")]),
        ("duplicate", [T("a", "wx1"), T("b", "rx11")]),
        ("incompatible order", [T("a", "wx1 wx2"), T("b", "rx12"), T("c", "rx2")]),
        ("incompatible order", [T("a", "wx1 wx2"), T("b", "rx21")]),
        ("incompatible order", [T("a", "wx1 wx2"), T("b", "rx2")]),
        ("unwritten read", [T("a", "rx7")]),
    ],
)
def test_anomalies_have_their_names(name: str, history: list[Transaction]) -> None:
    assert name in [anomaly.name for anomaly in find_anomalies_of_appends(history)]


def test_nothing_is_wrong() -> None:
    """A transaction of unknown outcome was seen, so it committed, and so did the one that it saw."""
    history = [
        T("a", "rx wx1 rx1 wx2 rx12", at=(0, 1)),
        T("b", "rz wy1", Outcome.UNKNOWN),
        T("c", "ry1 wx3", Outcome.UNKNOWN, at=(2, 3)),
        T("d", "rx123", at=(2, 3)),
        T("e", "wx4", Outcome.UNKNOWN, at=(2, 3)),
    ]
    assert find_anomalies_of_appends(history) == []
