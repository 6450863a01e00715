"""Simulate a store that all actors of a world share, with the code of the reference store, `MemoryStore`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

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
from holdfast_checker.simulated.memory import ImageStore, MemoryImage
from holdfast_checker.simulated.time import StillClock

_READS = frozenset({"get", "head", "list_page", "list_rest", "list_uploads_page", "begin_write", "check_targets"})

_LISTINGS = frozenset({"list_page", "list_uploads_page"})

_FAULTLESS = frozenset({"begin_write", "check_targets", "list_rest", "notes", "stroke"})

_TORN_LIMIT = 3
"""Number of changes during one listing up to which every subset of them may be seen."""

_REMOVALS = frozenset({"delete", "delete_many", "abort_upload"})


@dataclass(slots=True)
class _CallersIds:
    """Ids for the store that come from the current caller, so that they depend on nothing but the caller."""

    next_token: str = ""

    def token(self) -> str:
        return self.next_token


@dataclass(frozen=True, slots=True)
class NotedImage(MemoryImage):
    """The contents of a store, and the notes that a world keeps about it for its properties."""

    notes: Hashable = None


class Notes(Protocol):
    """Facts that the store itself forgets. Processes can read these notes only by making the call ``notes``."""

    def first(self, image: MemoryImage) -> Hashable:
        """Return the notes at the start of a history."""
        ...

    def after(self, notes: Hashable, call: Call, image: MemoryImage) -> Hashable:
        """Return the notes after a call; `image` is the state of the store after this call."""
        ...

    def told(self, notes: Hashable, what: Hashable) -> Hashable:
        """Return the notes after a `Stroke` has made the call ``note`` to add something to them."""
        ...

    def shown(self, notes: Hashable) -> Hashable:
        """Return the answer to the call ``notes``, with which a reading actor notes where in the log its read began."""
        ...


Stroke = Callable[[Callable[[Call], object], str], object]
"""A whole process as one call.

A stroke takes a function that makes calls on the store, and a token from which it derives its own tokens. It returns
the outcome for its caller. The whole stroke happens before any other actor moves.
"""


class StoreResource:
    """A store that all actors share.

    Args:
        name: name of the resource.
        time_of: returns the time at which an actor acts, seconds since the epoch: objects that the actor writes get
            this time. Time stands still within a history.
        notes: records facts that the store itself forgets (see `Notes`); None to record none.
        options: options of `MemoryStore`.
    """

    def __init__(
        self,
        name: str,
        *,
        time_of: Callable[[str], float],
        notes: Notes | None = None,
        **options: Any,
    ) -> None:
        self.name = name
        self._notes = notes
        self._strokes: dict[str, Stroke] = {}
        self._clock, self._ids = StillClock(), _CallersIds()
        self._time_of = time_of
        self._memory = ImageStore(**options, clock=self._clock, ids=self._ids)
        self.capabilities: Capabilities = self._memory.capabilities
        self.fill(self._memory.image())

    def initial(self) -> MemoryImage:
        return self._initial

    def fill(self, image: MemoryImage) -> None:
        """Let histories start with the contents of `image`."""
        self._initial = image if self._notes is None else _noted(image, self._notes.first(image))

    def teach(self, name: str, stroke: Stroke) -> None:
        """Define what the call ``stroke`` with this name does."""
        self._strokes[name] = stroke

    def key(self, state: object) -> Hashable:
        image = cast("MemoryImage", state)
        return (image.key, image.notes) if isinstance(image, NotedImage) else image.key

    def waits_for(self, state: object, call: Call) -> None:
        """Return None: no call on a store blocks."""

    def bury(self, state: object, actor: str) -> object:
        return state  # what a dead actor wrote stays

    def store(self, state: object, clock: Clock, ids: Ids) -> ImageStore:
        """Return a separate store with the contents of `state`, for further calls."""
        found = ImageStore(**self._options(), clock=clock, ids=ids)
        found.restore(cast("MemoryImage", state))
        return found

    def _options(self) -> dict[str, Any]:
        can = self.capabilities
        return {
            "limits": can.multipart,
            "rename": can.rename,
            "rename_dir": can.rename_dir,
            "copy": can.copy,
            "transactions": can.transactions,
            "consistent_listing": can.consistent_listing,
        }

    # --- calls --------------------------------------------------------------------------------------------------------
    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        reply, after = self._do(cast("MemoryImage", state), call, actor)
        ways = [Alternative(state=after, reply=reply)]
        if call.operation == "list_rest":
            return self._torn(state, call, reply)
        if call.operation in _FAULTLESS:
            return ways
        silence = Reply(error=OutcomeUnknownError("the store did not answer: read before retrying", key=_key(call)))
        # Removals commute (`Access.removes`), so the second of two removals must be able to end like the first one.
        if after is not state or call.operation in _REMOVALS:
            ways.append(Alternative(state=after, reply=silence, label="reply lost", fault=Fault.LOST_REPLY))
        if call.operation not in _READS:  # the caller cannot distinguish it from a lost reply
            ways.append(Alternative(state=state, reply=silence, label="request lost", fault=Fault.FAILURE))
        if call.operation == "put" and not isinstance(call.args[2], Overwrite) and reply.error is None:
            busy = PreconditionError("another write of the object is in flight: retry", key=_key(call))
            label = "another write is in flight"  # S3 answers 409
            ways.append(Alternative(state=state, reply=Reply(error=busy), label=label, fault=Fault.CONTENTION))
        failed = Reply(error=UnavailableError("the store is not available: retry later", key=_key(call)))
        ways.append(Alternative(state=state, reply=failed, label="fails", fault=Fault.FAILURE))
        if call.operation in _LISTINGS and reply.error is None:
            ways.extend(self._stale(state, reply))
        return ways

    def _do(self, state: MemoryImage, call: Call, actor: str) -> tuple[Reply, MemoryImage]:
        if call.operation == "notes":
            assert self._notes is not None and isinstance(state, NotedImage), "the store has no notes"
            return Reply(self._notes.shown(state.notes)), state
        if call.operation == "note":
            assert self._notes is not None and isinstance(state, NotedImage), "the store has no notes"
            return Reply(), replace(state, notes=self._notes.told(state.notes, call.args[0]))
        if call.operation == "stroke":
            return self._strike(state, call, actor)
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
        after = memory.image()
        if after.key == state.key:
            return Reply(value), state
        if self._notes is not None:
            after = _noted(after, self._notes.after(cast("NotedImage", state).notes, call, after))
        return Reply(value), after

    def _torn(self, state: object, call: Call, reply: Reply) -> list[Alternative]:
        """Return the possible results of a listing that began earlier: it shows any part of the changes since then."""
        begun, now = cast("ObjectPage", call.args[-1]), cast("ObjectPage", reply.value)
        old, new = ({one.key: one for one in page.objects} for page in (begun, now))
        changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
        if begun.next_token is not None or now.next_token is not None:
            return [Alternative(state=state, reply=reply)]
        ways = []
        for as_before in _choices(changed):
            shown = {**new, **{key: old[key] for key in as_before if key in old}}
            for key in as_before:
                if key not in old:
                    del shown[key]
            page = replace(now, objects=[shown[key] for key in sorted(shown)])
            label = f"saw as before: {', '.join(as_before)}" if as_before else ""
            ways.append(Alternative(state=state, reply=Reply(page), label=label))
        return ways

    def _strike(self, state: MemoryImage, call: Call, actor: str) -> tuple[Reply, MemoryImage]:
        now = state

        def do(one: Call) -> object:
            nonlocal now
            reply, now = self._do(now, one, actor)
            if reply.error is not None:
                raise copy.copy(reply.error)
            return reply.value

        name, token = cast("tuple[str, str]", call.args)
        return Reply(self._strokes[name](do, token)), now

    def _stale(self, state: object, reply: Reply) -> list[Alternative]:
        page = cast("ObjectPage | UploadPage", reply.value)
        found = page.objects if isinstance(page, ObjectPage) else page.uploads
        keys = [one.key for one in found]
        return [
            Alternative(
                state=state,
                reply=Reply(_without(page, gone)),
                label=f"does not show {keys[gone]}" + (f", upload {n}" if (n := keys[:gone].count(keys[gone])) else ""),
                fault=Fault.STALE_LISTING,
            )
            for gone in range(len(found))
        ]

    # --- what a call touches ------------------------------------------------------------------------------------------
    def footprint(self, call: Call) -> Footprint:
        objects, uploads = self.name, f"{self.name} uploads"
        operation, key = call.operation, _key(call)
        if operation == "stroke":
            spaces = (objects, uploads, f"{self.name} parts")
            return frozenset(Access(space, "", writes=True, below=True) for space in spaces)
        if operation == "notes":
            return frozenset({Access(objects, cast("str", call.args[0]), below=True)})
        if operation in ("get", "head"):
            return frozenset({Access(objects, key)})
        if operation in ("list_page", "list_rest"):
            return frozenset({Access(objects, key, below=True)})
        if operation == "list_uploads_page":
            return frozenset({Access(uploads, key, below=True)})
        if operation == "delete_many":
            keys = cast("tuple[str, ...]", call.args[0])
            return frozenset(Access(objects, each, writes=True, removes=True) for each in keys)
        if operation == "abort_upload":
            return frozenset({Access(uploads, f"{key}\0{call.args[1]}", writes=True, removes=True)})
        if operation == "delete":
            return frozenset({Access(objects, key, writes=True, removes=True)})
        if operation == "upload_part":  # listings do not show parts
            upload = f"{key}\0{call.args[1]}"
            return frozenset({Access(uploads, upload), Access(f"{self.name} parts", upload, writes=True)})
        if operation == "create_upload":
            return frozenset({Access(uploads, f"{key}\0{call.args[-1]}", writes=True), *self._clash(key)})
        if operation == "complete_upload":
            return self._completion(key, str(call.args[1]))
        if operation == "check_targets":
            keys = cast("tuple[str, ...]", call.args[0])
            return frozenset().union(*(self._clash(each) for each in keys))
        if operation in ("rename", "copy"):
            source = cast("ObjectInfo", call.args[0]).key if operation == "copy" else key
            target = str(call.args[1])
            read = Access(objects, source, writes=operation == "rename")
            return frozenset({read, Access(objects, target, writes=True), *self._clash(target)})
        if operation == "apply":
            changes = cast("tuple[Change, ...]", call.args[0])
            return frozenset().union(*map(self._change_footprint, changes))
        if operation == "rename_dir":
            return frozenset(
                Access(space, f"{each}{slash}", writes=True, below=bool(slash))
                for space in (objects, uploads)
                for each in map(str, call.args)
                for slash in ("", "/")
            ) | self._clash(str(call.args[1]))
        assert operation in ("put", "begin_write", "finish_write"), operation
        writes = operation != "begin_write"
        return frozenset({Access(objects, key, writes=writes), *self._clash(key)})

    def _completion(self, key: str, upload_id: str) -> Footprint:
        upload = f"{key}\0{upload_id}"
        parts = {Access(f"{self.name} uploads", upload, writes=True), Access(f"{self.name} parts", upload)}
        return frozenset({*parts, Access(self.name, key, writes=True), *self._clash(key)})

    def _change_footprint(self, change: Change) -> Footprint:
        match change:
            case Complete():
                return self._completion(change.key, change.upload_id)
            case Put():
                return frozenset({Access(self.name, change.key, writes=True), *self._clash(change.key)})
            case Delete():
                return frozenset({Access(self.name, change.key, writes=True)})
            case _:
                return frozenset({Access(self.name, change.key, below=not isinstance(change, Require))})

    def _clash(self, key: str) -> Footprint:
        """Return what a store with rename accesses to check that no file is above `key`, and no directory at it.

        A directory may exist only because of pending uploads below it.
        """
        if not self.capabilities.rename:
            return frozenset()
        parts = key.split("/")
        above = [Access(self.name, "/".join(parts[:depth])) for depth in range(1, len(parts))]
        below = [Access(space, f"{key}/", below=True) for space in (self.name, f"{self.name} uploads")]
        return frozenset([*above, *below])


def _choices(changed: list[str]) -> list[list[str]]:
    """Return the sets of changes that a listing may have missed.

    If there are only a few changes, these are all sets; if there are many, the empty set, the set of all changes, and
    each single change.
    """
    if len(changed) > _TORN_LIMIT:
        return [[], changed, *([key] for key in changed)]
    return [[key for at, key in enumerate(changed) if some >> at & 1] for some in range(1 << len(changed))]


def _noted(image: MemoryImage, notes: Hashable) -> NotedImage:
    return NotedImage(image.objects, image.uploads, image.renamed_directories, image.key, notes)


def _without(page: ObjectPage | UploadPage, gone: int) -> ObjectPage | UploadPage:
    if isinstance(page, ObjectPage):
        return replace(page, objects=[*page.objects[:gone], *page.objects[gone + 1 :]])
    return replace(page, uploads=[*page.uploads[:gone], *page.uploads[gone + 1 :]])


def _key(call: Call) -> str:
    first = call.args[0]
    if isinstance(first, tuple):
        first = first[0]
    return first if isinstance(first, str) else cast("ObjectInfo | Change", first).key
