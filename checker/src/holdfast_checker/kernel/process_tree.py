"""Build, on demand, the tree of all possible executions of each single process of a world.

A history of one process is the calls that it made, and the replies that it got. A *place* is a node of the tree: what
the process is about to do after such a history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast_checker.kernel.calls import Call, Footprint, Reply, Resource, ValueNumbering, canonical_key, may_conflict
from holdfast_checker.kernel.world import Actor, NondeterminismError, Port, ProcessStopped

_CALLS_LIMIT = 5_000
"""Maximum number of calls of a process. No wait is unbounded, so a process that makes more calls is a finding."""


@dataclass(slots=True, eq=False)
class LocalState:
    """The local state of one process: it has got certain replies, and is about to make a certain call.

    Attributes:
        call: the next call; None at the end.
        footprint: number of the call's footprint.
        future: the numbers, as bits, of the footprints of all calls that are known to be possible from here on,
            including this one.
        failure: the unexpected exception that ended the process; empty if none did.
    """

    number: int
    parent: LocalState | None
    reply: Reply | None
    call: Call | None
    footprint: int = -1
    future: int = 0
    failure: str = ""
    next: dict[int, LocalState] = field(default_factory=dict)


class ProcessTrees:
    """The trees of possible executions of all actors (processes) of a world, built on demand.

    Args:
        observed: says whether a property looks at something that a call may change.
    """

    def __init__(
        self,
        actors: tuple[Actor, ...],
        resources: Mapping[str, Resource],
        observed: Callable[[Call], bool],
    ) -> None:
        self.actors = actors
        self._resources = resources
        self._observed = observed
        self._replies: ValueNumbering[Reply] = ValueNumbering()
        self._footprints: ValueNumbering[tuple[Footprint, bool]] = ValueNumbering()
        self.conflicts: list[int] = []  # for each footprint, those with which it does not commute, as bits
        self.places: list[LocalState] = []
        self._starts: dict[int, LocalState] = {}
        self._ends: dict[str, LocalState] = {}
        self.dead = self._add_local_state(None, None, None)

    def reply_number(self, reply: Reply) -> int:
        return self._replies.number((canonical_key(reply.value), canonical_key(reply.error)), reply)

    def start(self, actor: int, states: Mapping[str, object]) -> LocalState:
        """Return the local state of an actor before its first call, given the initial `states` of the resources."""
        if actor not in self._starts:
            self._starts[actor] = self._run_process(actor, None, None, states)
        return self._starts[actor]

    def after(self, actor: int, place: LocalState, number: int, states: Mapping[str, object]) -> LocalState:
        """Return the local state that follows the local state `place` when its call gets the reply with this number.

        Args:
            states: the states of the resources after the call. If the result is not known yet, the actor runs on as if
                no other actor moved, so that one run finds many local states.
        """
        found = place.next.get(number)
        return self._run_process(actor, place, self._replies.values[number], states) if found is None else found

    def _run_process(
        self, actor: int, place: LocalState | None, reply: Reply | None, states: Mapping[str, object]
    ) -> LocalState:
        known = self._path_to(place)
        first: list[LocalState] = []
        trouble: list[Exception] = []
        world = dict(states)
        at, last = place, reply

        def reply_to(index: int, call: Call) -> Reply | None:
            nonlocal at, last
            if index < len(known):
                there = known[index]
                if there.call != call:
                    raise NondeterminismError(f"{self.actors[actor].name} called {call}, before: {there.call}")
                # `known[i]` is the place before call i, and the reply to call i is stored in the place after the call.
                return known[index + 1].reply if index + 1 < len(known) else reply
            if index >= _CALLS_LIMIT:
                first.append(self._get_end_state(at, last, f"more than {_CALLS_LIMIT} calls: a wait is unbounded"))
                return None
            at = self._add_call_after_reply(at, last, call)
            first.append(at)
            last = self._execute_call_undisturbed(world, call, self.actors[actor].name)
            return last

        def answer_call(index: int, call: Call) -> Reply | None:
            try:
                return reply_to(index, call)
            except Exception as error:  # noqa: BLE001  # raised below: the code under test must not catch it
                trouble.append(error)
                return None

        port = Port(self.actors[actor].name, actor, answer_call)
        try:
            self.actors[actor].program(port)
        except ProcessStopped:
            pass
        except Exception as error:  # noqa: BLE001  # a finding: the code under test is broken
            first.append(self._get_end_state(at, last, f"{type(error).__name__}: {error}"))
        else:
            first.append(self._get_end_state(at, last, ""))
        finally:
            port.close()  # a cached handle or a generator may still hold the port
        if trouble:
            raise trouble[0]
        if not first:
            raise NondeterminismError(f"{self.actors[actor].name} stopped before its next call")
        return first[0]

    def _execute_call_undisturbed(self, world: dict[str, object], call: Call, actor: str) -> Reply | None:
        """Return the reply to a call if no other actor moves and no fault happens; None if the call blocks."""
        ways = self._resources[call.resource].alternatives(world[call.resource], call, actor)
        if not ways or ways[0].fault is not None:
            return None
        world[call.resource] = ways[0].state
        return ways[0].reply

    # --- the tree -----------------------------------------------------------------------------------------------------
    def _path_to(self, place: LocalState | None) -> list[LocalState]:
        path = []
        while place is not None:
            path.append(place)
            place = place.parent
        return path[::-1]

    def _add_local_state(
        self, parent: LocalState | None, reply: Reply | None, call: Call | None, failure: str = ""
    ) -> LocalState:
        place = LocalState(len(self.places), parent, reply, call, failure=failure)
        self.places.append(place)
        return place

    def _add_call_after_reply(self, parent: LocalState | None, reply: Reply | None, call: Call) -> LocalState:
        number = -1
        if parent is not None:
            assert reply is not None
            number = self.reply_number(reply)
            if number in parent.next:
                found = parent.next[number]
                if found.call != call:
                    raise NondeterminismError(f"a process called {call}, before: {found.call}")
                return found
        place = self._add_local_state(parent, reply, call)
        place.footprint = self._number_footprint(call)
        if parent is not None:
            parent.next[number] = place
        future = 1 << place.footprint
        up: LocalState | None = place
        while up is not None and future & ~up.future:  # what is possible here is possible from all places above
            up.future |= future
            up = up.parent
        return place

    def _get_end_state(self, parent: LocalState | None, reply: Reply | None, failure: str) -> LocalState:
        """Return the place at a process's end.

        Replies no longer matter there, so all ends with the same failure are one place.
        """
        end = self._ends.get(failure) or self._ends.setdefault(
            failure, self._add_local_state(None, None, None, failure)
        )
        if parent is not None and reply is not None:
            parent.next[self.reply_number(reply)] = end
        return end

    def _number_footprint(self, call: Call) -> int:
        footprint, seen = self._resources[call.resource].footprint(call), self._observed(call)
        number = self._footprints.number((footprint, seen), (footprint, seen))
        if number == len(self.conflicts):
            self.conflicts.append(0)
            for other, (theirs, also_seen) in enumerate(self._footprints.values):
                if (seen and also_seen) or may_conflict(footprint, theirs):
                    self.conflicts[number] |= 1 << other
                    self.conflicts[other] |= 1 << number
        return number
