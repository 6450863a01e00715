"""Small resources and worlds with known answers: cells that hold values, and a lock with a lease."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast.errors import ConflictError, OutcomeUnknownError, UnavailableError
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.state_space import StateSpace
from holdfast_checker.kernel.walk import _RandomHistoryWalker
from holdfast_checker.kernel.world import Actor, Choice, Port, Property, View, World

CELLS = "cells"
LOCK = "lock"

State_ = tuple[tuple[str, int], ...]
Program = Callable[[Port], object]


class Cells:
    """Numbers by name, 0 by default."""

    def initial_state(self) -> State_:
        return ()

    def state_key(self, state: object) -> Hashable:
        return cast("Hashable", state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        cells = dict(cast("State_", state))
        key, *more = call.args
        now = cells.get(str(key), 0)
        failed = Alternative(
            state=state, reply=Reply(error=UnavailableError("repeat later")), label="fails", fault=Fault.FAILURE
        )
        if call.operation == "get":
            return [Alternative(state=state, reply=Reply(now)), failed]
        if call.operation == "await":
            return [Alternative(state=state, reply=Reply(now))] if now == more[0] else []
        if call.operation == "break":
            return [Alternative(state=_put(cells, key, now + 1), label="breaks", fault=Fault.PARTITION)]
        if call.operation == "swap" and now != more[0]:
            return [Alternative(state=state, reply=Reply(error=ConflictError("read again"))), failed]
        after = _put(cells, key, more[-1])
        lost = Reply(error=OutcomeUnknownError("read before repeating"))
        return [
            Alternative(state=after),
            Alternative(state=after, reply=lost, label="reply lost", fault=Fault.LOST_REPLY),
            failed,
        ]

    def footprint(self, call: Call) -> Footprint:
        writes = call.operation not in ("get", "await")
        return frozenset({Access(CELLS, str(call.args[0]), writes=writes)})

    def find_unblockers(self, state: object, call: Call) -> None:
        """Return None: anything may end a wait."""

    def state_after_death(self, state: object, actor: str) -> object:
        return state


def _put(cells: dict[str, int], key: object, value: object) -> State_:
    return tuple(sorted({**cells, str(key): cast("int", value)}.items()))


class Lock:
    """A lock with a lease: the holder's name. It is passed on when the holder dies, or is presumed dead."""

    def initial_state(self) -> str:
        return ""

    def state_key(self, state: object) -> Hashable:
        return cast("Hashable", state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        if call.operation == "release":
            return [Alternative(state="" if state == actor else state)]
        if not state:
            return [Alternative(state=actor)]
        return [Alternative(state=actor, label=f"the lease of {state} runs out", fault=Fault.CLOCK)]

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access(LOCK, "", writes=True)})

    def find_unblockers(self, state: object, call: Call) -> None:
        """Return None: a release ends a wait, too."""

    def state_after_death(self, state: object, actor: str) -> object:
        return "" if state == actor else state


@dataclass(frozen=True)
class Handle:
    """A process's access to cells and lock."""

    port: Port

    def _call(self, operation: str, *args: object, resource: str = CELLS) -> int:
        return cast("int", self.port.call(Call(resource, operation, args)))

    def get(self, key: str) -> int:
        return self._call("get", key)

    def put(self, key: str, value: int) -> None:
        self._call("put", key, value)

    def swap(self, key: str, old: int, new: int) -> None:
        """Put `new` if the value is `old`."""
        self._call("swap", key, old, new)

    def wait_for(self, key: str, value: int) -> None:
        self._call("await", key, value)

    def break_(self, key: str) -> None:
        """Add 1 by a call that is itself a fault."""
        self._call("break", key)

    def acquire(self) -> None:
        self._call("acquire", resource=LOCK)

    def release(self) -> None:
        self._call("release", resource=LOCK)


def toy_world(
    programs: Mapping[str, Callable[[Handle], object]],
    *properties: Property,
    budgets: Mapping[Fault, int] | None = None,
    observed: Callable[[Call], bool] = lambda call: False,
) -> World:
    """Return a world of these programs over cells and a lock."""

    def program(run: Callable[[Handle], object]) -> Program:
        return lambda port: run(Handle(port))

    return World(
        name="toy",
        summary="programs over cells and a lock",
        actors=tuple(Actor(name, program(run)) for name, run in programs.items()),
        resources={CELLS: Cells(), LOCK: Lock()},
        properties=properties,
        budgets=budgets or {},
        observed=observed,
    )


def cells(view: View) -> dict[str, int]:
    """Return the contents of the cells."""
    return dict(cast("State_", view.states[CELLS]))


def ends_with(name: str, holds: Callable[[dict[str, int]], bool]) -> Property:
    """Return a property of the cells at the end."""

    def judge(view: View) -> str | None:
        return None if holds(cells(view)) else f"the cells hold {cells(view)}"

    return Property(name=name, title=name, meaning=name, end=judge)


def always(name: str, holds: Callable[[dict[str, int]], bool]) -> Property:
    """Return a property of the cells after each step."""

    def judge(before: View, after: View, actor: str) -> str | None:
        return None if holds(cells(after)) else f"after {actor} the cells hold {cells(after)}"

    return Property(name=name, title=name, meaning=name, step=judge)


def with_ends(world: World) -> tuple[World, set[tuple[Hashable, ...]]]:
    """Return the world with an additional property, and the set to which it adds all final states."""
    seen = set[tuple[Hashable, ...]]()

    def end(view: View) -> None:
        seen.add(tuple(one.state_key(view.states[name]) for name, one in world.resources.items()))

    onlooker = Property(name="ends", title="", meaning="", end=end)
    return replace(world, properties=(*world.properties, onlooker)), seen


def draw_history(world: World, seed: int) -> tuple[Choice, ...]:
    """Return the choices of the random history of a seed, such as `Counterexample.seed`."""
    walker = _RandomHistoryWalker(StateSpace(world), seed)
    while walker.take_next_step() or walker.inject_late_fault():
        continue
    return walker.choices


# --- worlds -----------------------------------------------------------------------------------------------------------
def increment(handle: Handle) -> None:
    """Add one incorrectly: others may write between the two steps."""
    handle.put("count", handle.get("count") + 1)


def swap_increment(handle: Handle) -> None:
    """Add one correctly: retry if another actor was faster."""
    for _ in range(3):
        try:
            now = handle.get("count")
            handle.swap("count", now, now + 1)
        except ConflictError:
            continue
        return


def guarded_increment(handle: Handle) -> None:
    """Add one while holding the lock."""
    handle.acquire()
    increment(handle)
    handle.release()


def racing_world(budgets: Mapping[Fault, int] | None = None) -> World:
    """Return a world in which two actors count to two, and lose an update."""
    return toy_world(
        {"first": increment, "second": increment},
        ends_with("count", lambda now: now.get("count") == 2),
        budgets=budgets,
    )
