"""Remember how attempts were lost, and let a new driver continue the job of a dead one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast_checker.committers.cluster import Attempt, Cluster, ClusterState, Phase
from holdfast_checker.committers.sandbox import cluster_of
from holdfast_checker.kernel.calls import Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import View


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedState(ClusterState):
    """What drivers and tasks know, and in addition what only the properties of experiments may know.

    Attributes:
        lost: by task, then by attempt, the state in which the attempt died, failed or was cut off; None if none of this
            happened, or if the driver had rejected the attempt before.
        dead: names of the actors that died.
    """

    lost: tuple[tuple[Attempt | None, ...], ...]
    dead: tuple[str, ...] = ()


def observed(view: View) -> ObservedState:
    """Return what drivers and tasks know, and how attempts were lost."""
    found = cluster_of(view)
    assert isinstance(found, ObservedState)
    return found


class ObservedCluster:
    """A `Cluster` that records how attempts are lost.

    It has an additional call, ``restart``, for the next attempt at the job, which Hadoop starts after a driver died
    (paper 000, II.B.1). The call returns the job and the numbers of the committed tasks. It is possible after some
    tasks have committed, while no task commit is running, and before the first driver has begun to end the job.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def initial(self) -> ObservedState:
        start = self._cluster.initial()
        none_lost = tuple((None,) * len(attempts) for attempts in start.attempts)
        return ObservedState(attempts=start.attempts, accepted=start.accepted, lost=none_lost)

    def key(self, state: object) -> Hashable:
        return self._cluster.key(state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        now = cast("ObservedState", state)
        if call.operation == "restart":
            return _restart(now)
        ways = self._cluster.alternatives(state, call, actor)
        if call.operation not in ("fail", "lose"):
            return ways
        return [replace(way, state=_noted(now, cast("ObservedState", way.state))) for way in ways]

    def footprint(self, call: Call) -> Footprint:
        return self._cluster.footprint(replace(call, operation="take_over") if call.operation == "restart" else call)

    def waits_for(self, state: object, call: Call) -> tuple[str, frozenset[Fault]] | None:
        if call.operation != "restart":
            return self._cluster.waits_for(state, call)
        return ("driver", frozenset()) if cast("ObservedState", state).driver == "alive" else None

    def bury(self, state: object, actor: str) -> object:
        now = cast("ObservedState", state)
        after = _noted(now, cast("ObservedState", self._cluster.bury(state, actor)))
        return replace(after, dead=tuple(sorted((*after.dead, actor))))


def _restart(state: ObservedState) -> Sequence[Alternative]:
    committed = tuple(task for task, accepted in enumerate(state.accepted) if accepted is not None)
    busy = any(Attempt.COMMITTING in attempts for attempts in state.attempts)
    if state.driver != "dead" or state.job is None or state.phase is not Phase.RUNNING or busy or not committed:
        return []
    return [Alternative(state=replace(state, second="alive"), reply=Reply((state.job, committed)))]


def _noted(before: ObservedState, after: ObservedState) -> ObservedState:
    """Return the state `after` a step, and record in it the state in which attempts were lost in this step."""
    lost = tuple(
        tuple(
            was if now is Attempt.GONE and was in (Attempt.RUNNING, Attempt.COMMITTING) else known
            for was, now, known in zip(*attempts, strict=True)
        )
        for attempts in zip(before.attempts, after.attempts, after.lost, strict=True)
    )
    return after if lost == after.lost else replace(after, lost=lost)
