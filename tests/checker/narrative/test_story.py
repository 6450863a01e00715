"""Stories say what matters in few sentences, and leave out no call and no fault."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast_checker.committers.cluster import CLUSTER
from holdfast_checker.committers.narration import shorten_ids
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint
from holdfast_checker.kernel.counterexample import Counterexample, replay_choices
from holdfast_checker.kernel.world import Actor, Choice, Port, Property, View, World
from holdfast_checker.narrative.sentences import CallEvent, CallImportance, CallPhrase, Narrator
from holdfast_checker.narrative.story import DetailedCall, Story, tell_story
from holdfast_checker.specimens import COMPARED
from tests.checker.narrative.stories import Found, find, wander

_COMMITTERS = ("file-v2", "direct", "emr")


@pytest.fixture(scope="module")
def small() -> dict[str, dict[str, Found]]:
    return {name: find(name) for name in _COMMITTERS}


def _calls(story: Story) -> list[DetailedCall]:
    return [call for sentence in story.sentences for call in sentence.calls]


def _is_whole(found: Found) -> None:
    """Check that every call is there once and in order, and that every fault is told."""
    story, steps = found.story, found.history.steps
    assert [sentence.number for sentence in story.sentences] == list(range(1, len(story.sentences) + 1))
    assert [call.number for call in _calls(story)] == list(range(1, len(steps) + 1))
    for sentence in story.sentences:
        [actor] = {call.actor for call in sentence.calls}
        assert sentence.text.startswith(actor)
        assert all(call.words in sentence.text for call in sentence.calls if call.fault is not None), sentence.text
    faults = [Fault.CRASH if step.alternative is None else step.alternative.fault for step in steps]
    assert [call.fault for call in _calls(story)] == [None if fault is None else fault.value for fault in faults]


# --- what was found ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("committer", _COMMITTERS)
def test_every_finding_has_a_short_and_whole_story(small: dict[str, dict[str, Found]], committer: str) -> None:
    assert {"C2", "C4"} <= set(small[committer])
    for found in small[committer].values():
        _is_whole(found)
        assert found.story.lines()[-1].strip()


@pytest.mark.parametrize("committer", _COMMITTERS)
def test_the_last_sentence_is_the_one_that_breaks(small: dict[str, dict[str, Found]], committer: str) -> None:
    for name, found in small[committer].items():
        last = found.story.sentences[-1]
        before = found.counterexample.choices[: last.calls[0].number - 1]
        assert name not in dict(replay_choices(found.world, before).broken)
        assert found.story.verdict == dict(found.history.broken)[name]


def test_a_story_reads_like_one(small: dict[str, dict[str, Found]]) -> None:
    found = small["direct"]["C4"]
    assert found.story.lines(width=200) == [
        "direct/small breaks C4 hidden",
        "World: direct/small - One task with two attempts; a crash and a partition.",
        "C4: nothing of a job is visible before its decision",
        "  1. driver starts job …1.1 (and 2 more calls).",
        "  2. task 0 attempt 0 uploads a hidden file (and 2 more calls).",
        "     -> pending uploads: 1 of task 0 attempt 0",
        "  3. task 0 attempt 0 completes day=0/part-00000-…1.1-c000.txt.",
        "     -> the destination shows: file 0 of task 0 attempt 0",
        "     -> pending uploads: none",
        f"Broken: C4 hidden - {found.story.verdict}",
    ]


def test_details_show_every_call(small: dict[str, dict[str, Found]]) -> None:
    story = small["emr"]["C2"].story
    shown = "\n".join(story.lines(details=True, width=10_000))
    for call in _calls(story):
        assert f"{call.actor}: {call.resource}.{call.operation}(" in shown
    assert len(story.lines(details=True, width=10_000)) == len(story.lines(width=10_000)) + len(_calls(story))


# --- as a document ----------------------------------------------------------------------------------------------------
def test_the_document_is_the_same_in_every_run(small: dict[str, dict[str, Found]]) -> None:
    again = find("direct")
    assert again.keys() == small["direct"].keys()
    for name, found in small["direct"].items():
        first, second = (json.dumps(story.to_json_value()) for story in (found.story, again[name].story))
        assert first == second


@pytest.mark.parametrize("committer", _COMMITTERS)
def test_the_document_survives_json_and_holds_every_call(small: dict[str, dict[str, Found]], committer: str) -> None:
    for found in small[committer].values():
        document: Any = found.story.to_json_value()
        assert json.dumps(document)
        calls = [one for sentence in document["sentences"] for one in sentence["calls"]]
        for told, step in zip(calls, found.history.steps, strict=True):
            assert (told["resource"], told["operation"]) == (step.call.resource, step.call.operation)
            for shown, argument in zip(told["arguments"], step.call.args, strict=True):
                assert shown == argument or not isinstance(argument, str)


def test_the_document_shows_sizes_and_no_long_bytes(small: dict[str, dict[str, Found]]) -> None:
    document: Any = small["file-v2"]["C2"].story.to_json_value()
    shown = [
        argument
        for sentence in document["sentences"]
        for call in sentence["calls"]
        for argument in call["arguments"]
        if isinstance(argument, dict) and "bytes" in argument
    ]
    assert max(argument["bytes"] for argument in shown) > 100  # _SUCCESS
    assert all(len(argument["begin"]) <= 100 for argument in shown)


# --- long histories ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "committer",
    [name if name == "file-v2" else pytest.param(name, marks=pytest.mark.slow) for name in COMPARED],
)
def test_long_histories_are_told_wholly(committer: str) -> None:
    """Covers every committer, every actor and every kind of fault: there are words for everything that can happen."""
    for seed in range(2):
        found = wander(committer, seed)
        _is_whole(found)
        assert found.story.seed == seed


def test_ids_are_cut_down_to_whose_they_are_and_which() -> None:
    assert shorten_ids("day=0/part-00000-20270115080000000-000100000002-000a00000003-00000.txt") == (
        "day=0/part-00000-…1.2-…a.3-00000.txt"
    )
    assert shorten_ids("day=0/old.txt") == "day=0/old.txt"


# --- stories know no domain -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Shelf:
    """Counts how often each actor has put something on it."""

    def initial_state(self) -> object:
        return ()

    def state_key(self, state: object) -> tuple[str, ...]:
        assert isinstance(state, tuple)
        return state

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        assert isinstance(state, tuple)
        return [Alternative(state=tuple(sorted((*state, actor))) if call.operation == "put" else state)]

    def footprint(self, call: Call) -> Footprint:
        return frozenset({Access("shelf", "", writes=call.operation == "put")})

    def state_after_death(self, state: object, actor: str) -> object:
        return state


def _act(event: CallEvent) -> CallPhrase:
    if event.call.operation == "put":
        return CallPhrase(verb="puts", things=("a jar",), plural="jars", tail=" there")
    return CallPhrase(verb="looks", weight=CallImportance.READ)


def _holds(view: View) -> Mapping[str, str]:
    jars = view.states["shelf"]
    assert isinstance(jars, tuple)
    return {"on the shelf": str(len(jars)), "below it": "nothing"}


_TELLER = Narrator(act=_act, fault=lambda event: "", holds=_holds)


def _tell(turns: str, looks: int = 1, *, limit: int = 0) -> Story:
    """Tell a story in which the letters of `turns` name the actors that move: each looks, then puts.

    Args:
        limit: how many jars are too many; as many as there are if 0.
    """

    def program(port: Port) -> None:
        for _ in range(turns.count(port.name)):
            for _look in range(looks):
                port.call(Call("shelf", "look"))
            port.call(Call("shelf", "put"))

    most = limit or len(turns)

    def broken(before: View, after: View, actor: str) -> str | None:
        jars = after.states["shelf"]
        assert isinstance(jars, tuple)
        return f"it bends under {len(jars)} jars" if len(jars) >= most else None

    world = World(
        name="shelf",
        summary="",
        actors=tuple(Actor(name, program) for name in sorted(set(turns))),
        resources={"shelf": _Shelf()},
        properties=(Property(name="straight", title="straight", meaning="it does not bend", step=broken),),
        budgets={},
        observed=lambda call: True,
    )
    choices = tuple(Choice(name) for name in turns for _ in range(looks + 1))
    return tell_story(world, Counterexample("shelf", "straight", "?", choices), _TELLER)


def test_calls_in_a_row_are_one_sentence() -> None:
    story = _tell("AAB")
    assert [sentence.text for sentence in story.sentences] == [
        "A puts 2 jars there (and 2 more calls).",
        "B puts a jar there (and 1 more call).",
    ]
    assert story.sentences[0].holds == {"on the shelf": "2", "below it": "nothing"}
    assert story.sentences[0].changes == ("on the shelf",)
    assert story.lines()[-1] == "Broken: straight - it bends under 3 jars"


def test_the_call_that_breaks_is_told_by_itself_after_others_that_matter() -> None:
    assert [sentence.text for sentence in _tell("AA", looks=0).sentences] == ["A puts a jar there."] * 2


def test_a_history_in_which_the_property_holds_is_no_story() -> None:
    with pytest.raises(InvalidRequestError, match="holds in this history"):
        _tell("AB", limit=3)


def test_a_history_of_another_world_is_no_story(small: dict[str, dict[str, Found]]) -> None:
    found = small["direct"]["C4"]
    strange = replace(found.counterexample, choices=(*found.counterexample.choices, Choice("nobody")))
    with pytest.raises(InvalidRequestError, match="does not fit"):
        tell_story(found.world, strange, _TELLER)


_TURNS = {"cancel", "lose", "take_for_dead", "take_over"}
"""The calls after which another actor acts; a story that only counts them cannot be understood."""


def test_what_the_driver_and_recovery_turn_to_is_always_told() -> None:
    seen = set()
    for seed in (2, 5, 12, 28):  # histories in which all of them come
        for sentence in wander("direct", seed).story.sentences:
            for call in sentence.calls:
                if call.resource == CLUSTER and call.operation in _TURNS and call.fault is None:
                    seen.add(call.operation)
                    assert call.words in sentence.text, (call.words, sentence.text)
    assert seen == _TURNS - {"lose"}, "every loss is a fault, and faults are told anyway"
