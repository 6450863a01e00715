"""Model clients whose calls go through two servers, over connections that may break, and who then repeat them.

A server is a process for each client, which carries out the client's requests with the shipped `RequestRunner`, and one
that publishes what it knows of its answers (`AnswerBook`). The *wire* is what lies between: it delivers requests and
answers, may break a connection at any moment, and knows what each server can know of its connections.

A server may learn late that a connection broke: at last when the client has got the answer to a repeat, since it asks
before each try, and gives a request up that is older than its clients wait.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from holdfast.errors import OutcomeUnknownError, TransactionConflictError, UnavailableError
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.keys import answers_key, receipt_key
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.operation import RequestAbandonedError
from holdfast.namespace.receipts import (
    ANSWER_STEP_S,
    AnswerBook,
    ClientRequest,
    RequestRepeatedError,
)
from holdfast.runtime import Environment, SeededRandom, SerialRunner
from holdfast.transactions.base import Commit
from holdfast_checker.histories.history import record_operation
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply, canonical_key
from holdfast_checker.kernel.world import Actor, Port
from holdfast_checker.namespace.actors import BLOBS, NamespaceSetting, Script
from holdfast_checker.namespace.calls import ANSWERS, NamespaceCallExecutor
from holdfast_checker.namespace.handles import NamespaceHandle
from holdfast_checker.simulated.store_handle import SimulatedStore

WIRE = "wire"
"""The name of the resource between clients and servers."""

_SERVERS = ("one", "two")
_DEAD_S = 10.0
"""How much time passes for who waits for word of a dead server."""

_DONE: dict[str, object] = {"mkdirs": True, "delete": True, "delete_tree": True}
"""The answers of operations that have taken effect; None for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One arrival of a client's call at a server.

    Attributes:
        call: the number of the call in the client's script.
        number: of the answer among those of the server; 0 before the server has taken the request.
        answers: the answer, if the server has sent it.
    """

    client: str
    call: int
    attempt: int
    server: str
    number: int = 0
    answers: tuple[object, ...] = ()
    is_delivered: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Wire:
    """The state of all connections.

    Attributes:
        dead: the servers that have died.
        published: what each server has published last.
    """

    attempts: tuple[Attempt, ...] = ()
    dead: frozenset[str] = frozenset()
    published: tuple[tuple[str, AnswerBook], ...] = ()

    def find(self, client: str, call: int, attempt: int) -> Attempt:
        """Return an arrival of a request."""
        (found,) = (one for one in self.attempts if (one.client, one.call, one.attempt) == (client, call, attempt))
        return found

    def change(self, found: Attempt, **changes: Any) -> Wire:
        """Return the state with one changed arrival."""
        changed = replace(found, **changes)
        return replace(self, attempts=tuple(changed if one is found else one for one in self.attempts))

    def book_of(self, server: str) -> AnswerBook:
        """Return what a server knows of its answers."""
        taken = [one for one in self.attempts if one.server == server and one.number]
        return AnswerBook(
            through=max((one.number for one in taken), default=0),
            unknown=frozenset(one.number for one in taken if not (one.is_delivered or one.is_cut)),
            lost=frozenset(one.number for one in taken if one.is_cut),
        )

    @property
    def news(self) -> int:
        """A number that grows with everything for which somebody waits."""
        known = sum(one.is_delivered + one.is_cut for one in self.attempts)
        return known + len(self.dead) + sum(book.at_ms for _, book in self.published)


class WireResource:
    """The wire as a resource: see the functions that call it."""

    def initial_state(self) -> Wire:
        return Wire()

    def state_key(self, state: object) -> Hashable:
        return canonical_key(state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        act: Callable[..., Sequence[Alternative]] = getattr(self, f"_{call.operation}")
        return act(cast("Wire", state), *call.args)

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access(WIRE, "", writes=True)})

    def find_unblockers(self, state: object, call: Call) -> None:
        return None

    def state_after_death(self, state: object, actor: str) -> object:
        server = next((one for one in _SERVERS if actor.startswith(f"server {one}")), "")
        return replace(cast("Wire", state), dead=cast("Wire", state).dead | {server}) if server else state

    # --- of clients ---------------------------------------------------------------------------------------------------
    def _send(self, wire: Wire, client: str, call: int, attempt: int, server: str) -> Sequence[Alternative]:
        sent = Attempt(client=client, call=call, attempt=attempt, server=server)
        return [Alternative(state=replace(wire, attempts=(*wire.attempts, sent)))]

    def _receive(self, wire: Wire, client: str, call: int, attempt: int) -> Sequence[Alternative]:
        """Return the answer, or that the connection broke."""
        found = wire.find(client, call, attempt)
        broken = Alternative(state=wire.change(found, is_cut=True), reply=Reply(("cut", None)))
        if found.answers:
            whole = Alternative(state=wire.change(found, is_delivered=True), reply=Reply(("answer", found.answers[0])))
            return [whole, replace(broken, label="the connection breaks", fault=Fault.PARTITION)]
        if found.server in wire.dead:
            return [broken]
        return [replace(broken, label="the connection breaks", fault=Fault.PARTITION)]

    # --- of servers ---------------------------------------------------------------------------------------------------
    def _take(self, wire: Wire, server: str, client: str) -> Sequence[Alternative]:
        """Return the next request of a client; block if there is none."""
        waiting = [one for one in wire.attempts if (one.server, one.client) == (server, client) and not one.number]
        if not waiting:
            return []
        number = 1 + max((one.number for one in wire.attempts if one.server == server), default=0)
        taken = waiting[0]
        return [Alternative(state=wire.change(taken, number=number), reply=Reply((taken.call, taken.attempt, number)))]

    def _answer(self, wire: Wire, client: str, call: int, attempt: int, value: object) -> Sequence[Alternative]:
        return [Alternative(state=wire.change(wire.find(client, call, attempt), answers=(value,)))]

    def _wanted(self, wire: Wire, client: str, call: int, attempt: int) -> Sequence[Alternative]:
        """Return whether the server believes that the client waits."""
        found = wire.find(client, call, attempt)
        if not found.is_cut:
            return [Alternative(state=wire, reply=Reply(True))]
        has_gone_on = any(
            one.is_delivered for one in wire.attempts if (one.client, one.call) == (client, call) and one is not found
        )
        late = Alternative(state=wire, reply=Reply(True), label="does not know yet that the connection broke")
        gone = Alternative(state=wire, reply=Reply(False))
        return [gone] if has_gone_on else [gone, late]

    def _delivered(self, wire: Wire, server: str, number: int) -> Sequence[Alternative]:
        return [Alternative(state=wire, reply=Reply(wire.book_of(server).was_delivered(number)))]

    def _sleep(self, wire: Wire, seen: int) -> Sequence[Alternative]:
        """Return the news, and whether a server is dead; block until there are news."""
        if wire.news == seen and not wire.dead:
            return []
        return [Alternative(state=wire, reply=Reply((wire.news, bool(wire.dead))))]

    def _news(self, wire: Wire, server: str) -> Sequence[Alternative]:
        """Return what a server may publish; block if it is nothing new."""
        book, last = wire.book_of(server), dict(wire.published).get(server, AnswerBook())
        if server in wire.dead or replace(last, at_ms=0) == book:
            return []
        return [Alternative(state=wire, reply=Reply(replace(book, at_ms=last.at_ms + 1)))]

    def _published(self, wire: Wire, server: str, book: AnswerBook) -> Sequence[Alternative]:
        published = tuple(sorted({**dict(wire.published), server: book}.items()))
        return [Alternative(state=replace(wire, published=published))]


# --- actors -----------------------------------------------------------------------------------------------------------
def request_actors(setting: NamespaceSetting, client: str, script: Script, knows: Sequence[str]) -> list[Actor]:
    """Return a client that repeats its calls, and its processes at both servers."""
    return [
        Actor(client, partial(_run_repeating_client, script), mortal=False),
        *(
            Actor(f"server {server} for {client}", partial(_run_server, setting, server, client, script, knows))
            for server in _SERVERS
        ),
    ]


def publishing_actors(setting: NamespaceSetting) -> list[Actor]:
    """Return the processes that publish what the servers know of their answers."""
    return [
        Actor(f"server {server} publishes", partial(_run_publisher, setting, server), mortal=False)
        for server in _SERVERS
    ]


def _run_repeating_client(script: Script, port: Port) -> None:
    for number, (name, *args) in enumerate(script):
        try:
            record_operation(port, name, tuple(args), partial(_ask, port, number), answers=ANSWERS)
        except ANSWERS:
            continue
        except (TransactionConflictError, UnavailableError, OutcomeUnknownError):
            return


def _ask(port: Port, call: int) -> object:
    """Send a request to one server after the other until there is an answer."""
    attempt = 0
    while True:
        server = _SERVERS[min(attempt, len(_SERVERS) - 1)]
        port.call(Call(WIRE, "send", (port.name, call, attempt, server)))
        kind, value = cast("tuple[str, object]", port.call(Call(WIRE, "receive", (port.name, call, attempt))))
        if kind == "answer":
            if isinstance(value, BaseException):
                raise value
            return value
        attempt += 1


@dataclass
class _RequestClock:
    """The clock of a server's process: who waits for word of another answer waits for news on the wire."""

    port: Port
    database: NamespaceHandle
    at_s: float
    seen: int = field(default=-1)
    waited_s: float = 0.0

    def now_s(self) -> float:
        return self.at_s

    def elapsed_s(self) -> float:
        return self.waited_s

    def sleep(self, duration_s: float) -> None:
        if duration_s != ANSWER_STEP_S:
            self.database.wait()
            return
        self.seen, has_died = cast("tuple[int, bool]", self.port.call(Call(WIRE, "sleep", (self.seen,))))
        self.waited_s += _DEAD_S if has_died else 0.0


def _run_server(
    setting: NamespaceSetting, server: str, client: str, script: Script, knows: Sequence[str], port: Port
) -> None:
    """Carry out the requests of a client, at most once each."""
    database = NamespaceHandle(port, setting.start)
    clock = _RequestClock(port, database, setting.start_s)
    environment = Environment(clock=clock, ids=port, runner=SerialRunner(), chance=SeededRandom(1))
    blobs = BlobStore(SimulatedStore(port, BLOBS, setting.capabilities), "", port)
    namespace = Namespace(database, blobs, setting.configuration, environment, user=setting.configuration.superuser)
    for path in knows:
        namespace.find(path)
    database.switch_to_simulated_database()
    while True:
        call, attempt, number = cast("tuple[int, int, int]", port.call(Call(WIRE, "take", (server, client))))
        name, *args = script[call]
        request = ClientRequest(
            key=receipt_key(client, name, *map(str, args)),
            server=server,
            number=number,
            is_wanted=partial(_ask_wire, port, "wanted", client, call, attempt),
            was_delivered=lambda other: cast("bool | None", port.call(Call(WIRE, "delivered", (server, other)))),
        )
        value: object
        try:
            executor = NamespaceCallExecutor(namespace.for_request(request), clock, {})
            value = executor.execute_by_name(name, *args)
        except RequestRepeatedError:
            value = _DONE.get(name)
        except RequestAbandonedError:
            continue
        except (*ANSWERS, TransactionConflictError, UnavailableError, OutcomeUnknownError) as error:
            value = error.with_traceback(None)
        port.call(Call(WIRE, "answer", (client, call, attempt, value)))


def _ask_wire(port: Port, operation: str, *args: object) -> bool:
    return cast("bool", port.call(Call(WIRE, operation, args)))


def _run_publisher(setting: NamespaceSetting, server: str, port: Port) -> None:
    database = NamespaceHandle(port, setting.start)
    database.switch_to_simulated_database()
    while True:
        book = cast("AnswerBook", port.call(Call(WIRE, "news", (server,))))
        database.commit(Commit(puts={answers_key(server): book.encode()}))
        port.call(Call(WIRE, "published", (server, book)))
