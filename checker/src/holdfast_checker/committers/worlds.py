"""Build worlds in which committers are checked: who acts, what can go wrong, on which kind of store."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.commit import CommitSettings, Committer, SaveMode, layout
from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.stores.base import Capabilities, MultipartLimits, Support
from holdfast_checker.committers import actors
from holdfast_checker.committers.actors import OtherJob, Setting, other_job, stroke
from holdfast_checker.committers.cluster import CLUSTER, Cluster, Order, attempt_actor
from holdfast_checker.committers.ledger import LogNotes
from holdfast_checker.committers.output import DESTINATION, HOME, chosen_name, content, is_observed
from holdfast_checker.committers.properties import PROPERTIES
from holdfast_checker.committers.sandbox import NEIGHBOUR, Bystander, Sandbox, start_live_jobs
from holdfast_checker.framework import subject
from holdfast_checker.framework.subject import GoalTracker, judged
from holdfast_checker.kernel.calls import Call, Fault
from holdfast_checker.kernel.world import Actor, Past, World
from holdfast_checker.simulated.store import StoreResource

_STORE_KINDS = (
    Capabilities(conditional_put=Support.YES, multipart=MultipartLimits(min_part_size_bytes=1)),
    Capabilities(conditional_put=Support.YES, rename=True, rename_dir=True),
)
"""An object store with multipart uploads, and a file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(subject.Scene):
    """A short description of a world; `build_world` builds the world.

    Attributes:
        store: options of `MemoryStore` for the destination, in addition to those for the committer.
        bystanders: whether other jobs of the same committer are running, in the destination and beside it.
        old: the directories in which a file of an earlier job exists at the start.
        foreign: whether files exist that no job may touch: a hidden file, and a file beside the destination.
        chosen: whether jobs choose their file names themselves; if so, all jobs choose the same names.
        parts: number of parts of each uploaded file.
        batch: number of the micro-batch that the job writes; None if the job belongs to no stream.
        threads: number of calls that a process makes concurrently, if it has enough work.
        piecemeal: whether listings take several steps, as on a file system.
        retention: number of decisions that the log keeps; None for the default.
        forgetful: whether processes forget what can no longer matter to them: see `state_abstraction`.
        order: when attempts commit.
        speculation: whether a second attempt may start while the first one runs.
        cancel, second_driver, recovery, reader: whether these actors exist, or how many of them exist.
        others: other jobs on the destination.
        mortal: the actors that may crash, by the first word of their names; empty for all actors.
    """

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
    others: tuple[OtherJob, ...] = ()
    mortal: tuple[str, ...] = ()
    store: Mapping[str, Any] = field(default_factory=dict)
    bystanders: bool = False
    old: tuple[str, ...] = ()
    foreign: bool = False
    chosen: bool = False
    parts: int = 1
    batch: int | None = None
    retention: int | None = None
    threads: int = 1
    piecemeal: bool = False
    forgetful: bool = False
    reached: tuple[str, ...] = ()


def store_options(committer: Committer) -> dict[str, Any]:
    """Return the options that make a `MemoryStore` the first kind of store that meets the committer's needs."""
    can = next(can for can in _STORE_KINDS if all(need.met(can) for need in committer.needs))
    return {"limits": can.multipart, "rename": can.rename}


def build_world(committer: Committer, scene: Scene, tracker: GoalTracker | None = None) -> World:
    """Build the world of a scene for a committer.

    Args:
        tracker: records the goals that histories reach.
    """
    stores = {
        name: StoreResource(name, time_of=actors.time_of, notes=LogNotes() if name == DESTINATION else None, **options)
        for name, options in _stores(committer, scene).items()
    }
    setting = setting_of(committer, scene, stores)
    for one in scene.others:
        for number in range(one.times):
            stores[DESTINATION].teach(f"{one.name} {number}", stroke(setting, one, number))
    bystanders = _fill(setting, scene, stores)
    sandbox = Sandbox(setting, stores, bystanders)
    properties = [make(sandbox) for make in judged(scene, PROPERTIES)]
    cluster = Cluster(tasks=scene.tasks, attempts=scene.attempts, order=scene.order, speculation=scene.speculation)
    return World(
        name=f"{committer.name}/{scene.name}",
        summary=scene.summary,
        actors=tuple(replace(one, mortal=_is_mortal(one, scene)) for one in _actors(setting, scene)),
        resources={CLUSTER: cluster, **stores},
        properties=tuple(properties if tracker is None else [*properties, tracker.watching(lambda view: sandbox)]),
        budgets=scene.budgets,
        observed=is_observed,
        **({"remembers": remembers} if scene.forgetful else {}),
    )


def _mode(committer: Committer, scene: Scene) -> SaveMode:
    """Return the scene's mode, or overwrite by partitions if the committer supports no other overwrite."""
    overwrites = scene.mode is SaveMode.OVERWRITE and scene.mode not in committer.modes
    return SaveMode.OVERWRITE_PARTITIONS if overwrites else scene.mode


def setting_of(committer: Committer, scene: Scene, stores: Mapping[str, StoreResource]) -> Setting:
    """Return what the actors of a scene know about their world."""
    return Setting(
        committer=committer,
        capabilities={name: one.capabilities for name, one in stores.items()},
        tasks=scene.tasks,
        attempts=scene.attempts,
        files=scene.files,
        order=scene.order,
        mode=_mode(committer, scene),
        chosen=scene.chosen,
        batch=scene.batch,
        others=scene.others,
        threads=scene.threads,
        piecemeal=scene.piecemeal,
        calm=_is_calm(scene),
        settings=_settings(scene),
    )


def _is_calm(scene: Scene) -> bool:
    refuses = scene.mode in (SaveMode.FAIL, SaveMode.IGNORE) or (scene.chosen and (scene.others or scene.old))
    fences = scene.retention is not None  # a short log fences slow drivers
    return not (scene.budgets or scene.cancel or refuses or fences or scene.batch is not None)


def _settings(scene: Scene) -> CommitSettings:
    found = actors.SETTINGS
    if scene.parts > 1:
        found = replace(found, part_size_bytes=-(-len(content("main", 0, 0, 0)) // scene.parts))
    return found if scene.retention is None else replace(found, log_retention_entries=scene.retention)


def _stores(committer: Committer, scene: Scene) -> dict[str, dict[str, Any]]:
    """Return the options of each store: the destination, and the disks that `staging-*` needs in addition."""
    found = {DESTINATION: {**store_options(committer), **scene.store}}
    if committer.staging:
        found.update({name: {"limits": None, "rename": True} for name in ("scratch", "shared")})
    return found


def _fill(setting: Setting, scene: Scene, stores: Mapping[str, StoreResource]) -> list[Bystander]:
    """Write what exists at the start of a history: running jobs, and files of an earlier job."""
    copy = Sandbox(setting, stores).run_on({name: one.initial() for name, one in stores.items()}, 0xE000_0000_0000)
    filled = copy.stores
    bystanders = start_live_jobs(copy) if scene.bystanders else []
    for number, directory in enumerate(scene.old):
        name = chosen_name(0, number) if scene.chosen else f"old-{number}.txt"
        filled[DESTINATION].put(f"{HOME}{directory}/{name}", content("old", 0, 0, number))
    for key in (f"{HOME}_notes.txt", f"{NEIGHBOUR}day=0/notes.txt") if scene.foreign else ():
        filled[DESTINATION].put(key, content("foreign", 0, 0, 0))
    for name, store in filled.items():
        stores[name].fill(store.image())
    return bystanders


def _is_mortal(actor: Actor, scene: Scene) -> bool:
    if not actor.mortal or actor.name in ("network", "user", "reader"):
        return False
    return not scene.mortal or actor.name.partition(" ")[0] in scene.mortal


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
    found += [Actor(one.name, other_job(setting, one), mortal=not one.at_once) for one in scene.others]
    if scene.budgets.get(Fault.PARTITION):
        found.append(Actor("network", actors.network))
    if scene.cancel:
        found.append(Actor("user", actors.cancel))
    return found


class _Stage(enum.IntEnum):
    """How far a process that ends a job has come; its next call says in which stage it is."""

    OTHER = 0
    PUBLISH = 1
    MARK = 2
    REPORT = 3
    LOOK = 4
    SWEEP = 5
    EMPTY = 6
    DONE = 7


def _stage(call: Call) -> _Stage:
    if call.resource != DESTINATION:
        return _Stage.DONE if call.operation == "tell" else _Stage.OTHER
    operation, key = call.operation, _key(call)
    if operation in ("list_uploads_page", "abort_upload"):
        return _Stage.SWEEP
    if operation == "list_page":
        return _Stage.LOOK if key.endswith(layout.JOBS) else _Stage.OTHER
    if operation == "delete_many":
        return _Stage.EMPTY if layout.JOBS in key else _Stage.OTHER
    if key.endswith(f"/{layout.SUCCESS}"):
        return _Stage.REPORT
    if layout.LOG in key and operation in ("put", "get"):  # a check for a mark affects the next calls
        return _Stage.DONE if key.endswith(".done") else _Stage.MARK if key.endswith(".visible") else _Stage.OTHER
    publishes = operation in ("complete_upload", "rename") or (operation == "head" and layout.HOME not in key)
    return _Stage.PUBLISH if publishes else _Stage.OTHER


def _key(call: Call) -> str:
    first = call.args[0]
    if isinstance(first, tuple):
        first = first[0]
    return first if isinstance(first, str) else getattr(first, "key", "")


def remembers(call: Call, past: Sequence[Past]) -> Hashable | None:
    """Return the part of the past that can still matter: see `World.remembers`."""
    now = _stage(call)
    if now <= _Stage.PUBLISH or (now is _Stage.MARK and call.operation != "put"):
        return None
    if now is _Stage.DONE and call.operation not in ("put", "tell"):
        return None
    if now in (_Stage.SWEEP, _Stage.EMPTY):
        return None
    return tuple(found for one in past if (found := _kept(one, now)) is not None)


def _kept(one: Past, now: _Stage) -> Hashable | None:
    """Return the part of an earlier call, and of its reply, that can still matter; None if no part can."""
    then = _stage(one.call)
    if not _is_over(then, now) or _ends_the_step(one, then):
        return one.mark
    return _key(one.call) if then is _Stage.DONE else None


def _ends_the_step(one: Past, then: _Stage) -> bool:
    """Check whether this call ended the work on a decision, after which recovery continued with other jobs."""
    error = one.reply.error
    retried = then in (_Stage.PUBLISH, _Stage.MARK)
    return isinstance(error, UnavailableError) or (isinstance(error, OutcomeUnknownError) and not retried)


def _is_over(then: _Stage, now: _Stage) -> bool:
    return _Stage.OTHER < then < now
