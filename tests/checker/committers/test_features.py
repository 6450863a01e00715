"""Scenes as combinations of features: names resolve to scenes, scenes can be drawn, and worlds have their features."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast_checker.committers.features import combine_features, parse_features
from holdfast_checker.committers.goals import GOALS
from holdfast_checker.committers.scenes import COMBINED
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Call, Reply
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.store import StoreResource
from holdfast_checker.simulated.store_handle import SimulatedStore
from holdfast_checker.specimens import COMPARED
from holdfast_checker.subjects import build_committer_subject
from tests.checker.committers.verdict import VERDICT
from tests.checker.kernel.toys import with_ends

SUBJECT = build_committer_subject(COMPARED["two_phase"])


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


# --- a store with piecemeal listings ----------------------------------------------------------------------------------
def test_a_piecemeal_listing_may_show_what_is_new_without_what_was_there_before_it() -> None:
    store = StoreResource("store", time_of=lambda actor: 0.0)
    state = store.initial_state()
    (begun,) = store.alternatives(state, Call("store", "list_page", ("", "", 1000, None)), "lister")[:1]
    for key in ("log/1", "log/2"):
        state = store.alternatives(state, Call("store", "put", (key, b"x", "")), "writer")[0].state
    ways = store.alternatives(state, Call("store", "list_rest", ("", "", 1000, None, begun.reply.value)), "lister")
    seen = {tuple(one.key for one in way.reply.value.objects) for way in ways}  # type: ignore[attr-defined]  # a page
    assert seen == {(), ("log/1",), ("log/2",), ("log/1", "log/2")}


# --- nothing is left out ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name",
    [
        "one-task+overwrite+driver-dies",
        "one-task+recovery+lost-reply+driver-dies",  # recovery continues after a decision that it cannot finish
        "one-task+overwrite+crash+recovery+transactions",
        "one-task+recovery+lost-reply+driver-dies+transactions",
    ],
)
def test_reduction_leaves_no_end_out(name: str) -> None:
    scene = combine_features(parse_features(name) or ())
    ends = []
    for reduce in (True, False):
        world, seen = with_ends(build_world(COMPARED["two_phase"], scene))
        assert explore_world(world, reduce=reduce).complete
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
