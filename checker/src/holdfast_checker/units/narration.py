"""Describe the calls and states of worlds of computation units in words, for counterexamples."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import CorruptDataError
from holdfast.records.keys import parse_cell_key
from holdfast.records.row_keys import decode_row
from holdfast.records.values import decode_value
from holdfast.transactions.base import Record
from holdfast.units.progress import TaskProgress
from holdfast.units.work_list import WorkItem, decode_claim
from holdfast_checker.kernel.world import View
from holdfast_checker.narrative.sentences import CallImportance
from holdfast_checker.simulated.database import DATABASE
from holdfast_checker.simulated.narration import DatabaseWords, SentenceTemplate
from holdfast_checker.units.contents import decode_units_state, units_image_of
from holdfast_checker.units.scripts import SAW, TIMES

_KINDS = {
    b"Sp": "the progress",
    b"Sn": "the count of a worker",
    b"Sj": "the job",
    b"St": "a table",
    b"Sd": "a dropped table or work list",
    b"Sl": "the work list",
    b"Sb": "a heartbeat",
}

_PLACE = 11
"""Where the place of an item begins in its key: see `holdfast.units.work_list`."""


def _record_name(key: bytes, known: Mapping[bytes, Record]) -> str:
    """Return the name of a record of the units database for a story."""
    kind = key[:2]
    try:
        if kind == b"Sc":
            row, column = parse_cell_key(key)
            return f"unit {row!s}" if column in (TIMES, SAW) else str(row)
        if kind == b"Sw":
            return "a claim" if _is_claim_key(key) else f"item {WorkItem(key[_PLACE:], b'').key!s}"
    except CorruptDataError:  # an end of a range
        return "cells" if kind == b"Sc" else "items"
    return _KINDS.get(kind, "a record")


def _is_claim_key(key: bytes) -> bool:
    return key[_PLACE - 1 : _PLACE] == b"t"


def _describe_value(key: bytes, record: Record) -> str:
    """Describe the value of a record of the units database in a few words."""
    if key.startswith(b"Sp"):
        return _describe_progress(TaskProgress.of(record.value))
    if key.startswith(b"Sc"):
        return repr(decode_value(record.value, record.number))
    if key.startswith(b"Sw") and _is_claim_key(key):
        return ", ".join(str(one.key) for one in decode_claim(key, record).items.values())
    return str(record.number) if record.number else ""


def _describe_progress(progress: TaskProgress) -> str:
    words = [f"up to {_decode_row_key(progress.last)}" if progress.last else "at the start"]
    if progress.deferred:
        words.append(f"without {' and '.join(map(_decode_row_key, progress.deferred))}")
    return ", ".join([*words, *(["finished"] if progress.is_finished else [])])


def _decode_row_key(encoded: bytes) -> str:
    return str(decode_row(encoded)[0])


def _describe_units_state(view: View) -> Mapping[str, str]:
    """Describe the state: cells, units that took effect, progress, the work list, and how attempts have ended."""
    state, image = decode_units_state(view), units_image_of(view)
    try:
        cells = ", ".join(f"{row}={value!r}" for row, value in state.cells)
    except CorruptDataError:
        cells = "cannot be read"
    done = ", ".join(f"{unit} ({times} times)" if times > 1 else unit for unit, (times, _saw) in state.effects.items())
    progress = "; ".join(
        f"{job}: {_describe_progress(one)}" for job, tasks in state.progress.items() for one in tasks if one.last
    )
    found = {"cells": cells or "none", "units that took effect": done or "none", "progress": progress or "none"}
    if state.waiting_units or state.claimed_units:
        found["waiting"] = ", ".join(state.waiting_units) or "nothing"
        found["claimed"] = ", ".join(state.claimed_units) or "nothing"
    if image.ends:
        found["ends"] = "; ".join(f"{one.who}: {one.how}" for one in image.ends)
    return found


NARRATOR = DatabaseWords(
    key=_record_name,
    value=_describe_value,
    holds=_describe_units_state,
    calls={
        (DATABASE, "report"): SentenceTemplate("reports", tail=" that it has ended: {1}"),
        (DATABASE, "await"): SentenceTemplate("is started, because of the end of", 0, weight=CallImportance.SMALL),
        (DATABASE, "idle"): SentenceTemplate("waits until the list changes or the time of a lease has passed"),
    },
).narrator()
"""The functions that describe worlds of computation units in words."""
