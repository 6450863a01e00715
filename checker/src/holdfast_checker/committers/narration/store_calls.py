"""Put calls on a store into words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from holdfast.commit import layout
from holdfast.commit.two_phase.codec import decode_entry
from holdfast.errors import CorruptDataError
from holdfast.stores.base import Change, Complete, Delete, ObjectInfo, Put, Require, RequireEmpty
from holdfast_checker.committers.narration.places import PlaceNames, is_bookkeeping, path_of, short
from holdfast_checker.committers.output import DESTINATION
from holdfast_checker.narrative.narrator import Act, Event, Weight

_Words = Callable[[PlaceNames, Event], Act]


def name_decision(key: str, seq: int, data: bytes) -> str:
    """Describe a log entry by its decision and its job: ``commit of job …1.1``."""
    try:
        entry = decode_entry(key, seq, data)
    except CorruptDataError:
        return "unreadable"
    return f"{entry.kind.value} of job {short(entry.record.job)}"


def _read(verb: str, names: PlaceNames, event: Event) -> Act:
    first = event.call.args[0]
    key = first.key if isinstance(first, ObjectInfo) else str(first)
    return Act(verb=verb, things=(names.name(event, key),), plural="places", weight=Weight.READ)


def _check(names: PlaceNames, event: Event) -> Act:
    keys = cast("tuple[str, ...]", event.call.args[0])
    things = tuple(names.name(event, key) for key in keys)
    return Act(verb="checks that it may rename to", things=things, plural="places", weight=Weight.READ)


def _decision(names: PlaceNames, event: Event, key: str, data: bytes) -> str:
    """Describe the decision that is put at a key of the log; empty if the key is not that of a decision."""
    if not re.fullmatch(rf"{layout.LOG}\d+\.json", path_of(key)):
        return ""
    seq = int(path_of(key)[len(layout.LOG) : -len(".json")])
    return f"{name_decision(key, seq, data)} ({names.name(event, key)})"


def _put(names: PlaceNames, event: Event) -> Act:
    key = str(event.call.args[0])
    name = names.name(event, key)
    decision = _decision(names, event, key, cast("bytes", event.call.args[1]))
    if decision:
        return Act(verb="decides:", things=(decision,), weight=Weight.TURN)
    weight = Weight.SMALL if is_bookkeeping(name) else Weight.WORK
    return Act(verb="writes", things=(name,), plural="records", weight=weight)


def _write(names: PlaceNames, event: Event) -> Act:
    if layout.is_hidden(str(event.call.args[0])) or event.call.resource != DESTINATION:
        return Act(verb="writes", things=("a hidden file",), plural="hidden files")
    return Act(verb="writes", things=(names.name(event, str(event.call.args[0])),), plural="files")


def _delete(names: PlaceNames, event: Event) -> Act:
    keys = event.call.args[0]
    keys = (keys,) if isinstance(keys, str) else cast("tuple[str, ...]", keys)
    return Act(verb="deletes", things=tuple(names.name(event, key) for key in keys), plural="files")


def _rename(names: PlaceNames, event: Event) -> Act:
    source, target = (names.name(event, str(key)) for key in event.call.args[:2])
    if layout.is_hidden(str(event.call.args[1])) and target != "_SUCCESS":
        return Act(verb="renames", things=(source,), plural="files", tail=f" to {target}")
    return Act(verb="renames", things=(target,), plural="files", tail=" into place")


def _copy(names: PlaceNames, event: Event) -> Act:
    return Act(verb="copies a file to", things=(names.name(event, str(event.call.args[1])),), plural="places")


def _upload(verb: str, thing: str, weight: Weight, names: PlaceNames, event: Event) -> Act:
    return Act(verb=verb, things=(thing,), plural=f"{thing.partition(' ')[2]}s", weight=weight)


def _complete(names: PlaceNames, event: Event) -> Act:
    return Act(verb="completes", things=(names.name(event, str(event.call.args[0])),), plural="uploads")


def _abort(names: PlaceNames, event: Event) -> Act:
    owner = names.owner(str(event.call.args[1]))
    whose = "its upload" if owner == event.actor else f"the upload of {owner}"
    return Act(verb="aborts", things=(f"{whose} to {names.name(event, str(event.call.args[0]))}",), plural="uploads")


def _apply(names: PlaceNames, event: Event) -> Act:
    """Describe a transaction by its decision and the number of files, or by everything that it changes."""
    changes = cast("tuple[Change, ...]", event.call.args[0])
    decisions = [
        decision
        for change in changes
        if isinstance(change, Put) and (decision := _decision(names, event, change.key, change.data))
    ]
    completed = sum(isinstance(change, Complete) for change in changes)
    deleted = [change for change in changes if isinstance(change, Delete) and not layout.is_hidden(path_of(change.key))]
    if decisions:
        done = [f"{completed} completed" if completed else "", f"{len(deleted)} deleted" if deleted else ""]
        tail = ", ".join(filter(None, done))
        return Act(
            verb="decides:", things=tuple(decisions), weight=Weight.TURN, tail=f", files: {tail}" if tail else ""
        )
    made = tuple(names.name(event, change.key) for change in changes if not isinstance(change, Require | RequireEmpty))
    return Act(verb="changes in one step", things=made, plural="places")


STORE_CALLS: Mapping[str, _Words] = {
    "get": partial(_read, "reads"),
    "head": partial(_read, "checks"),
    "list_page": partial(_read, "lists"),
    "list_rest": partial(_read, "continues to list"),
    "list_uploads_page": partial(_read, "lists the uploads under"),
    "notes": lambda names, event: Act(verb="takes the time", weight=Weight.READ),
    "stroke": lambda names, event: Act(verb="runs a whole job", weight=Weight.TURN),
    "begin_write": partial(_read, "opens"),
    "put": _put,
    "finish_write": _write,
    "delete": _delete,
    "delete_many": _delete,
    "rename": _rename,
    "rename_dir": _rename,
    "check_targets": _check,
    "copy": _copy,
    "apply": _apply,
    "create_upload": partial(_upload, "starts", "an upload", Weight.SMALL),
    "upload_part": partial(_upload, "uploads", "a hidden file", Weight.WORK),
    "complete_upload": _complete,
    "abort_upload": _abort,
}
"""For each operation of a store, the function that puts a call of it into words."""
