"""Put the calls and states of namespace worlds into words."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, id_of, name_of, parent_of
from holdfast.stores.memory import MemoryImage
from holdfast.transactions.base import Commit, Conflict, Record, ScanPage
from holdfast_checker.histories.history import HISTORY, Outcome, operations_in
from holdfast_checker.histories.undone import of_clients
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import View
from holdfast_checker.namespace.actors import BLOBS
from holdfast_checker.namespace.properties.contents import Contents
from holdfast_checker.narrative.narrator import Act, Event, Narrator, Thing, Weight
from holdfast_checker.transactions.database import DATABASE, Image
from holdfast_checker.transactions.server_narration import SERVER_CALLS, server_fault
from holdfast_checker.transactions.time_source import CLOCK

_WORDS = {
    "mkdirs": "make the directory {0}",
    "create": "create {0} with {1!r}",
    "overwrite": "overwrite {0} with {1!r}",
    "create_with_lease": "create {0} and write it as {1}",
    "delete": "delete {0}",
    "delete_tree": "delete {0} with all below it",
    "rename": "rename {0} to {1}",
    "replace": "rename {0} to {1}, which it may replace",
    "list": "list {0}",
    "walk": "walk through {0}",
    "read": "read {0}",
    "append": "append to {0} as {1}",
    "sync": "publish {1!r} as {0}, and go on",
    "close": "publish {1!r} as {0}, and close",
    "sync_surely": "publish {1!r} as {0}, twice if need be, and go on",
    "close_surely": "publish {1!r} as {0}, twice if need be, and close",
    "write": "go on writing as {0}",
    "recover": "recover the lease of {0}",
    "set_mode": "set the mode of {0} to {1:o}",
    "set_owner": "give {0} to {1}",
    "set_quota": "limit {0} to {1} names",
    "start_upload": "begin the upload {1} of {0}",
    "upload": "upload {1!r} for {0}",
    "complete": "complete the upload {0} with {1!r}",
    "abort": "abort the upload {0}",
    "collect": "collect what was deleted",
    "later": "pass",
}

_KINDS = {
    b"d": "the bytes of {0}",
    b"t": "the time of directory {1}",
    b"w": "the place of directory {1}",
    b"p": "the upload {0}",
    b"q": "parts of the upload {0}",
    b"u": "a counter of quota {1}",
    b"l": "the lease of file {1}",
    b"r": "the deleted tree {1}",
    b"g": "a note of garbage",
    b"x": "the record {0}",
}


_BLOB_VERBS = {
    "put": "writes",
    "get": "reads",
    "head": "looks at",
    "delete": "deletes",
    "delete_many": "deletes",
}


# --- calls of the history ---------------------------------------------------------------------------------------------
def _invoke(event: Event) -> Act:
    name, args = cast("tuple[str, tuple[object, ...]]", event.call.args[1:])
    if name == "later":
        return Act(verb="begins to pass", weight=Weight.SMALL)
    return Act(verb="is asked to", things=(_asked(name, args),), weight=Weight.WORK)


def _asked(name: str, args: Sequence[object]) -> str:
    if name in _WORDS:
        return _WORDS[name].format(*args)
    if name == "concat":
        return f"append {', '.join(map(str, args[1:]))} to {args[0]}"
    files = " and ".join(str(one[0]) for one in cast("Sequence[tuple[str, str]]", args))
    return f"publish {files} in one step"


def _end(event: Event) -> Act:
    outcome, answer = cast("tuple[Outcome, object]", event.call.args[1:])
    if outcome is Outcome.FAILED:
        return Act(verb="gives up, for now: nothing happened")
    return Act(verb="is done" if answer is None else "answers", things=() if answer is None else (_answer(answer),))


def _answer(answer: object) -> str:
    if isinstance(answer, tuple):
        return ", ".join(map(str, answer)) or "nothing"
    return {True: "yes", False: "no"}.get(answer, repr(answer)) if isinstance(answer, bool) else str(answer)


# --- calls of the database --------------------------------------------------------------------------------------------
def _places(view: View) -> Mapping[int, str]:
    """Return the paths of directories by their ids."""
    contents = _contents(view)
    root = contents.inodes.get(ROOT_KEY)
    found = {} if root is None else {inode.id: "/".join(("", *path)) for path, inode in contents.paths(root)}
    return {**{tree.root.id: f"(deleted) {tree.path}" for tree in contents.deleted.values()}, **found}


def _contents(view: View) -> Contents:
    return Contents(cast("Image", view.states[DATABASE]).records.as_dict())


def _key(key: bytes, places: Mapping[int, str]) -> str:
    """Say what the record of a key is."""
    if key == ROOT_KEY:
        return "/"
    if key.startswith(b"i"):
        above = places.get(parent_of(key), f"[directory {parent_of(key)}]")
        return f"{above}/{name_of(key).decode()}"
    number = _number(key)
    return _KINDS[key[:1]].format(key[1:].decode("ascii", "replace"), number if number < 1 << 40 else "(new)")


def _number(key: bytes) -> int:
    try:
        return id_of(key)
    except struct.error:
        return 0


def _keys(keys: Sequence[bytes], view: View) -> tuple[str, ...]:
    places = _places(view)
    return tuple(_key(key, places) for key in keys)


def _get_many(event: Event) -> Act:
    keys = cast("tuple[bytes, ...]", event.call.args[0])
    tail = ""
    if isinstance(event.reply, tuple):
        found = dict(cast("tuple[tuple[bytes, Record], ...]", event.reply))
        missing = _keys([key for key in keys if key not in found], event.before)
        tail = f" (not there: {', '.join(missing)})" if missing else ""
    return Act(verb="reads", things=_keys(keys, event.before), tail=tail, weight=Weight.SMALL)


def _scan(event: Event) -> Act:
    start = cast("bytes", event.call.args[0])
    if start == b"\0":
        return Act(verb="takes a snapshot of everything", weight=Weight.SMALL)
    what = f"{_key(start, _places(event.before))}*" if start.startswith(b"i") else f"all records {start[:1].decode()}"
    tail = ""
    if isinstance(event.reply, ScanPage):
        found = ", ".join(_keys([key for key, _record in event.reply.records], event.before))
        tail = f" ({found or 'nothing'})"
    return Act(verb="lists", things=(what,), tail=tail, weight=Weight.SMALL)


def _commit_group(event: Event) -> Act:
    commits = cast("tuple[Commit, ...]", event.call.args[0])
    tail = ""
    if isinstance(event.reply, tuple):
        tail = "".join(
            f", which conflicts on {', '.join(_keys(one.keys, event.before))}"
            for one in event.reply
            if isinstance(one, Conflict)
        )
    changes = event.alternative is not None and event.before.states[DATABASE] != event.after.states[DATABASE]
    things = tuple(_writes(commit, _places(event.before)) for commit in commits)
    return Act(verb="commits", things=things, tail=tail, weight=Weight.TURN if changes else Weight.WORK)


def _writes(commit: Commit, places: Mapping[int, str]) -> str:
    known = dict(places)
    for key, value in (*commit.inserts.items(), *commit.puts.items()):
        if key.startswith(b"i"):
            inode = decode_inode(key, value)
            known.setdefault(inode.id, _key(key, known))
    parts = [
        *(f"insert {_key(key, known)}" for key in sorted(commit.inserts)),
        *(f"put {_key(key, known)}" for key in sorted(commit.puts)),
        *(f"delete {_key(key, known)}" for key in sorted(commit.deletes)),
        *(f"add {delta} to {_key(key, known)}" for key, delta in sorted(commit.adds.items())),
        *(f"if {_key(one.guard, known)} has no entries" for one in commit.ranges),
    ]
    return f"({', '.join(parts) or 'reads only'})"


def _lock(event: Event) -> Act:
    key, exclusive = cast("tuple[bytes, bool]", event.call.args)
    tail = " for itself" if exclusive else " against changes"
    return Act(verb="locks", things=_keys((key,), event.before), tail=tail, weight=Weight.SMALL)


def _until_free(event: Event) -> Act:
    keys = [key for key, _exclusive in cast("tuple[tuple[bytes, bool], ...]", event.call.args[0])]
    return Act(verb="waits for locks on", things=_keys(keys, event.before), weight=Weight.SMALL)


def _release(event: Event) -> Act:
    return Act(verb="releases its locks", weight=Weight.SMALL)


def _wait(event: Event) -> Act:
    return Act(verb="waits until what it read has changed", weight=Weight.SMALL)


# --- calls of the object store, and of the clock ----------------------------------------------------------------------
def _blob(event: Event) -> Act:
    operation, first = event.call.operation, event.call.args[0]
    if operation == "list_page":
        return Act(verb="lists all blobs", weight=Weight.SMALL)
    verb = _BLOB_VERBS[operation]
    blobs = tuple(map(str, first)) if isinstance(first, tuple) else (str(first),)
    weight = Weight.SMALL if operation in ("get", "head") else Weight.WORK
    return Act(verb=f"{verb} {'the blob' if len(blobs) == 1 else 'the blobs'}", things=blobs, weight=weight)


def _now(event: Event) -> Act:
    return Act(verb="looks at the clock", weight=Weight.READ)


def _pass(event: Event) -> Act:
    return Act(verb="passes: half an hour", weight=Weight.TURN)


_CALLS: Mapping[tuple[str, str], Callable[[Event], Act]] = {
    **SERVER_CALLS,
    (HISTORY, "invoke"): _invoke,
    (HISTORY, "end"): _end,
    (DATABASE, "get_many"): _get_many,
    (DATABASE, "scan"): _scan,
    (DATABASE, "commit_group"): _commit_group,
    (DATABASE, "apply"): _commit_group,
    (DATABASE, "lock"): _lock,
    (DATABASE, "until_free"): _until_free,
    (DATABASE, "release"): _release,
    (DATABASE, "wait"): _wait,
    **{(BLOBS, operation): _blob for operation in (*_BLOB_VERBS, "list_page")},
    (CLOCK, "now"): _now,
    (CLOCK, "pass"): _pass,
}


def _act(event: Event) -> Act:
    return _CALLS[event.call.resource, event.call.operation](event)


def _fault(event: Event) -> str:
    if event.fault is Fault.CLOCK:
        return ""
    return server_fault(event)


# --- states -----------------------------------------------------------------------------------------------------------
def _paths(contents: Contents) -> list[tuple[str, Inode]]:
    root = contents.inodes.get(ROOT_KEY)
    return [] if root is None else sorted(("/" + "/".join(path), inode) for path, inode in contents.paths(root))


def _holds(view: View) -> Mapping[str, str]:
    """Describe the state: the tree, what is deleted, and what is on its way."""
    contents = _contents(view)
    late = cast("Image", view.states[DATABASE]).late
    tree = ", ".join(path for path, _inode in _paths(contents) if path != "/")
    return {
        "tree": tree or "empty",
        "deleted": ", ".join(sorted(tree.path for tree in contents.deleted.values())) or "nothing",
        "on their way": f"{len(late)} commits" if late else "nothing",
    }


def _things(view: View) -> Sequence[Thing]:
    """List inodes, deleted trees, other records, blobs and calls."""
    contents = _contents(view)
    found = []
    for path, inode in _paths(contents):
        words = "directory" if inode.is_directory else f"file, {inode.size} bytes"
        frozen = ", frozen" if inode.moving else ""
        found.append(Thing("tree", path, f"{words}{', being written' if inode.writer else ''}{frozen}"))
    for tree in contents.deleted.values():
        found.append(Thing("deleted trees", str(tree.root.id), tree.path))
    for key, record in contents.records.items():
        if key[:1] in (b"l", b"u", b"g"):
            found.append(Thing("records", f"{_key(key, {})} {key[-1:].hex()}", str(record.number)))
    for blob in cast("MemoryImage", view.states[BLOBS]).objects:
        found.append(Thing("blobs", blob, "there"))
    for number, one in enumerate(of_clients(operations_in(view)), start=1):
        found.append(Thing("calls", f"{number} {one.who}", f"{_asked(one.name, one.args)}: {one.outcome.value}"))
    return sorted(found)


def narrator() -> Narrator:
    """Return the narrator for worlds of a namespace."""
    return Narrator(act=_act, fault=_fault, holds=_holds, things=_things)
