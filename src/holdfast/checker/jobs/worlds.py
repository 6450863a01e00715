"""Worlds in which committers are checked: who acts, what may go wrong, on which kind of store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.checker.jobs import actors
from holdfast.checker.jobs.actors import Setting
from holdfast.checker.jobs.cluster import CLUSTER, Cluster, Order, attempt_actor
from holdfast.checker.jobs.output import DESTINATION, is_observed
from holdfast.checker.kernel.calls import Fault, Resource
from holdfast.checker.kernel.process import Actor
from holdfast.checker.kernel.world import Property, World
from holdfast.checker.simulated_store import StoreResource
from holdfast.commit import Committer, SaveMode
from holdfast.stores.base import MultipartLimits
from holdfast.stores.memory import MemoryStore

__all__ = ["Scene", "build_world", "store_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A world in a few words; `build_world` makes it one.

    Attributes:
        store: options of `MemoryStore` for the destination, on top of what the committer is made for.
        fill: what is there when the history begins.
        order: when attempts commit.
        speculation: whether a second attempt may start while the first one runs.
        cancel, second_driver, recovery, reader, other_job: whether these actors are there.
        mortal: who may crash, by the first word of the name; empty for everybody.
    """

    name: str
    summary: str
    tasks: int = 2
    attempts: int = 2
    files: int = 2
    mode: SaveMode = SaveMode.APPEND
    order: Order = Order.REPORT
    speculation: bool = True
    cancel: bool = False
    second_driver: bool = False
    recovery: int = 0
    reader: bool = False
    other_job: bool = False
    mortal: tuple[str, ...] = ()
    budgets: Mapping[Fault, int] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)
    fill: Callable[[MemoryStore], None] = lambda store: None


def store_options(committer: Committer) -> dict[str, Any]:
    """A store of the kind that the committer is made for: one that renames only where it needs that."""
    renames = any("rename" in need.what for need in committer.needs)
    uploads = not renames or committer.name == "two_phase"
    return {
        "limits": MultipartLimits(min_part_size_bytes=1) if uploads else None,
        "rename": renames and committer.name != "two_phase",
    }


def build_world(committer: Committer, scene: Scene, properties: tuple[Property, ...]) -> World:
    """The world of a scene with a committer."""
    resources: dict[str, Resource] = {
        CLUSTER: Cluster(tasks=scene.tasks, attempts=scene.attempts, order=scene.order, speculation=scene.speculation),
        DESTINATION: StoreResource(
            DESTINATION,
            fill=scene.fill,
            time_of=actors.time_of,
            **{**store_options(committer), **scene.store},
        ),
    }
    if committer.staging:
        for name in ("scratch", "shared"):
            resources[name] = StoreResource(name, time_of=actors.time_of, limits=None, rename=True)
    setting = Setting(
        committer=committer,
        capabilities={name: one.capabilities for name, one in resources.items() if isinstance(one, StoreResource)},
        tasks=scene.tasks,
        attempts=scene.attempts,
        files=scene.files,
        order=scene.order,
        mode=scene.mode,
    )
    return World(
        name=f"{committer.name}/{scene.name}",
        summary=scene.summary,
        actors=tuple(replace(one, mortal=_is_mortal(one.name, scene)) for one in _actors(setting, scene)),
        resources=resources,
        properties=properties,
        budgets=scene.budgets,
        observed=is_observed,
    )


def _is_mortal(name: str, scene: Scene) -> bool:
    if name in ("network", "user", "reader"):
        return False
    return not scene.mortal or name.partition(" ")[0] in scene.mortal


def _actors(setting: Setting, scene: Scene) -> list[Actor]:
    found = [Actor("driver", actors.driver(setting))]
    found += [
        Actor(attempt_actor(task, attempt), actors.attempt_program(setting, task, attempt))
        for task in range(scene.tasks)
        for attempt in range(scene.attempts)
    ]
    if scene.second_driver:
        found.append(Actor("second driver", actors.second_driver(setting)))
    if scene.recovery:
        found.append(Actor("recovery", actors.recovery(setting)))
    if scene.recovery > 1:
        found.append(Actor("second recovery", actors.recovery(setting)))
    if scene.reader:
        found.append(Actor("reader", actors.reader(setting)))
    if scene.other_job:
        found.append(Actor("other job", actors.other_job(setting)))
    if scene.budgets.get(Fault.PARTITION):
        found.append(Actor("network", actors.network))
    if scene.cancel:
        found.append(Actor("user", actors.cancel))
    return found
