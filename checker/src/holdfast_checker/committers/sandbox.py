"""Run recovery and further steps on copies of a world's stores, for properties of the end of an execution.

The states of the execution itself do not change.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from holdfast.commit import CommitContext, JobOutcome, JobRecord, Place, SaveMode, TaskCommit
from holdfast.commit.context import StagingPlaces
from holdfast.commit.recovery import recover
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.errors import HoldfastError
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import iter_objects, iter_uploads
from holdfast_checker.committers.actors import FINALLY_S, QUIET_S, WorldSettings
from holdfast_checker.committers.cluster import CLUSTER, ClusterState
from holdfast_checker.committers.output import DESTINATION, HOME, FileOrigin, file_bytes, visible_in_image
from holdfast_checker.framework.subject import VerdictCache
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import RestorableStore, StoreSnapshot
from holdfast_checker.simulated.store import StoreResource
from holdfast_checker.simulated.time import CountingIds, ManualClock

NEIGHBOUR = "out put/dataset10/"
"""A destination whose name begins with the name of the job's destination (C7)."""

_RECOVERIES = 3
"""Maximum number of recoveries. The first may postpone work; the last must find nothing to do."""


@dataclass(frozen=True, slots=True)
class BystanderJob:
    """A running job on some destination that has committed one task. No other job may touch it (C7)."""

    home: str
    job: JobRecord
    commit: TaskCommit


@dataclass(frozen=True, slots=True)
class CopiedStores:
    """Copies of all stores of a world in one state, on which a property can run recovery, commits and aborts.

    Attributes:
        recovered: what recovery did with each job and why, and the errors of recoveries that failed.
        troubles: how recoveries failed, and what they could not repair.
    """

    stores: Mapping[str, RestorableStore]
    setting: WorldSettings
    ids: CountingIds
    recovered: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def context(self, home: str = HOME) -> CommitContext:
        """Build the `CommitContext` of a process that starts after the end of the execution, on the copied stores."""
        places = {
            name: Place(store=self.stores[name], prefix="later/" if name == "scratch" else "", url=f"memory://{name}")
            for name in ("scratch", "shared")
            if name in self.stores
        }
        return CommitContext(
            store=self.stores[DESTINATION],
            prefix=home,
            url=f"memory://{DESTINATION}/{home}",
            staging=StagingPlaces(scratch=places["scratch"], shared=places["shared"]) if places else None,
            settings=self.setting.settings,
            environment=Environment(clock=ManualClock(FINALLY_S), ids=self.ids, runner=SerialRunner()),
        )

    def contents_key(self) -> Hashable:
        """Return a hashable key of the contents of all copied stores: equal for equal contents."""
        return tuple(store.take_snapshot().key for store in self.stores.values())

    def visible_files(self, home: str = HOME) -> Mapping[str, FileOrigin]:
        """Return the files, by path, that a plain listing of the copied destination shows."""
        return visible_in_image(self.stores[DESTINATION].take_snapshot(), home)

    def leftover_keys(self, job: str) -> list[str]:
        """List the pending uploads and hidden files whose keys contain a job's id."""
        found: list[str] = []
        for name, store in self.stores.items():
            if store.capabilities.multipart is not None:
                found += [f"pending upload {one.key}" for one in iter_uploads(store, "") if job in one.key]
            hidden = (one.key for one in iter_objects(store, "") if job in one.key)
            found += [key for key in hidden if name != DESTINATION or "/_" in key.replace("/_holdfast/log/", "")]
        return found

    def recover(self) -> bool:
        """Run recovery, like `holdfast recover`, once on the copies; return whether it changed anything.

        Only the committer under test is asked for leftovers, apart from uploads that no committer has recorded.
        """
        before = self.contents_key()
        try:
            report = recover(self.context(), older_than_s=QUIET_S, committers=(self.setting.committer,))
        except HoldfastError as error:
            self.recovered.append(str(error))
            self.troubles.append(str(error))
        else:
            self.recovered.extend(f"{job.action.value}: {job.reason}" for job in report.jobs if not job.is_alive)
            troubles = [*report.damaged.values(), *report.pending.values()]
            self.recovered.extend(troubles)
            self.troubles.extend(troubles)
        return self.contents_key() != before

    def commit_or_abort_job(self, job: JobRecord, reports: Sequence[TaskCommit] | None) -> JobOutcome | HoldfastError:
        """Commit a job on the copies, or abort it if `reports` is None, and return the outcome or the raised error."""
        committer, ctx = self.setting.committer, self.context()
        try:
            if reports is None:
                return committer.abort_job(ctx, job)
            return committer.commit_job(ctx, job, reports, len(reports))
        except HoldfastError as error:
            return error

    def append_file(self) -> str:
        """Run and commit a further job on the copies, which appends one file; return the path of this file.

        Raises:
            HoldfastError: the job cannot be committed.
        """
        job, commit, path = self._set_up_job_and_commit_task(HOME, "next")
        self.setting.committer.commit_job(self.context(), job, [commit], 1)
        return path

    def start_live_job(self, home: str) -> BystanderJob:
        """Start a job on a destination of the copied stores, commit one task, and leave the job running."""
        job, commit, _path = self._set_up_job_and_commit_task(home, "bystander")
        return BystanderJob(home, job, commit)

    def _set_up_job_and_commit_task(self, home: str, name: str) -> tuple[JobRecord, TaskCommit, str]:
        committer, ctx = self.setting.committer, self.context(home)
        mode = self.setting.mode
        if SaveMode.APPEND in committer.modes and mode in (SaveMode.FAIL, SaveMode.IGNORE):
            mode = SaveMode.APPEND
        job = committer.setup_job(ctx, mode if name == "bystander" else SaveMode.APPEND, {})
        assert job is not None, "no such job skips"
        with committer.setup_task(ctx, job, 0) as running:
            path = f"day=9/{running.file_name('.txt')}"
            sink = running.open(path)
            sink.write(file_bytes(name, 0, 0, 0))
            sink.close()
            return job, running.commit(), path


class StoreSandbox(VerdictCache):
    """Creates copies of a world's stores for properties, and caches the result of recovery for equal contents."""

    def __init__(
        self, setting: WorldSettings, resources: Mapping[str, StoreResource], bystanders: Sequence[BystanderJob] = ()
    ) -> None:
        self.setting = setting
        self.bystanders = tuple(bystanders)
        self._resources = resources
        self._settled: dict[Hashable, CopiedStores] = {}

    @property
    def keeps_log(self) -> bool:
        """Check whether the committer records its decisions in a log."""
        return self.setting.committer.name == TWO_PHASE.name

    @cached_property
    def old(self) -> Mapping[str, FileOrigin]:
        """The visible files of the destination at the start of every execution."""
        return visible_in_image(cast("StoreSnapshot", self.initial_contents(DESTINATION)))

    def initial_contents(self, name: str) -> object:
        """Return the contents of a store at the start of every execution."""
        return self._resources[name].initial_state()

    def copy(self, view: View) -> CopiedStores:
        """Copy all stores of a world in one of its states."""
        return self.copy_states({name: view.states[name] for name in self._resources})

    def copy_states(self, states: Mapping[str, object], first_token: int = 0xF000_0000_0000) -> CopiedStores:
        """Create copies of stores from their states, by name; new ids on the copies start at `first_token`."""
        clock, ids = ManualClock(FINALLY_S), CountingIds(first_token)
        stores = {name: one.create_copy(states[name], clock, ids) for name, one in self._resources.items()}
        return CopiedStores(stores, self.setting, ids)

    def duplicate_copied_stores(self, settled: CopiedStores) -> CopiedStores:
        """Duplicate copies of stores, so that further steps do not change the given ones."""
        return self.copy_states(
            {name: store.take_snapshot() for name, store in settled.stores.items()}, settled.ids.last
        )

    def copy_after_recovery(self, view: View) -> CopiedStores:
        """Copy the stores of a state, run recovery until it finds nothing to do, and return the result.

        The result is cached: call `duplicate_copied_stores` before changing it."""
        key = tuple(self._resources[name].state_key(view.states[name]) for name in self._resources)
        found = self._settled.get(key)
        if found is None:
            found = self._settled[key] = self.copy(view)
            for _ in range(_RECOVERIES):
                if not found.recover():
                    break
        return found


def cluster_state(view: View) -> ClusterState:
    """Return the state of the simulated Spark cluster (drivers, attempts, outcomes) in a state of the world."""
    found = view.states[CLUSTER]
    assert isinstance(found, ClusterState)
    return found
