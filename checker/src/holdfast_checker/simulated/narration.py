"""Describe calls on a simulated database in words, with a sentence template for each operation.

Each kind of world says what its keys and records mean, and adds templates for its own calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from holdfast.transactions.base import Commit, Committed, Conflict, Record, ScanPage
from holdfast_checker.histories.history import HISTORY, Outcome
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import View
from holdfast_checker.narrative.sentences import CallEvent, CallImportance, CallPhrase, Narrator
from holdfast_checker.simulated.database import DATABASE, DatabaseState
from holdfast_checker.simulated.server import CLOCK


@dataclass(frozen=True, slots=True)
class SentenceTemplate:
    """A template for the sentence that describes a call in a story.

    Attributes:
        verb: present tense, third person.
        things: the index of the argument that contains the objects of the verb; None for no objects.
        tail: the rest of the sentence; ``{0}`` stands for the first argument in words, and ``{reply}`` for the reply: a
            tail with ``{reply}`` is left out if the call has no reply.
        weight: how much the call matters; for a call that changes the records, always `CallImportance.WORK`.
    """

    verb: str
    things: int | None = None
    tail: str = ""
    weight: CallImportance = CallImportance.WORK


DATABASE_CALLS: Mapping[tuple[str, str], SentenceTemplate] = {
    (DATABASE, "get_many"): SentenceTemplate("reads", 0, " ({reply})", CallImportance.SMALL),
    (DATABASE, "scan"): SentenceTemplate("scans", 0, " ({reply})", CallImportance.SMALL),
    (DATABASE, "commit_group"): SentenceTemplate("commits", 0, ", which {reply}"),
    (DATABASE, "apply"): SentenceTemplate("commits", 0, ", which {reply}"),
    (DATABASE, "lock"): SentenceTemplate("locks", 0, weight=CallImportance.SMALL),
    (DATABASE, "until_free"): SentenceTemplate("waits for locks on", 0, weight=CallImportance.SMALL),
    (DATABASE, "release"): SentenceTemplate("releases its locks", weight=CallImportance.SMALL),
    (DATABASE, "wait"): SentenceTemplate("waits until what it read has changed", weight=CallImportance.SMALL),
    (DATABASE, "carry_out"): SentenceTemplate("delivers a commit for which no caller waits any longer"),
    (DATABASE, "make_durable"): SentenceTemplate("makes everything durable"),
    (DATABASE, "crash"): SentenceTemplate("crashes", tail=", and loses the newest {reply} commits"),
    (HISTORY, "mark"): SentenceTemplate("is up again", weight=CallImportance.SMALL),
    (HISTORY, "end"): SentenceTemplate("ends", tail=": {1} {2}"),
    (CLOCK, "now"): SentenceTemplate("looks at the clock", weight=CallImportance.READ),
    (CLOCK, "pass"): SentenceTemplate("passes: half an hour"),
}


@dataclass(frozen=True, kw_only=True)
class DatabaseWords:
    """The vocabulary with which a narrator describes calls and records of a simulated database.

    Attributes:
        key: describes what the record with a key is, given all records.
        value: describes what a record contains; empty if that does not matter.
        holds: describes the state in a few short lines, by title, in addition to late commits.
        calls: templates of further calls.
        say: describes other values in words; returns None for unknown ones.
    """

    key: Callable[[bytes, Mapping[bytes, Record]], str]
    value: Callable[[bytes, Record], str]
    holds: Callable[[View], Mapping[str, str]]
    calls: Mapping[tuple[str, str], SentenceTemplate] = field(default_factory=dict)
    say: Callable[[object], str | None] = lambda value: None

    def narrator(self) -> Narrator:
        return Narrator(act=self._describe_call, fault=_describe_fault, holds=self._describe_state)

    # --- calls --------------------------------------------------------------------------------------------------------
    def _describe_call(self, event: CallEvent) -> CallPhrase:
        place = (event.call.resource, event.call.operation)
        template = self.calls.get(place) or DATABASE_CALLS[place]
        before, after = (_database_image_in(view).records for view in (event.before, event.after))
        known = {**before.as_dict(), **after.as_dict()}
        words = [self._describe_value(one, known) for one in event.call.args]
        has_reply = event.alternative is not None and not isinstance(event.reply, Exception)
        tail = template.tail if has_reply or "{reply}" not in template.tail else ""
        reply = ", ".join(self._describe_value(event.reply, known)) or "nothing" if has_reply else ""
        return CallPhrase(
            verb=template.verb,
            things=() if template.things is None else tuple(words[template.things]),
            tail=tail.format(*(", ".join(one) for one in words), reply=reply),
            weight=CallImportance.WORK if before != after and event.alternative is not None else template.weight,
        )

    def _describe_value(self, value: object, known: Mapping[bytes, Record]) -> list[str]:
        """Describe a value in a database call in words, each part of a tuple by itself."""
        if isinstance(value, ScanPage):
            value = value.records
        if isinstance(value, tuple):
            if len(value) == 2 and isinstance(value[0], bytes) and isinstance(value[1], Record):
                return [self._describe_record(value[0], value[1], known)]
            if len(value) == 2 and isinstance(value[0], bytes) and isinstance(value[1], bool):  # a lock
                value = value[:1]
            return [word for one in value for word in self._describe_value(one, known)]
        if isinstance(value, bytes):
            return [self.key(value, known)]
        if isinstance(value, Commit):
            return [self._describe_commit(value, known)]
        if isinstance(value, Conflict):
            return [f"conflicts on {', '.join(self.key(key, known) for key in value.keys)}"]
        if isinstance(value, Committed):
            return ["takes effect"]
        if isinstance(value, Outcome):
            return [value.value]
        if value is None:
            return []
        return [self.say(value) or str(value)]

    def _describe_record(self, key: bytes, record: Record, known: Mapping[bytes, Record]) -> str:
        value = self.value(key, record)
        return f"{self.key(key, known)}={value}" if value else self.key(key, known)

    def _describe_commit(self, commit: Commit, known: Mapping[bytes, Record]) -> str:
        def describe_writes(verb: str, values: Mapping[bytes, bytes]) -> list[str]:
            return [
                f"{verb} {self._describe_record(key, Record(1, value), known)}" for key, value in sorted(values.items())
            ]

        parts = [
            *describe_writes("put", commit.puts),
            *describe_writes("insert", commit.inserts),
            *(f"delete {self.key(key, known)}" for key in sorted(commit.deletes)),
            *(f"add {delta} to {self.key(key, known)}" for key, delta in sorted(commit.adds.items())),
            *(f"if {one.count} records are in the range of {self.key(one.guard, known)}" for one in commit.ranges),
        ]
        return f"({', '.join(parts) or 'reads only'})"

    # --- states -------------------------------------------------------------------------------------------------------
    def _describe_state(self, view: View) -> Mapping[str, str]:
        image = _database_image_in(view)
        found = dict(self.holds(view))
        if getattr(image, "late", ()):
            found["on their way"] = f"{len(image.late)} commits"
        if getattr(image, "locks", ()):
            found["locks"] = "; ".join(sorted(f"{one.holder}: {self.key(one.key, {})}" for one in image.locks))  # type: ignore[attr-defined]  # of a database with locks
        return found


def _database_image_in(view: View) -> DatabaseState:
    return cast("DatabaseState", view.states[DATABASE])


def _describe_fault(event: CallEvent) -> str:
    if event.fault is Fault.CLOCK:
        return ", although its holder may be only slow" if event.call.resource != CLOCK else ""
    if event.fault is Fault.PARTITION:
        return ", but the connection breaks"
    if event.fault is Fault.LOST_REPLY:
        late = ", and the commit takes effect only later" if "later" in event.label else ""
        return f", but the reply is lost{late}"
    return ", but the request is lost" if event.label == "request lost" else ", but the call fails"
