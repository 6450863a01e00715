"""Scenes as combinations of features: names resolve to scenes, scenes can be drawn, and worlds have their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast_checker.committers.features import FEATURES, combine, draw, features_of
from holdfast_checker.committers.goals import GOALS
from holdfast_checker.committers.scenes import COMBINED, VERDICT
from holdfast_checker.committers.subject import committer_subject
from holdfast_checker.committers.threads import ScheduledRunner, ThreadedPort
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Call, Reply
from holdfast_checker.kernel.explore import explore
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.store import StoreResource
from holdfast_checker.simulated.store_handle import SimulatedStore
from holdfast_checker.specimens import COMPARED
from tests.checker.kernel.toys import with_ends

SUBJECT = committer_subject(COMPARED["two_phase"])


@pytest.mark.parametrize("name", [*COMBINED, *(scene.name for scene in VERDICT)])
def test_a_name_leads_to_its_scene(name: str) -> None:
    [scene] = SUBJECT.find_scenes(name)
    assert scene.name == name
    assert set(scene.reached) <= GOALS.keys()
    assert SUBJECT.find_scenes("+".join(reversed(name.split("+")))) == (scene,), "in any order"


def test_features_that_exclude_each_other_are_refused() -> None:
    for names in ("crash+driver-dies", "overwrite+fail", "appends+overwrites"):
        with pytest.raises(InvalidRequestError, match="exclude each other"):
            SUBJECT.find_scenes(names)
    with pytest.raises(InvalidRequestError, match="did you mean recovery"):
        SUBJECT.find_scenes("crash+recoverry")


def test_what_is_drawn_depends_on_seed_and_number_alone() -> None:
    drawn = [draw(7, number) for number in range(60)]
    assert drawn == [draw(7, number) for number in range(60)]
    assert len({scene.name for scene in drawn}) > 50
    assert {one.name for scene in drawn for one in features_of(scene.name) or ()} == FEATURES.keys() - {
        "renames-too",
        "attempt-dies",
        "stale-listing",
    }


# --- a store with piecemeal listings ----------------------------------------------------------------------------------
def test_a_piecemeal_listing_may_show_what_is_new_without_what_was_there_before_it() -> None:
    store = StoreResource("store", time_of=lambda actor: 0.0)
    state = store.initial()
    (begun,) = store.alternatives(state, Call("store", "list_page", ("", "", 1000, None)), "lister")[:1]
    for key in ("log/1", "log/2"):
        state = store.alternatives(state, Call("store", "put", (key, b"x", "")), "writer")[0].state
    ways = store.alternatives(state, Call("store", "list_rest", ("", "", 1000, None, begun.reply.value)), "lister")
    seen = {tuple(one.key for one in way.reply.value.objects) for way in ways}  # type: ignore[attr-defined]  # a page
    assert seen == {(), ("log/1",), ("log/2",), ("log/1", "log/2")}


# --- threads ----------------------------------------------------------------------------------------------------------
class _World:
    """Answers calls, and chooses turns from a list."""

    def __init__(self, turns: list[int]) -> None:
        self.calls: list[str] = []
        self._turns = iter(turns)

    def __call__(self, index: int, call: Call) -> Reply:
        if call.operation == "turn":
            return Reply(next(self._turns))
        self.calls.append(call.operation)
        return Reply(error=NotFoundError("gone", key="k")) if call.operation == "b1" else Reply(call.operation)


def _run(turns: list[int], items: Iterator[str] | list[str]) -> tuple[list[str], list[str] | str]:
    world = _World(turns)
    port = ThreadedPort(Port("driver", 0, world))

    def work(item: str) -> str:
        first = port.call(Call("store", f"{item}1"))
        return f"{first} {port.call(Call('store', f'{item}2'))}"

    try:
        return world.calls, list(ScheduledRunner(port, 2).map(work, items))
    except NotFoundError as error:
        return world.calls, error.message


def test_threads_are_interleaved_as_they_are_told() -> None:
    assert _run([0, 0], ["a", "c"]) == (["a1", "a2", "c1", "c2"], ["a1 a2", "c1 c2"])
    assert _run([1, 0, 1], ["a", "c"]) == (["c1", "a1", "c2", "a2"], ["a1 a2", "c1 c2"])


def test_after_an_error_those_under_way_go_on_and_no_other_starts() -> None:
    assert _run([1], ["a", "b", "c"]) == (["b1", "a1", "a2"], "gone")


# --- nothing is left out ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name",
    [
        "one-task+overwrite+driver-dies",
        "one-task+two-files+threads+driver-dies",
        "one-task+recovery+lost-reply+driver-dies",  # recovery continues after a decision that it cannot finish
        "one-task+overwrite+crash+recovery+transactions",
        "one-task+recovery+lost-reply+driver-dies+transactions",
    ],
)
def test_forgetting_and_reduction_leave_no_end_out(name: str) -> None:
    scene = combine(features_of(name) or ())
    ends = []
    for forgetful, reduce in ((True, True), (False, False)):
        world, seen = with_ends(build_world(COMPARED["two_phase"], replace(scene, forgetful=forgetful)))
        assert explore(world, reduce=reduce).complete
        ends.append(seen)
    assert ends[0] == ends[1]
    assert len(ends[0]) > 10


def test_a_simulated_store_lists_in_one_step_unless_it_is_told_otherwise() -> None:
    calls: list[str] = []

    def answer(index: int, call: Call) -> Reply:
        calls.append(call.operation)
        return Reply(None)

    resource = StoreResource("store", time_of=lambda actor: 0.0)
    for piecemeal in (False, True):
        SimulatedStore(Port("a", 0, answer), "store", resource.capabilities, piecemeal=piecemeal).list_page("")
    assert calls == ["list_page", "list_page", "list_rest"]
