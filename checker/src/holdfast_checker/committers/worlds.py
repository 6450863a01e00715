"""Build the simulated worlds in which committers are checked: actors, faults, stores and properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.commit import Committer
from holdfast.stores.base import Capabilities, MultipartLimits, Support
from holdfast_checker.committers import actors
from holdfast_checker.committers.actors import CommitterScene, WorldSettings, run_atomic_job, run_other_jobs
from holdfast_checker.committers.cluster import CLUSTER, Cluster, name_of_attempt_actor
from holdfast_checker.committers.ledger import StoreWithDecisionLedger
from holdfast_checker.committers.output import DESTINATION, HOME, file_bytes, is_call_observed, make_chosen_file_name
from holdfast_checker.committers.properties import RULES
from holdfast_checker.committers.sandbox import NEIGHBOUR, BystanderJob, StoreSandbox
from holdfast_checker.framework.subject import GoalTracker, properties_of_scene
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import Actor, World
from holdfast_checker.simulated.store import StoreResource

_STORE_KINDS = (
    Capabilities(conditional_put=Support.YES, multipart=MultipartLimits(min_part_size_bytes=1)),
    Capabilities(conditional_put=Support.YES, rename=True, rename_dir=True),
)
"""An object store with multipart uploads, and a file system."""


def simulated_store_options(committer: Committer) -> dict[str, Any]:
    """Return options for `MemoryStore` that simulate the first kind of store that the committer supports."""
    can = next(can for can in _STORE_KINDS if all(need.met(can) for need in committer.needs))
    return {"limits": can.multipart, "rename": can.rename}


def build_world(committer: Committer, scene: CommitterScene, tracker: GoalTracker | None = None) -> World:
    """Build the simulated world that a scene declares, with the committer under test.

    Args:
        tracker: records the coverage goals that executions reach.
    """
    stores = {
        name: (StoreWithDecisionLedger if name == DESTINATION else StoreResource)(
            name, time_of=actors.time_of_actor, **options
        )
        for name, options in _options_of_stores(committer, scene).items()
    }
    setting = WorldSettings.for_scene(scene, committer, {name: one.capabilities for name, one in stores.items()})
    for one in scene.others:
        for number in range(one.times):
            stores[DESTINATION].define_atomic_call(
                f"{one.name} {number}", partial(run_atomic_job, setting, one, number)
            )
    bystanders = _fill_stores(setting, scene, stores)
    sandbox = StoreSandbox(setting, stores, bystanders)
    cluster = Cluster(tasks=scene.tasks, attempts=scene.attempts, speculation=scene.speculation)
    return World(
        name=f"{committer.name}/{scene.name}",
        summary=scene.summary,
        actors=tuple(replace(one, mortal=_may_actor_crash(one, scene)) for one in _create_actors(setting, scene)),
        resources={CLUSTER: cluster, **stores},
        properties=properties_of_scene(scene, RULES, sandbox, tracker),
        budgets=scene.budgets,
        observed=is_call_observed,
    )


def _options_of_stores(committer: Committer, scene: CommitterScene) -> dict[str, dict[str, Any]]:
    """Return the options of each store: the destination, and the disks that `staging-*` needs in addition."""
    found = {DESTINATION: {**simulated_store_options(committer), **scene.store}}
    if committer.staging:
        found.update({name: {"limits": None, "rename": True} for name in ("scratch", "shared")})
    return found


def _fill_stores(
    setting: WorldSettings, scene: CommitterScene, stores: Mapping[str, StoreResource]
) -> list[BystanderJob]:
    """Write what exists at the start of a history: running jobs, and files of an earlier job."""
    copy = StoreSandbox(setting, stores).copy_states(
        {name: one.initial_state() for name, one in stores.items()}, 0xE000_0000_0000
    )
    filled = copy.stores
    bystanders = [copy.start_live_job(home) for home in (HOME, NEIGHBOUR)] if scene.bystanders else []
    for number, directory in enumerate(scene.old):
        name = make_chosen_file_name(0, number) if scene.chosen else f"old-{number}.txt"
        filled[DESTINATION].put(f"{HOME}{directory}/{name}", file_bytes("old", 0, 0, number))
    for key in (f"{HOME}_notes.txt", f"{NEIGHBOUR}day=0/notes.txt") if scene.foreign else ():
        filled[DESTINATION].put(key, file_bytes("foreign", 0, 0, 0))
    for name, store in filled.items():
        stores[name].set_initial_contents(store.take_snapshot())
    return bystanders


def _may_actor_crash(actor: Actor, scene: CommitterScene) -> bool:
    if not actor.mortal or actor.name in ("network", "user", "reader"):
        return False
    return not scene.mortal or actor.name.partition(" ")[0] in scene.mortal


def _create_actors(setting: WorldSettings, scene: CommitterScene) -> list[Actor]:
    found = [Actor("driver", partial(actors.run_driver, setting))]
    found += [
        Actor(name_of_attempt_actor(task, attempt), partial(actors.run_attempt_once_started, setting, task, attempt))
        for task in range(scene.tasks)
        for attempt in range(scene.attempts)
    ]
    if scene.second_driver:
        found.append(Actor("second driver", partial(actors.run_second_driver, setting)))
    if scene.recovery:
        found.append(Actor("recovery", partial(actors.run_recovery, setting)))
    if scene.recovery > 1:
        found.append(Actor("second recovery", partial(actors.run_recovery, setting)))
    if scene.reader:
        found.append(Actor("reader", partial(actors.run_reader, setting)))
    found += [Actor(one.name, partial(run_other_jobs, setting, one), mortal=not one.at_once) for one in scene.others]
    if scene.budgets.get(Fault.PARTITION):
        found.append(Actor("network", actors.cut_off_executor))
    if scene.cancel:
        found.append(Actor("user", actors.cancel_job))
    return found
