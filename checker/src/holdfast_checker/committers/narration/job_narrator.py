"""Define the narrator for worlds of committers, which puts jobs into words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast.commit import layout
from holdfast.errors import HoldfastError
from holdfast.stores.memory import MemoryImage
from holdfast_checker.committers.cluster import CLUSTER, ClusterState
from holdfast_checker.committers.narration.cluster_calls import CLUSTER_CALLS
from holdfast_checker.committers.narration.places import PlaceNames, path_of, short
from holdfast_checker.committers.narration.store_calls import STORE_CALLS, name_decision
from holdfast_checker.committers.output import DESTINATION, HOME, Origin, origin_of, visible, visible_in
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import View, World
from holdfast_checker.narrative.narrator import Act, Event, Narrator, Thing, Weight


def job_narrator(world: World) -> Narrator:
    """Return the narrator for a world of a committer. It calls attempts by the names of the actors that run them."""
    words = _Words(PlaceNames(tuple(actor.name for actor in world.actors)))
    return Narrator(act=words.act, fault=words.fault, holds=words.holds, things=words.things)


@dataclass(frozen=True, slots=True)
class _Words:
    names: PlaceNames

    # --- calls --------------------------------------------------------------------------------------------------------
    def act(self, event: Event) -> Act:
        """Put a call into words."""
        if event.call.resource == CLUSTER:
            return CLUSTER_CALLS[event.call.operation](event)
        act = STORE_CALLS[event.call.operation](self.names, event)
        if isinstance(event.reply, HoldfastError) and event.fault is None and act.weight >= Weight.WORK:
            why = event.reply.message.partition(":")[0]
            return Act(verb=act.verb, things=act.things, tail=f"{act.tail}, which fails: {why}")
        return replace(act, weight=self._weight(event, act.weight))

    def _weight(self, event: Event, weight: Weight) -> Weight:
        if event.alternative is None or weight is Weight.READ:
            return weight
        before, after = _image(event.before, event.call.resource), _image(event.after, event.call.resource)
        if before.key == after.key:
            return Weight.READ
        if event.call.resource == DESTINATION and visible_in(before, "") != visible_in(after, ""):
            return Weight.TURN
        return weight

    def fault(self, event: Event) -> str:
        """Describe the fault of a call, as the end of a sentence that begins with the call."""
        if event.fault is Fault.LOST_REPLY:
            return ", but the reply is lost"
        if event.fault is Fault.FAILURE:
            lost = event.label == "request lost"
            return ", but the request is lost" if lost else ", but the call fails and has no effect"
        if event.fault is Fault.STALE_LISTING:
            unseen = event.label.removeprefix("does not show ").partition(", upload ")[0]
            return f", and the listing does not show {self.names.name(event, unseen)}"
        if event.fault is Fault.CONTENTION:
            return ", but the store answers that another write is in progress"
        if event.fault is Fault.CLOCK:
            return ", although it is alive"
        if event.call.operation == "lose":
            return "; the driver presumes it dead, but it keeps running"
        return ", although the first driver is alive: it is partitioned and keeps running"

    # --- state --------------------------------------------------------------------------------------------------------
    def holds(self, view: View) -> Mapping[str, str]:
        """Describe the state: what is visible, hidden, pending, decided and reported."""
        image, cluster = _image(view, DESTINATION), _cluster(view)
        shown = _in_words(visible(view).values())
        hidden = (
            origin_of(found.data)
            for name in view.states
            if name != CLUSTER
            for key, found in _image(view, name).objects.items()
            if name != DESTINATION or (key.startswith(HOME) and layout.is_hidden(key[len(HOME) :]))
        )
        uploads = Counter(
            self.names.owner(name) for name, one in image.uploads.items() if one.info.key.startswith(HOME)
        )
        return {
            "the destination shows": shown + (" (and _SUCCESS)" if HOME + layout.SUCCESS in image.objects else ""),
            "hidden": _in_words(origin for origin in hidden if not origin.damaged),
            "pending uploads": ", ".join(f"{count} of {who}" for who, count in sorted(uploads.items())) or "none",
            "decided": ", ".join(_decisions(image)) or "nothing",
            "outcomes": ", ".join(f"{told.who}: {told.outcome}" for told in cluster.told) or "none",
        }

    def things(self, view: View) -> Sequence[Thing]:
        """List every object, upload, attempt and outcome."""
        found: list[Thing] = []
        for name, state in view.states.items():
            if name != CLUSTER:
                found += self._stored(name, cast("MemoryImage", state))
        cluster = _cluster(view)
        found.append(Thing("driver and tasks", "driver", f"{cluster.driver}, {cluster.phase.value}"))
        for task, attempts in enumerate(cluster.attempts):
            accepted = cluster.accepted[task]
            for number, attempt in enumerate(attempts):
                counts = "; its report counts" if accepted is not None and accepted[0] == number else ""
                found.append(Thing("driver and tasks", f"task {task} attempt {number}", f"{attempt.value}{counts}"))
        found += [Thing("outcomes", told.who, told.outcome) for told in cluster.told]
        return found

    def _stored(self, name: str, image: MemoryImage) -> Iterable[Thing]:
        for key, found in sorted(image.objects.items()):
            origin = origin_of(found.data)
            text = f"{len(found.data)} bytes" if origin.damaged else str(origin)
            plain = name == DESTINATION and not layout.is_hidden(key)
            yield Thing("visible files" if plain else f"hidden in the {name}", key, text)
        for upload_id, upload in sorted(image.uploads.items()):
            parts = len(upload.parts)
            owner = self.names.owner(upload_id)
            text = f"upload {short(upload_id)} of {owner}, {parts} part{'' if parts == 1 else 's'}"
            yield Thing("pending uploads", f"{upload.info.key} {upload_id}", text)


def _image(view: View, name: str) -> MemoryImage:
    return cast("MemoryImage", view.states[name])


def _cluster(view: View) -> ClusterState:
    return cast("ClusterState", view.states[CLUSTER])


def _in_words(origins: Iterable[Origin]) -> str:
    """Name files, grouped by attempt: ``files 0 and 1 of task 0 attempt 1, file 0 of task 1 attempt 0``."""
    numbers: dict[str, list[int]] = {}
    for origin in sorted(origins):
        if origin.damaged:
            whose = f"damaged data ({origin.job[:20]!r})"
        else:
            whose = f"task {origin.task} attempt {origin.attempt}" + _job_words(origin.job)
        numbers.setdefault(whose, []).append(origin.number)
    return (
        ", ".join(
            f"file{'s' if len(found) > 1 else ''} {' and '.join(map(str, found))} of {whose}"
            for whose, found in numbers.items()
        )
        or "nothing"
    )


def _job_words(job: str) -> str:
    return "" if job == "main" else f" of the {job} job"


def _decisions(image: MemoryImage) -> Iterable[str]:
    for key, found in sorted(image.objects.items()):
        match = re.fullmatch(rf"{layout.LOG}(\d+)\.json", path_of(key))
        if match is not None:
            yield f"{int(match[1])} {name_decision(key, int(match[1]), found.data)}"
