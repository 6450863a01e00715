"""The reduction leaves nothing out in worlds in which calls of the cluster and the store interact in rare ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from holdfast.errors import HoldfastError
from holdfast.runtime import SystemClock, SystemIds
from holdfast.stores.base import Change, Complete, Create, Delete, MultipartLimits, Put, Require, RequireEmpty
from holdfast_checker.committers.cluster import CLUSTER, Cluster
from holdfast_checker.kernel.calls import Call, Fault
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.kernel.world import Actor, Port, World
from holdfast_checker.simulated.store import StoreResource
from holdfast_checker.simulated.store_handle import SimulatedStore
from tests.checker.kernel.toys import with_ends

Program = Callable[[Port, SimulatedStore], object]
JOB: Any = "job"  # the cluster passes it on without inspecting it
REPORT: Any = "report"


def _world(programs: Mapping[str, Program], budgets: Mapping[Fault, int], **options: Any) -> World:
    store = StoreResource("store", time_of=lambda actor: 0.0, limits=MultipartLimits(min_part_size_bytes=1), **options)

    def program(run: Program) -> Callable[[Port], object]:
        return lambda port: run(port, SimulatedStore(port, "store", store.capabilities))

    filled = store.create_copy(store.initial_state(), SystemClock(), SystemIds())
    filled.put("k", b"x")
    store.set_initial_contents(filled.take_snapshot())
    return World(
        name="rare",
        summary="calls that meet in rare ways",
        actors=tuple(Actor(name, program(run)) for name, run in programs.items()),
        resources={CLUSTER: Cluster(tasks=1, attempts=2, speculation=True), "store": store},
        properties=(),
        budgets=budgets,
        observed=lambda call: False,
    )


def _ends(world: World, *, reduce: bool) -> set[Any]:
    watched, seen = with_ends(world)
    assert explore_world(watched, reduce=reduce).complete
    return seen


def _ask(port: Port, operation: str, *args: object) -> object:
    return port.call(Call(CLUSTER, operation, args))


def _attempt(number: int, *keys: str) -> Program:
    def run(port: Port, store: SimulatedStore) -> None:
        _ask(port, "begin", 0, number)
        if _ask(port, "may_commit", 0, number):
            for key in keys:
                store.put(key, b"x")
            _ask(port, "report", 0, number, REPORT)

    return run


def _start(port: Port, store: SimulatedStore) -> None:
    _ask(port, "post_job", JOB)
    _ask(port, "await_tasks")


def _tells_what_it_is_told(name: str, key: str) -> Program:
    def run(port: Port, store: SimulatedStore) -> None:
        try:
            store.delete(key)
        except HoldfastError:
            store.put(name, b"does not know")

    return run


def _upload_then_abort(port: Port, store: SimulatedStore) -> None:
    store.abort_upload("a/b", store.create_upload("a/b"))


def _put_above(port: Port, store: SimulatedStore) -> None:
    try:
        store.put("a", b"x")
    except HoldfastError:
        store.put("refused", b"x")


def _put_in_directory(port: Port, store: SimulatedStore) -> None:
    store.put("d/e", b"c")


def _commit(port: Port, store: SimulatedStore) -> None:
    _start(port, store)
    if store.list_page("marks/").objects:
        store.put("driver saw", b"x")


def _write(port: Port, store: SimulatedStore) -> None:
    _ask(port, "begin", 0, 0)
    _ask(port, "report", 0, 0, REPORT)
    store.put("seen by recovery", b"x")
    store.put("marks/0", b"x")


def _recover(port: Port, store: SimulatedStore) -> None:
    _ask(port, "take_for_dead")
    try:
        store.get("seen by recovery")
    except HoldfastError:
        store.put("recovery came first", b"x")


def _transaction(name: str, *changes: Change) -> Program:
    def run(port: Port, store: SimulatedStore) -> None:
        try:
            store.apply(changes)
        except HoldfastError as error:
            store.put(name, type(error).__name__.encode())

    return run


def _complete_in_a_transaction(port: Port, store: SimulatedStore) -> None:
    upload_id = store.create_upload("a")
    part = store.upload_part("a", upload_id, 1, b"x")
    try:
        store.apply([Complete("a", upload_id, (part,)), Require("k"), RequireEmpty("d/")])
    except HoldfastError as error:
        store.put("refused", type(error).__name__.encode())


def _abort_what_is_listed(port: Port, store: SimulatedStore) -> None:
    for upload in store.list_uploads_page("").uploads:
        store.abort_upload(upload.key, upload.upload_id)


FIRST, SECOND = "task 0 attempt 0", "task 0 attempt 1"

WORLDS = {
    "who may commit dies and another has asked": _world(
        {"driver": _start, FIRST: _attempt(0, "x", "y"), SECOND: _attempt(1, "z")}, {Fault.CRASH: 1}
    ),
    "two delete the same and one is not told": _world(
        {"a": _tells_what_it_is_told("a", "k"), "b": _tells_what_it_is_told("b", "k")},
        {Fault.LOST_REPLY: 1},
    ),
    "a file where an upload makes a directory": _world({"a": _upload_then_abort, "b": _put_above}, {}, rename=True),
    "recovery waits for a driver that is in nobody's way": _world(
        {"driver": _commit, FIRST: _write, "recovery": _recover}, {Fault.CRASH: 1}
    ),
    "transactions with conditions on what the other changes": _world(
        {
            "a": _transaction("a is told", Put("x", b"a", Create()), Delete("k")),
            "b": _transaction("b is told", Require("k"), RequireEmpty("d/"), Put("x/y", b"b")),
            "c": _put_in_directory,
        },
        {Fault.LOST_REPLY: 1},
        transactions=True,
    ),
    "a transaction completes an upload that another actor aborts": _world(
        {"a": _complete_in_a_transaction, "b": _abort_what_is_listed, "c": _put_in_directory},
        {Fault.FAILURE: 1},
        transactions=True,
    ),
    "transactions on a file system": _world(
        {
            "a": _transaction("a is told", Put("d", b"a", Create())),
            "b": _transaction("b is told", Put("d/e", b"b"), Delete("k")),
            "c": _upload_then_abort,
        },
        {},
        rename=True,
        transactions=True,
    ),
}


def test_every_way_of_a_stale_listing_has_a_label_of_its_own() -> None:
    """Two uploads have the same key; a history replays by its labels."""
    store = StoreResource("store", time_of=lambda actor: 0.0)
    state = store.initial_state()
    for token in ("one", "two"):
        state = store.alternatives(state, Call("store", "create_upload", ("a", None, token)), "")[0].state  # type: ignore[assignment]  # an image
    ways = store.alternatives(state, Call("store", "list_uploads_page", ("", None)), "")
    labels = [way.label for way in ways if way.fault is Fault.STALE_LISTING]
    assert labels == ["does not show a", "does not show a, upload 1"]


@pytest.mark.parametrize("name", WORLDS)
def test_reduction_leaves_out_nothing(name: str) -> None:
    world = WORLDS[name]
    assert _ends(world, reduce=True) == _ends(world, reduce=False)
