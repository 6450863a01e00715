"""Simulate an object store that all actors of a world share, with the code of the reference store, `MemoryStore`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from holdfast.errors import HoldfastError, OutcomeUnknownError, PreconditionError, UnavailableError
from holdfast.runtime import Clock, Ids
from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    Delete,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Put,
    Require,
    UploadPage,
)
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.simulated.memory import RestorableStore, StoreSnapshot
from holdfast_checker.simulated.time import ManualClock

_READS = frozenset({"get", "head", "list_page", "list_rest", "list_uploads_page", "begin_write", "check_targets"})

_LISTINGS = frozenset({"list_page", "list_uploads_page"})

_FAULTLESS = frozenset({"begin_write", "check_targets", "list_rest", "notes", "run_atomically"})

_TORN_LIMIT = 3
"""Number of changes during one listing up to which every subset of them may be seen."""

_REMOVALS = frozenset({"delete", "delete_many", "abort_upload"})


@dataclass(slots=True)
class _CallerSuppliedIds:
    """Ids for the store that come from the current caller, so that they depend on nothing but the caller."""

    next_token: str = ""

    def token(self) -> str:
        return self.next_token


AtomicProgram = Callable[[Callable[[Call], object], str], object]
"""A program of many calls on a store that runs as a single atomic step, before any other actor moves.

It takes a function that makes calls on the store, and a token from which it derives its own tokens. It returns the
outcome for the caller.
"""


class StoreResource:
    """A simulated object store, as a resource that all actors of a world share.

    Args:
        name: name of the resource.
        time_of: returns the time at which an actor acts, seconds since the epoch: objects that the actor writes get
            this time. Time stands still within a history.
        options: options of `MemoryStore`.
    """

    def __init__(self, name: str, *, time_of: Callable[[str], float], **options: Any) -> None:
        self.name = name
        self._atomic_programs: dict[str, AtomicProgram] = {}
        self._clock, self._ids = ManualClock(), _CallerSuppliedIds()
        self._time_of = time_of
        self._options = options
        self._memory = RestorableStore(**options, clock=self._clock, ids=self._ids)
        self.capabilities: Capabilities = self._memory.capabilities
        self.set_initial_contents(self._memory.take_snapshot())

    def initial_state(self) -> StoreSnapshot:
        return self._initial

    def set_initial_contents(self, image: StoreSnapshot) -> None:
        """Set the contents of the store at the start of every history (execution)."""
        self._initial = image

    def define_atomic_call(self, name: str, program: AtomicProgram) -> None:
        """Register a program; an actor that calls ``run_atomically`` with its name runs all of it as one step."""
        self._atomic_programs[name] = program

    def state_key(self, state: object) -> Hashable:
        return cast("StoreSnapshot", state).key

    def find_unblockers(self, state: object, call: Call) -> None:
        """Return None, since no call on a store blocks."""

    def state_after_death(self, state: object, actor: str) -> object:
        return state  # what a dead actor wrote stays

    def create_copy(self, state: object, clock: Clock, ids: Ids) -> RestorableStore:
        """Create an in-memory store with the contents of `state`; calls on it do not change the simulated one."""
        found = RestorableStore(**self._options, clock=clock, ids=ids)
        found.restore(cast("StoreSnapshot", state))
        return found

    # --- calls --------------------------------------------------------------------------------------------------------
    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        reply, after = self.execute_call(cast("StoreSnapshot", state), call, actor)
        ways = [Alternative(state=after, reply=reply)]
        if call.operation == "list_rest":
            return self._torn_listings(state, call, reply)
        if call.operation in _FAULTLESS:
            return ways
        silence = Reply(
            error=OutcomeUnknownError("the store did not answer: read before retrying", key=_key_of_call(call))
        )
        # Removals commute (`Access.removes`), so the second of two removals must be able to end like the first one.
        if after is not state or call.operation in _REMOVALS:
            ways.append(Alternative(state=after, reply=silence, label="reply lost", fault=Fault.LOST_REPLY))
        if call.operation not in _READS:  # the caller cannot distinguish it from a lost reply
            ways.append(Alternative(state=state, reply=silence, label="request lost", fault=Fault.FAILURE))
        if call.operation == "put" and not isinstance(call.args[2], Overwrite) and reply.error is None:
            busy = PreconditionError("another write of the object is in flight: retry", key=_key_of_call(call))
            label = "another write is in flight"  # S3 answers 409
            ways.append(Alternative(state=state, reply=Reply(error=busy), label=label, fault=Fault.CONTENTION))
        failed = Reply(error=UnavailableError("the store is not available: retry later", key=_key_of_call(call)))
        ways.append(Alternative(state=state, reply=failed, label="fails", fault=Fault.FAILURE))
        if call.operation in _LISTINGS and reply.error is None:
            ways.extend(self._make_stale_listing_alternatives(state, reply))
        return ways

    def execute_call(self, state: StoreSnapshot, call: Call, actor: str) -> tuple[Reply, StoreSnapshot]:
        """Execute a call without a fault; return the reply and the new state: `state` itself if nothing changed."""
        if call.operation == "run_atomically":
            return self._run_atomic_call(state, call, actor)
        self._clock.at_s = self._time_of(actor)
        memory = self._memory
        memory.restore(state)
        operation, args = call.operation, call.args
        if operation == "create_upload":
            self._ids.next_token, args = str(args[-1]), args[:-1]
        if operation == "list_rest":
            operation, args = "list_page", args[:-1]
        try:
            value = getattr(memory, operation)(*args)
        except HoldfastError as error:
            return Reply(error=error.with_traceback(None)), state
        if call.operation in _READS:
            return Reply(value), state
        after = memory.take_snapshot()
        return Reply(value), state if after.key == state.key else after

    def _torn_listings(self, state: object, call: Call, reply: Reply) -> list[Alternative]:
        """Return the possible results of a listing that began earlier: it shows any part of the changes since then."""
        begun, now = cast("ObjectPage", call.args[-1]), cast("ObjectPage", reply.value)
        old, new = ({one.key: one for one in page.objects} for page in (begun, now))
        changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
        if begun.next_token is not None or now.next_token is not None:
            return [Alternative(state=state, reply=reply)]
        ways = []
        for as_before in _sets_of_missed_changes(changed):
            shown = {**new, **{key: old[key] for key in as_before if key in old}}
            for key in as_before:
                if key not in old:
                    del shown[key]
            page = replace(now, objects=[shown[key] for key in sorted(shown)])
            label = f"saw as before: {', '.join(as_before)}" if as_before else ""
            ways.append(Alternative(state=state, reply=Reply(page), label=label))
        return ways

    def _run_atomic_call(self, state: StoreSnapshot, call: Call, actor: str) -> tuple[Reply, StoreSnapshot]:
        now = state

        def execute_one_call(one: Call) -> object:
            nonlocal now
            reply, now = self.execute_call(now, one, actor)
            if reply.error is not None:
                raise copy.copy(reply.error)
            return reply.value

        name, token = cast("tuple[str, str]", call.args)
        return Reply(self._atomic_programs[name](execute_one_call, token)), now

    def _make_stale_listing_alternatives(self, state: object, reply: Reply) -> list[Alternative]:
        page = cast("ObjectPage | UploadPage", reply.value)
        found = page.objects if isinstance(page, ObjectPage) else page.uploads
        keys = [one.key for one in found]
        return [
            Alternative(
                state=state,
                reply=Reply(_remove_page_entry(page, gone)),
                label=f"does not show {keys[gone]}" + (f", upload {n}" if (n := keys[:gone].count(keys[gone])) else ""),
                fault=Fault.STALE_LISTING,
            )
            for gone in range(len(found))
        ]

    # --- what a call touches ------------------------------------------------------------------------------------------
    def footprint(self, call: Call) -> Footprint:
        return frozenset(self._accesses(call))

    def _accesses(self, call: Call) -> Iterator[Access]:
        objects, uploads, parts = self.name, f"{self.name} uploads", f"{self.name} parts"
        key = _key_of_call(call)
        match call.operation:
            case "run_atomically":
                yield from (Access(space, "", writes=True, below=True) for space in (objects, uploads, parts))
            case "get" | "head":
                yield Access(objects, key)
            case "notes" | "list_page" | "list_rest":
                yield Access(objects, key, below=True)
            case "list_uploads_page":
                yield Access(uploads, key, below=True)
            case "delete":
                yield Access(objects, key, writes=True, removes=True)
            case "delete_many":
                keys = cast("tuple[str, ...]", call.args[0])
                yield from (Access(objects, each, writes=True, removes=True) for each in keys)
            case "abort_upload":
                yield Access(uploads, f"{key}\0{call.args[1]}", writes=True, removes=True)
            case "upload_part":  # listings do not show parts
                yield Access(uploads, f"{key}\0{call.args[1]}")
                yield Access(parts, f"{key}\0{call.args[1]}", writes=True)
            case "create_upload":
                yield Access(uploads, f"{key}\0{call.args[-1]}", writes=True)
                yield from self._name_clash_accesses(key)
            case "complete_upload":
                yield from self._accesses_of_change(Complete(key, str(call.args[1]), ()))
            case "check_targets":
                for each in cast("tuple[str, ...]", call.args[0]):
                    yield from self._name_clash_accesses(each)
            case "rename" | "copy":
                yield Access(objects, key, writes=call.operation == "rename")
                yield from self._accesses_of_change(Put(str(call.args[1]), b""))
            case "rename_dir":
                for each in map(str, call.args):
                    for space in (objects, uploads):
                        yield Access(space, each, writes=True)
                        yield Access(space, f"{each}/", writes=True, below=True)
                yield from self._name_clash_accesses(str(call.args[1]))
            case "apply":
                for change in cast("tuple[Change, ...]", call.args[0]):
                    yield from self._accesses_of_change(change)
            case "begin_write":
                yield Access(objects, key)
                yield from self._name_clash_accesses(key)
            case operation:
                assert operation in ("put", "finish_write"), operation
                yield from self._accesses_of_change(Put(key, b""))

    def _accesses_of_change(self, change: Change) -> Iterator[Access]:
        """Yield the accesses (for partial-order reduction) of one change in a store transaction."""
        if not isinstance(change, Put | Complete | Delete):
            yield Access(self.name, change.key, below=not isinstance(change, Require))
            return
        yield Access(self.name, change.key, writes=True)
        if isinstance(change, Complete):
            upload = f"{change.key}\0{change.upload_id}"
            yield from (Access(f"{self.name} uploads", upload, writes=True), Access(f"{self.name} parts", upload))
        if not isinstance(change, Delete):
            yield from self._name_clash_accesses(change.key)

    def _name_clash_accesses(self, key: str) -> Iterator[Access]:
        """Yield what a store with rename accesses to check that no file is above `key`, and no directory at it.

        A directory may exist only because of pending uploads below it.
        """
        if self.capabilities.rename:
            names = key.split("/")
            yield from (Access(self.name, "/".join(names[:depth])) for depth in range(1, len(names)))
            yield from (Access(space, f"{key}/", below=True) for space in (self.name, f"{self.name} uploads"))


def _sets_of_missed_changes(changed: list[str]) -> list[list[str]]:
    """Return the sets of changes that a listing may have missed.

    If there are only a few changes, these are all sets; if there are many, the empty set, the set of all changes, and
    each single change.
    """
    if len(changed) > _TORN_LIMIT:
        return [[], changed, *([key] for key in changed)]
    return [[key for at, key in enumerate(changed) if some >> at & 1] for some in range(1 << len(changed))]


def _remove_page_entry(page: ObjectPage | UploadPage, gone: int) -> ObjectPage | UploadPage:
    if isinstance(page, ObjectPage):
        return replace(page, objects=[*page.objects[:gone], *page.objects[gone + 1 :]])
    return replace(page, uploads=[*page.uploads[:gone], *page.uploads[gone + 1 :]])


def _key_of_call(call: Call) -> str:
    first = call.args[0]
    if isinstance(first, tuple):
        first = first[0]
    return first if isinstance(first, str) else cast("ObjectInfo | Change", first).key
