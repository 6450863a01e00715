"""What transactions do is told in sentences."""

from __future__ import annotations

import re

import pytest

from holdfast_checker.framework.check import Check
from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.transactions.narration import describe_answer, describe_transaction, format_script_steps
from holdfast_checker.transactions.scenes import SCENES
from holdfast_checker.transactions.worlds import TRANSACTIONS
from tests.checker.transactions.mutants import MUTANTS


def test_steps() -> None:
    steps = (
        *(("get", "x"), ("get_many", "x", "y"), ("scan", "w", "z", None)),
        *(("scan", "w", "z", 2), ("put", "x", "a"), ("insert", "y", ""), ("delete", "z"), ("add", "n", 3)),
        *(("at_most", "n", 4), ("failed",), ("everything",)),
    )
    assert format_script_steps(steps) == [
        *("get x", "get_many x y", "scan w z", "scan w z 2", "put x a"),
        *("insert y ''", "delete z", "add n 3", "at_most n 4", "failed", "everything"),
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("refused",), "that it was refused"),
        (("saw", ()), "that it took effect"),
        (("saw", (None, ("v", 0))), "that it saw nothing, then 'v'"),
        (("saw", ((("x", ("v", 3)), ("y", ("", 0))),)), "that it saw x='v', 3; y=''"),
        (("saw", ((None, ("v", 0)),)), "that it saw nothing and 'v'"),
        (("saw", ((),)), "that it saw no records"),
    ],
)
def test_answers(answer: tuple[object, ...], words: str) -> None:
    assert describe_answer(answer) == words


def test_transactions() -> None:
    steps = (("get", "x"), ("put", "x", "a"))
    done = Operation(who="ann", name="transaction", args=steps, outcome=Outcome.OK, value=("saw", (("v", 0),)))
    assert describe_transaction(done) == "ann's answer that it saw 'v' (it wanted: get x; put x a)"
    unknown = Operation(who="bob", name="transaction", args=steps[1:])
    assert describe_transaction(unknown) == "bob, who got no answer (it wanted: put x a)"


@pytest.mark.parametrize("name", ["validates-writes-only", "bounds-the-old-number"])
def test_stories_have_no_tuples(name: str) -> None:
    [mutant] = [one for one in MUTANTS if one.name == name]
    check = Check(TRANSACTIONS, (mutant.breaks,))
    with mutant.planted():
        check.explore([SCENES[mutant.scenes[0]]], Budget(states=30_000))
        story = "\n".join(check.tell_story(check.shrink(check.violations[mutant.breaks])).lines(width=1000))
    assert "it wanted: " in story
    assert not re.search(r"\(\(|'saw'|\('get|None", story)
