"""Build the simulated worlds in which the namespace is checked: initial contents, actors, faults and properties."""

from __future__ import annotations

from functools import partial

from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import Configuration, create_namespace
from holdfast.namespace.namespace import Namespace
from holdfast.runtime import Environment, SeededRandom, SerialRunner
from holdfast_checker.framework.subject import GoalTracker, Subject, properties_of_scene
from holdfast_checker.histories.history import HISTORY, Recorder
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import Actor, World
from holdfast_checker.namespace.actors import (
    BLOBS,
    NamespaceSetting,
    let_leases_expire,
    run_client,
    run_garbage_collector,
    run_sweeper,
)
from holdfast_checker.namespace.calls import NamespaceCallExecutor
from holdfast_checker.namespace.contents import tree_of_records
from holdfast_checker.namespace.narration import NARRATOR
from holdfast_checker.namespace.properties import GOALS, RULES
from holdfast_checker.namespace.requests import WIRE, WireResource, publishing_actors, request_actors
from holdfast_checker.namespace.scenes import LARGEST, REPEATED, SCENES, SMALL, NamespaceScene
from holdfast_checker.simulated.database import DATABASE, DatabaseCopy, RecordMap
from holdfast_checker.simulated.locks import LockableDatabase, WaitableDatabase
from holdfast_checker.simulated.memory import RestorableStore, StoreSnapshot
from holdfast_checker.simulated.server import CLOCK, SharedClockResource, numbered_name, server_actors
from holdfast_checker.simulated.store import StoreResource
from holdfast_checker.simulated.time import CountingIds, ManualClock

_START_S = 1_800_000_000.0
_OLD_S = 10 * 24 * 3600.0
"""The age of what is in the object store when the history begins, seconds: a sweep may delete it."""

_JUMP_S = 30 * 60.0
"""How much time passes at once: every lease and every mark expires."""


def build_world(scene: NamespaceScene, tracker: GoalTracker | None = None) -> World:
    """Build the simulated world of a namespace that a scene declares.

    Args:
        tracker: records the coverage goals that executions reach.
    """
    resource = StoreResource(BLOBS, time_of=partial(_object_store_time_s, scene))
    setting, image = _run_earlier_calls(scene, resource)
    resource.set_initial_contents(image)
    paths = tuple("/" + "/".join(path) for path, _node in tree_of_records(setting.start, setting.blobs).nodes)
    is_mortal = not scene.locks  # the death of a process would release its locks
    actors = publishing_actors(setting) if scene.through else []
    for who, script in scene.scripts.items():
        knows = paths if scene.knows is None else scene.knows.get(who, ())
        if who in scene.through:
            actors += request_actors(setting, who, script, knows)
        else:
            actors.append(Actor(who, partial(run_client, setting, script, knows), is_mortal))
    for number, rounds in enumerate(scene.collectors):
        actors.append(
            Actor(
                numbered_name("collector", number),
                partial(run_garbage_collector, setting, rounds, scene.elects),
                is_mortal,
            )
        )
    for number in range(scene.sweepers):
        actors.append(Actor(numbered_name("sweeper", number), partial(run_sweeper, setting), is_mortal))
    if scene.later:
        actors.append(Actor("time", let_leases_expire, mortal=False))
    actors += server_actors(scene.budgets, scene.crashes, marks=True)
    database = LockableDatabase if scene.locks else WaitableDatabase
    return World(
        name=f"namespace/{scene.name}",
        summary=scene.summary,
        actors=tuple(actors),
        resources={
            DATABASE: database(setting.start.as_dict(), crashes=scene.crashes),
            BLOBS: resource,
            CLOCK: SharedClockResource(_START_S, _JUMP_S),
            HISTORY: Recorder(),
            **({WIRE: WireResource()} if scene.through else {}),
        },
        properties=properties_of_scene(scene, RULES, setting, tracker),
        budgets={**scene.budgets, **({Fault.CLOCK: 1} if scene.later else {})},
        observed=lambda call: False,  # histories and ends are judged, and keep what was wrong with them
    )


def _object_store_time_s(scene: NamespaceScene, actor: str) -> float:
    """Return the time of the object store when an actor writes to it: for a sweep, what was there before is old."""
    return _START_S if scene.is_slow and actor in scene.scripts else _START_S + _OLD_S


def _run_earlier_calls(scene: NamespaceScene, resource: StoreResource) -> tuple[NamespaceSetting, StoreSnapshot]:
    """Run the calls that precede every history on a real namespace; return the actors' setting and the blobs."""
    configuration = Configuration(
        name="world",
        data="memory://world",
        superuser="root",
        inline_bytes=1024 if scene.inline else 0,
        safety_age_s=24 * 3600,
    )
    clock, ids = ManualClock(_START_S), CountingIds()
    store = RestorableStore(clock=clock, ids=ids)
    database = DatabaseCopy(RecordMap())
    create_namespace(database, configuration, int(_START_S * 1000))
    environment = Environment(clock=clock, ids=ids, runner=SerialRunner(), chance=SeededRandom(1))
    namespace = Namespace(database, BlobStore(store, "", ids), configuration, environment, user="root")
    calls = NamespaceCallExecutor(namespace, clock, {})
    for name, *args in scene.start:
        calls.execute_by_name(name, *args)
    namespace.collect()
    image = store.take_snapshot()
    setting = NamespaceSetting(
        scene=scene,
        start=database.records,
        start_s=_START_S,
        configuration=configuration,
        capabilities=resource.capabilities,
        blobs={key: one.data for key, one in image.objects.items()},
        uploads=calls.uploads,
    )
    return setting, image


NAMESPACE = Subject(
    name="namespace",
    title="namespace: its operations, writers, leaders and collectors, on a database whose calls are steps",
    build=build_world,
    narrate=lambda world: NARRATOR,
    rules=RULES,
    goals=GOALS,
    scenes=SCENES,
    small=SMALL,
    others={**LARGEST, **REPEATED},
)
