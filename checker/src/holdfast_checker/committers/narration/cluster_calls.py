"""Put calls on the cluster into words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from holdfast.commit import JobRecord
from holdfast_checker.committers.cluster import CLUSTER, ClusterState
from holdfast_checker.committers.narration.places import short
from holdfast_checker.narrative.narrator import Act, Event, Weight

_Words = Callable[[Event], Act]


def _says(verb: str, weight: Weight, event: Event) -> Act:
    return Act(verb=verb, weight=weight)


def _post_job(event: Event) -> Act:
    return Act(verb="starts", things=(f"job {short(cast('JobRecord', event.call.args[0]).job)}",))


def _await_tasks(event: Event) -> Act:
    if event.alternative is None:
        return Act(verb="receives its tasks' reports")
    return Act(verb="sees that the job cannot succeed" if event.reply is None else "receives its tasks' reports")


def _may_commit(event: Event) -> Act:
    return Act(verb="is denied permission to commit" if event.reply is False else "gets permission to commit")


def _report(event: Event) -> Act:
    task, attempt = cast("tuple[int, int]", event.call.args[:2])
    before, after = (cast("ClusterState", view.states[CLUSTER]).accepted[task] for view in (event.before, event.after))
    if event.alternative is None:
        return Act(verb="reports")
    is_accepted = before is None and after is not None and after[0] == attempt
    return Act(verb="reports", tail=f", which the driver {'accepts' if is_accepted else 'drops'}")


def _lose(event: Event) -> Act:
    who = event.label.removeprefix("cuts off ")
    return Act(verb="cuts off", things=(who,), tail=" from the driver", weight=Weight.TURN)


def _take_over(event: Event) -> Act:
    purpose = event.label.removeprefix("to ")
    return Act(verb="takes over the job", tail=f" to {purpose} it", weight=Weight.TURN)


def _tell(event: Event) -> Act:
    outcome, detail = event.call.args
    if outcome == "read":
        paths = cast("tuple[int, int, tuple[str, ...]]", detail)[2]
        return Act(verb="has read", things=tuple(map(short, paths)), plural="files")
    if outcome == "recovered":
        jobs = [f"{action} job {short(job)}" for job, action in cast("tuple[tuple[str, str], ...]", detail)]
        return Act(verb="is done:", things=tuple(jobs) or ("nothing to recover",), weight=Weight.TURN)
    if outcome in ("committed", "aborted"):
        pending = "" if detail is not False else ", with clean-up pending"
        return Act(verb=f"reports that the job is {outcome}{pending}", weight=Weight.TURN)
    return Act(verb=f"ends without success ({outcome}: {detail})", weight=Weight.TURN)


CLUSTER_CALLS: Mapping[str, _Words] = {
    "post_job": _post_job,
    "await_tasks": _await_tasks,
    "begin": partial(_says, "starts", Weight.SMALL),
    "may_commit": _may_commit,
    "report": _report,
    "fail": partial(_says, "fails", Weight.WORK),
    "lose": _lose,
    "cancel": partial(_says, "cancels the job", Weight.TURN),
    "take_over": _take_over,
    "restart": partial(_says, "continues the job as its next attempt", Weight.TURN),
    "take_for_dead": partial(_says, "presumes the driver dead", Weight.TURN),
    "await_end": partial(_says, "starts once the driver is gone", Weight.TURN),
    "turn": partial(_says, "switches threads", Weight.READ),
    "offer": partial(_says, "is ready to commit", Weight.SMALL),
    "tell": _tell,
}
"""For each operation of the cluster, the function that puts a call of it into words."""
