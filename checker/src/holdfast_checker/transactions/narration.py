"""Describe transactions, their steps and their answers in words, for counterexamples."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.transactions.base import Record
from holdfast_checker.histories.history import HISTORY, Operation, Outcome
from holdfast_checker.kernel.world import View
from holdfast_checker.narrative.sentences import CallImportance
from holdfast_checker.simulated.database import DATABASE, DatabaseState
from holdfast_checker.simulated.narration import DatabaseWords, SentenceTemplate
from holdfast_checker.transactions.scripts import Content, Contents, Step, decode_text


def format_script_steps(steps: Sequence[Step]) -> list[str]:
    """Format each step of a transaction as in a scene file: ``put x a``."""
    return [shlex.join(str(one) for one in step if one is not None) for step in steps]


def describe_content(content: Content) -> str:
    """Describe the content of a record in words: its value, and its number unless that is 0."""
    value, number = content
    return f"{value!r}, {number}" if number else repr(value)


def _describe_one_read(answer: object) -> str:
    if answer is None:
        return "nothing"
    one = cast("tuple[object, ...]", answer)
    if len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], int):
        return describe_content(cast("Content", one))
    if one and isinstance(one[0], tuple) and len(one[0]) == 2 and isinstance(one[0][1], tuple):
        return "; ".join(f"{name}={describe_content(content)}" for name, content in cast("Contents", one))
    return f"{' and '.join(map(_describe_one_read, one))}" if one else "no records"


def describe_answer(answer: object) -> str:
    """Describe the answer of a transaction (what its reads returned) as a clause of a sentence."""
    kind, *rest = cast("tuple[object, ...]", answer)
    if kind != "saw":
        return "that it was refused"
    saw = list(map(_describe_one_read, cast("Sequence[object]", rest[0])))
    return f"that it saw {', then '.join(saw)}" if saw else "that it took effect"


def describe_transaction(operation: Operation) -> str:
    """Describe a recorded transaction in words: its actor, its steps, and its answer."""
    wanted = "; ".join(format_script_steps(cast("Sequence[Step]", operation.args))) or "nothing"
    is_known = operation.outcome is Outcome.OK
    answer = f"'s answer {describe_answer(operation.value)}" if is_known else ", who got no answer"
    return f"{operation.who}{answer} (it wanted: {wanted})"


# --- stories ----------------------------------------------------------------------------------------------------------
def _describe_value(key: bytes, record: Record) -> str:
    return describe_content((decode_text(record.value), record.number))


def _describe_database_state(view: View) -> Mapping[str, str]:
    records = cast("DatabaseState", view.states[DATABASE]).records.as_dict()
    words = ", ".join(f"{key.decode()}={_describe_value(key, one)}" for key, one in records.items())
    return {"records": words or "none"}


NARRATOR = DatabaseWords(
    key=lambda key, known: key.decode(),
    value=_describe_value,
    holds=_describe_database_state,
    calls={
        (HISTORY, "invoke"): SentenceTemplate("begins an attempt", weight=CallImportance.SMALL),
        (HISTORY, "note"): SentenceTemplate("plans:", 1, weight=CallImportance.SMALL),
        (DATABASE, "create"): SentenceTemplate("creates a row for", 0, ", unless it exists ({reply})"),
        (DATABASE, "count"): SentenceTemplate("counts the records from", 0, " to {1} ({reply})"),
        (DATABASE, "commit"): SentenceTemplate("writes and commits", 1),
        (DATABASE, "rollback"): SentenceTemplate("rolls back"),
    },
).narrator()
"""The functions that describe worlds of transactions in words."""
