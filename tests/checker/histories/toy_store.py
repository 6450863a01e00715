"""A small optimistic store in a simulated world, and its client: versioned reads, and one validating commit.

What the commit validates is an argument, so that the same programs run over a correct store and over known mistakes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast.errors import ConflictError, OutcomeUnknownError
from holdfast_checker.histories.exactly_once import Effect
from holdfast_checker.histories.history import note, record
from holdfast_checker.histories.transactions import Read, Versions, Write
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.canonical import canonical
from holdfast_checker.kernel.process import Port
from holdfast_checker.kernel.world import View

STORE = "store"
START = "start"
"""The version of what is there at the start, and of what is not there."""


class Validation(enum.Enum):
    """Which reads a commit compares with the present versions."""

    ALL = "everything that was read"
    WRITTEN = "what is written, too"
    NOTHING = "nothing"


class Committed(enum.Enum):
    """The answer of a commit."""

    DONE = "committed"
    CONFLICT = "conflict"
    ALREADY_DONE = "already done"


@dataclass(frozen=True, slots=True)
class Image:
    """The store's state.

    Attributes:
        logs: by key, sorted: all versions and their values.
        effects: of units, sorted.
    """

    logs: tuple[tuple[str, tuple[tuple[str, object], ...]], ...] = ()
    effects: tuple[tuple[str, str], ...] = ()

    def log(self, key: str) -> tuple[tuple[str, object], ...]:
        return dict(self.logs).get(key, ((START, None),))

    def install(self, key: str, version: str, value: object) -> Image:
        logs = {**dict(self.logs), key: (*self.log(key), (version, value))}
        return replace(self, logs=tuple(sorted(logs.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit request.

    Attributes:
        version: of everything that it writes; unique.
        inserts: keys that must not exist yet: the markers of units.
        empty: prefixes below which nothing may exist.
        unit: that takes effect with it.
    """

    version: str
    reads: tuple[tuple[str, str], ...] = ()
    puts: tuple[tuple[str, object], ...] = ()
    inserts: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    unit: str = ""


class OptimisticStore:
    """A resource: `get`, `scan`, `commit`."""

    def __init__(self, values: Mapping[str, object], validation: Validation = Validation.ALL) -> None:
        self._initial = Image(tuple(sorted((key, ((START, value),)) for key, value in values.items())))
        self._validation = validation

    def initial(self) -> Image:
        return self._initial

    def key(self, state: object) -> Hashable:
        return canonical(state)

    def waits_for(self, state: object, call: Call) -> None:
        return None

    def bury(self, state: object, actor: str) -> object:
        return state

    def footprint(self, call: Call) -> Footprint:
        if call.operation != "commit":
            return frozenset({Access(STORE, str(call.args[0]), below=call.operation == "scan")})
        asked = cast("Commit", call.args[0])
        reads = {Access(STORE, key) for key, _version in asked.reads}
        empty = {Access(STORE, prefix, below=True) for prefix in asked.empty}
        writes = {Access(STORE, key, writes=True) for key in (*dict(asked.puts), *asked.inserts)}
        return frozenset({*reads, *empty, *writes, *({Access("effects", "", writes=True)} if asked.unit else ())})

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        image = cast("Image", state)
        if call.operation == "get":
            return [Alternative(state=image, reply=Reply(image.log(str(call.args[0]))[-1]))]
        if call.operation == "scan":
            return [Alternative(state=image, reply=Reply(_scan(image, str(call.args[0]))))]
        asked = cast("Commit", call.args[0])
        answer = self._judge(image, asked)
        if answer is not Committed.DONE:
            return [Alternative(state=image, reply=Reply(answer))]
        after = image
        for key, value in (*asked.puts, *((key, asked.version) for key in asked.inserts)):
            after = after.install(key, asked.version, value)
        if asked.unit:
            after = replace(after, effects=tuple(sorted((*after.effects, (asked.unit, actor)))))
        lost = Reply(error=OutcomeUnknownError("the reply was lost: read before repeating"))
        return [
            Alternative(state=after, reply=Reply(answer)),
            Alternative(state=after, reply=lost, label="reply lost", fault=Fault.LOST_REPLY),
        ]

    def _judge(self, image: Image, asked: Commit) -> Committed:
        if any(image.log(key)[-1][1] is not None for key in asked.inserts):
            return Committed.ALREADY_DONE
        written = dict(asked.puts)
        for key, version in asked.reads:
            checked = self._validation is Validation.ALL or (self._validation is Validation.WRITTEN and key in written)
            if checked and image.log(key)[-1][0] != version:
                return Committed.CONFLICT
        return Committed.CONFLICT if any(_scan(image, prefix) for prefix in asked.empty) else Committed.DONE


def _scan(image: Image, prefix: str) -> tuple[str, ...]:
    return tuple(key for key, log in image.logs if key.startswith(prefix) and log[-1][1] is not None)


def commit(port: Port, asked: Commit) -> Committed:
    return cast("Committed", port.call(Call(STORE, "commit", (asked,))))


class Transaction:
    """Caches reads, so that each key is read once; later reads see the writes, which are sent with the commit."""

    def __init__(self, port: Port, version: str) -> None:
        self._port = port
        self.version = version
        self.reads: dict[str, tuple[str, object]] = {}
        self.puts: dict[str, object] = {}

    def get(self, key: str) -> object:
        if key in self.puts:
            return self.puts[key]
        if key not in self.reads:
            self.reads[key] = cast("tuple[str, object]", self._port.call(Call(STORE, "get", (key,))))
        return self.reads[key][1]

    def scan(self, prefix: str) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self._port.call(Call(STORE, "scan", (prefix,))))

    def put(self, key: str, value: object) -> None:
        self.puts[key] = value

    def commit(self, *, empty: tuple[str, ...] = (), noted: bool = False) -> None:
        """Commit; raise ConflictError if another transaction was faster."""
        reads = tuple((key, version) for key, (version, _value) in self.reads.items())
        if noted:
            writes = [Write(key, self.version) for key in self.puts]
            note(self._port, *(Read(key, version) for key, version in reads), *writes)
        asked = Commit(version=self.version, reads=reads, puts=tuple(self.puts.items()), empty=empty)
        if commit(self._port, asked) is Committed.CONFLICT:
            raise ConflictError("somebody moved first: start again")


def transact(port: Port, name: str, body: Callable[[Transaction], object], tries: int = 2) -> None:
    """Run a transaction as one operation of the history for each try; give up after the last."""
    for number in range(1, tries + 1):
        transaction = Transaction(port, f"{port.name} {number}")

        def act(transaction: Transaction = transaction) -> None:
            body(transaction)
            transaction.commit(noted=True)

        try:
            record(port, name, (), act)
        except ConflictError:
            continue
        except OutcomeUnknownError:
            return
        return


def image_of(view: View) -> Image:
    return cast("Image", view.states[STORE])


def versions_of(view: View) -> dict[str, Versions]:
    """Return the versions of all keys that existed at the start or since."""
    return {key: Versions(tuple(version for version, _value in log)) for key, log in image_of(view).logs}


def effects_of(view: View) -> list[Effect]:
    return [Effect(unit, by) for unit, by in image_of(view).effects]


def is_commit(call: Call) -> bool:
    """Check whether a call must be observed."""
    return call.operation == "commit"
