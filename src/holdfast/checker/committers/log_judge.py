"""Judges states of a destination against the sequential model of its log: what listings and readers find, what is told.

See `holdfast.checker.committers.model` for the model, and `properties.log_order` for the property.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from holdfast.checker.committers.cluster import ClusterState, Told
from holdfast.checker.committers.ledger import Handed, Ledger, ledger_in, read_ledger
from holdfast.checker.committers.model import Brought, Shown, after_decisions, listing_of, taken_over, unfit_decision
from holdfast.checker.committers.output import DESTINATION, HOME, Origin, chosen_name, directory, visible_in
from holdfast.checker.committers.sandbox import Copy, Sandbox, cluster_of
from holdfast.checker.kernel.world import View
from holdfast.commit import CommitContext, layout
from holdfast.commit.committer import Action
from holdfast.commit.ids import FileOwner, file_name
from holdfast.commit.success_file import report_seq
from holdfast.commit.two_phase.snapshot import read_snapshot
from holdfast.errors import HoldfastError
from holdfast.stores.memory.store import MemoryImage

__all__ = ["Judge", "brought_by"]

_SUCCESS = HOME + layout.SUCCESS


def brought_by(sandbox: Sandbox, cluster: ClusterState, ledger: Ledger) -> Mapping[str, Brought]:
    """By job: what it hands over to be committed, as far as anybody has handed over something."""
    setting = sandbox.setting
    found: dict[str, Brought] = {}
    if cluster.job is not None and None not in cluster.accepted:
        files: dict[str, Origin] = {}
        for task, accepted in enumerate(cluster.accepted):
            assert accepted is not None
            attempt, report = accepted
            owner = FileOwner(report.job, task, report.attempt)
            for number in range(setting.files):
                name = chosen_name(task, number) if setting.chosen else file_name(owner, number, ".txt")
                files[f"{directory(attempt, number)}/{name}"] = Origin("main", task, attempt, number)
        found[cluster.job.job] = Brought(who="the driver", mode=cluster.job.mode, files=files, chosen=setting.chosen)
    jobs = {one.name: one for one in setting.others}
    times: dict[str, int] = {}
    for offer in _handed(cluster, ledger):
        number = times[offer.who] = times.get(offer.who, -1) + 1
        owner = FileOwner(offer.job, 0, offer.attempt)
        files = {
            f"{folder}/{chosen_name(0, at) if setting.chosen else file_name(owner, at, '.txt')}": Origin(
                offer.who.partition(" ")[0], 0, number, at
            )
            for at, folder in enumerate(jobs[offer.who].directories)
        }
        found[offer.job] = Brought(who=f"the {offer.who}", mode=offer.mode, files=files, chosen=setting.chosen)
    return found


def _handed(cluster: ClusterState, ledger: Ledger) -> Sequence[Handed]:
    """What jobs other than the driver's have brought, in the order of their ids, which is that of an actor's jobs."""
    return sorted((*cluster.offers, *ledger.handed), key=lambda one: one.job)


def _unlike_recovered(told: Told, ledger: Ledger) -> str:
    """How what recovery says about jobs is unlike their decisions."""
    commits = {one.job: one.commits for one in ledger.decisions}
    for job, action in cast("tuple[tuple[str, str], ...]", told.detail):
        if action == Action.FORWARD.value and not commits.get(job):
            return f"{told.who} reports that it has carried out job {job}, and no decision commits it"
        if action == Action.BACK.value and commits.get(job):
            return f"{told.who} reports that it has taken back job {job}, and a decision commits it"
    return ""


@dataclass(slots=True)
class Judge:
    """Says how a state is unlike the model. States that do not differ in what it looks at are judged once.

    Attributes:
        old: what was there at the start.
        foreign: by key, the etag of what no job may touch: hidden files of others, and what is beside the destination.
    """

    sandbox: Sandbox
    old: Shown = field(init=False)
    foreign: Mapping[str, str] = field(init=False)
    _known: dict[Hashable, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        image = cast("MemoryImage", self.sandbox.first(DESTINATION))
        self.old = visible_in(image)
        self.foreign = {key: one.info.etag for key, one in image.objects.items() if _is_foreign(key)}

    # --- a state ------------------------------------------------------------------------------------------------------
    def state(self, view: View) -> str:
        """How the destination is unlike what its log says, in words; empty if it is not."""
        image, cluster = cast("MemoryImage", view.states[DESTINATION]), cluster_of(view)
        looked_at = tuple((key, one.info.etag) for key, one in image.objects.items() if _is_looked_at(key))
        reported = tuple(None if one is None else one[0] for one in cluster.accepted)
        ledger = ledger_in(view, DESTINATION)
        key = (looked_at, ledger, reported, cluster.offers)
        if key not in self._known:
            words = self._judge(image, ledger, brought_by(self.sandbox, cluster, ledger))
            self._known[key] = words or self._read(self.sandbox.copy(view).context(), ledger, cluster)
        return self._known[key]

    def _judge(self, image: MemoryImage, ledger: Ledger, brought: Mapping[str, Brought]) -> str:
        if ledger.wrong:
            return ledger.wrong
        unfit = unfit_decision(self.old, ledger.decisions, brought)
        if unfit:
            return unfit
        for key, etag in self.foreign.items():
            found = image.objects.get(key)
            if found is None or found.info.etag != etag:
                return f"{key}, which is none of any job's, is {'gone' if found is None else 'changed'}"
        unlike = listing_of(self.old, ledger, brought).unlike(visible_in(image))
        return unlike or _unfit_success(_success_seq(image), ledger)

    def _read(self, ctx: CommitContext, ledger: Ledger, cluster: ClusterState) -> str:
        """How that which is read through Holdfast is unlike the visible decisions."""
        try:
            found = {file.path for file in read_snapshot(ctx).files}
        except HoldfastError as error:
            return f"nobody can read through Holdfast: {error.message}"
        return self.unlike_visible(found, ledger, cluster, len(ledger.visible))

    def unlike_visible(
        self, found: set[str], ledger: Ledger, cluster: ClusterState, marks: int, *, later: bool = False
    ) -> str:
        """How paths that were read are unlike the decisions that were marked visible first.

        Args:
            later: whether more was decided since they were read.
        """
        counted = [one for one in ledger.decisions if one.seq in ledger.visible[:marks]]
        brought = brought_by(self.sandbox, cluster, ledger)
        wanted = dict(after_decisions(self.old, counted, brought))
        for path in taken_over([one for one in ledger.decisions if one not in counted], brought):
            wanted.pop(path, None)
            if later:  # it was perhaps read before that decision was made
                found = found - {path}
        missing, strange = sorted(wanted.keys() - found), sorted(found - wanted.keys())
        what = f"decisions {', '.join(str(one.seq) for one in counted)} are visible" if counted else "none is visible"
        if missing:
            return f"read through Holdfast, {wanted[missing[0]]} is missing, although {what}"
        return f"read through Holdfast, there is {strange[0]}, although {what}" if strange else ""

    # --- a step -------------------------------------------------------------------------------------------------------
    def success_goes_back(self, before: View, after: View) -> str:
        """Whether _SUCCESS goes, or is of an earlier decision than it was."""
        was, now = (_success_seq(cast("MemoryImage", view.states[DESTINATION])) for view in (before, after))
        if was is None or (now is not None and now >= was):
            return ""
        return f"_SUCCESS was that of decision {was}, and is " + ("gone" if now is None else f"that of decision {now}")

    def told(self, view: View, told: Told) -> str:
        """How something that somebody was told, or has read, is unlike the log."""
        ledger, cluster = ledger_in(view, DESTINATION), cluster_of(view)
        if told.outcome == "read":
            since, until, paths = cast("tuple[int, int, tuple[str, ...]]", told.detail)
            words = [
                self.unlike_visible(set(paths), ledger, cluster, marks, later=True) for marks in range(since, until + 1)
            ]
            return f"{told.who}: {words[-1]}" if all(words) else ""
        if told.outcome == "recovered":
            return _unlike_recovered(told, ledger)
        jobs: set[str] = {one.job for one in _handed(cluster, ledger) if one.who == told.who}
        if "driver" in told.who and cluster.job is not None:
            jobs = {cluster.job.job}
        decided = [one for one in ledger.decisions if one.job in jobs]
        newest = max(decided, key=lambda one: one.seq, default=None)
        if told.outcome == "committed":
            if newest is None or not newest.commits:
                return f"{told.who} was told that its job is committed, and no decision says so"
            if told.detail and newest.seq not in ledger.done:
                return f"{told.who} was told that nothing is left to do, and decision {newest.seq} is not done"
        if told.outcome == "aborted" and len(jobs) == 1 and newest is not None and newest.commits:
            return f"{told.who} was told that its job is aborted, and decision {newest.seq} commits it"
        return ""

    # --- the end ------------------------------------------------------------------------------------------------------
    def end(self, view: View) -> str:
        """How it is unlike the model when nobody acts any more and recovery has run."""
        settled, cluster = self.sandbox.settled(view), cluster_of(view)
        told = next((one for one in cluster.told if one.who == "driver"), None)
        if self.sandbox.setting.calm and (told is None or told.outcome != "committed" or not told.detail):
            outcome = "nothing" if told is None else told.outcome
            return f"nothing has gone wrong, nobody was in the way, and the driver was told: {outcome}"
        if settled.troubles:
            return f"recovery does not come to an end: {settled.troubles[-1]}"
        image = settled.stores[DESTINATION].image()
        ledger = read_ledger(ledger_in(view, DESTINATION), image)
        waiting = [one.seq for one in ledger.decisions if one.seq not in ledger.done]
        if waiting:
            return f"after recovery decision {waiting[0]} is not done"
        brought = brought_by(self.sandbox, cluster, ledger)
        words = self._judge(image, ledger, brought) or self._read(settled.context(), ledger, cluster)
        if words:
            return f"after recovery, {words}"
        left = [one for handed in _handed(cluster, ledger) for one in settled.left(handed.job)]
        if left:
            return f"after recovery {left[0]} is left"
        return self._next_job(self.sandbox.again(settled), after_decisions(self.old, ledger.decisions, brought))

    def _next_job(self, copy: Copy, before: Shown) -> str:
        """Whether the destination takes another job."""
        try:
            path = copy.append()
        except HoldfastError as error:
            return f"after recovery no job can be committed any more: {error.message}"
        now = copy.visible()
        return (
            "" if now.keys() == before.keys() | {path} else "after recovery the next job is not added to what is there"
        )


def _is_foreign(key: str) -> bool:
    if key.startswith(HOME):
        path = key[len(HOME) :]
        return layout.is_hidden(path) and not path.startswith((layout.HOME, layout.SUCCESS))
    return layout.HOME not in key


def _is_looked_at(key: str) -> bool:
    return not key.startswith(HOME + layout.JOBS)


def _success_seq(image: MemoryImage) -> int | None:
    """The decision of which _SUCCESS tells; None if there is none."""
    found = image.objects.get(_SUCCESS)
    return None if found is None else report_seq(json.loads(found.data))


def _unfit_success(seq: int | None, ledger: Ledger) -> str:
    """Whether _SUCCESS tells of a decision that is not published, or of an earlier one than the newest that is done."""
    committed = [one.seq for one in ledger.decisions if one.commits]
    done = max((one for one in committed if one in ledger.done), default=0)
    if seq is None:
        return f"decision {done} is done, and there is no _SUCCESS" if done else ""
    if seq > ledger.base and seq not in ledger.visible and seq not in ledger.done:
        return f"_SUCCESS tells of decision {seq}, which is not marked visible"
    if seq > ledger.base and seq not in committed:
        return f"_SUCCESS tells of decision {seq}, which commits nothing"
    return f"decision {done} is done, and _SUCCESS tells of decision {seq}" if seq < done else ""
