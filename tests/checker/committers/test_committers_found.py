"""What the papers say about today's committers: the checker finds it, and tells it in at most 15 sentences.

Sources: paper 000, Table V; paper 002, "Why the V2 committer is incorrect".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.commit.committer import RENAME_DIR, Committer
from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.cluster import TaskCommitTiming
from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.scenes import SCENES
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.framework.check import Check
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget, explore_world
from holdfast_checker.kernel.shrink import shrink_counterexample
from holdfast_checker.narrative.story import tell_story
from holdfast_checker.specimens import COMPARED
from holdfast_checker.subjects import build_committer_subject, declared_guarantee

_STATES = 20_000
"""Seconds of exploration, where a minute is allowed."""

_SENTENCES = 15

_PARTITION = SCENES["partition"]
_ONE_BY_ONE = CommitterScene(
    name="one-by-one",
    summary="an attempt is cut off from the driver while it commits, another one takes over, and both go on",
    tasks=1,
    speculation=False,
    order=TaskCommitTiming.ASK_FIRST,
    budgets={Fault.PARTITION: 1},
)
_MOVES_FILE_BY_FILE = replace(_ONE_BY_ONE, name="no-directory-rename", store={"rename_dir": False})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence the code under test, which logs failures in every history."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def _on_any_directories(name: str) -> Committer:
    """Return a committer that also runs on stores that do not rename directories."""
    committer = COMPARED[name]
    return replace(committer, needs=tuple(need for need in committer.needs if need is not RENAME_DIR))


@pytest.mark.parametrize(
    ("committer", "scene", "name", "says"),
    [
        pytest.param("file-v2", _PARTITION, "C4", "no driver has started to commit", id="file-v2-early-output"),
        pytest.param("file-v2", _PARTITION, "C2", "beside the files of the attempt", id="file-v2-mixed-attempts"),
        pytest.param("file-v1", _MOVES_FILE_BY_FILE, "C2", "beside the files", id="file-v1-no-directory-rename"),
        pytest.param("magic", _PARTITION, "C3", "driver accepted attempt 1", id="magic-late-pendingset"),
        pytest.param("direct", SCENES["asking"], "C4", "no driver has started to commit", id="direct-early-output"),
        pytest.param("direct", SCENES["asking"], "C2", "beside the files", id="direct-speculation"),
        pytest.param("direct", _PARTITION, "C5", "is aborted, and the destination shows", id="direct-no-abort"),
        pytest.param("direct", _PARTITION, "C6", "task 0 attempt", id="direct-partition"),
        pytest.param("stocator", SCENES["asking"], "C4", "no driver has started", id="stocator-early-output"),
        pytest.param("stocator", _PARTITION, "C6", "task 0 attempt", id="stocator-partition"),
        pytest.param("emr", SCENES["asking"], "C4", "no driver has started", id="emr-committed-output"),
        pytest.param("emr", _PARTITION, "C2", "beside the files", id="emr-partition"),
    ],
)
def test_it_is_found_shrunk_and_told(committer: str, scene: CommitterScene, name: str, says: str) -> None:
    world = build_world(_on_any_directories(committer), scene)
    found = explore_world(world, budget=Budget(states=_STATES), until=lambda now: name in now.findings)
    assert name in found.findings, f"{found.states} states, {found.findings}"
    finding = found.findings[name]
    first = Counterexample(world.name, name, finding.broke, finding.choices)
    easy = shrink_counterexample(world, first)
    assert len(easy.choices) <= len(first.choices)
    assert says in easy.broke
    story = tell_story(world, easy, job_narrator(world))
    assert 0 < len(story.sentences) <= _SENTENCES
    assert story.verdict == easy.broke
    assert f"Broken: {name} " in "\n".join(story.lines())


@pytest.mark.parametrize(
    ("scene", "while_merging"),
    [pytest.param(_ONE_BY_ONE, True, id="renamed"), pytest.param(_MOVES_FILE_BY_FILE, False, id="file-by-file")],
)
def test_when_file_v1_mixes_attempts(scene: CommitterScene, while_merging: bool) -> None:
    """With directory renames no task commit mixes attempts, but the merge of the job commit may.

    So the committer refuses other stores.
    """
    world = build_world(_on_any_directories("file-v1"), replace(scene, properties=("C2",)))
    found = explore_world(world, budget=Budget(states=_STATES), until=lambda one: bool(one.findings)).findings["C2"]
    story = tell_story(
        world,
        shrink_counterexample(world, Counterexample(world.name, "C2", found.broke, found.choices)),
        job_narrator(world),
    )
    merge = next(one.number for one in story.sentences if "driver receives its tasks' reports" in one.text)
    last = max(one.number for one in story.sentences if one.text.startswith("task") and "renames" in one.text)
    assert (last > merge) == while_merging, "\n".join(story.lines())


@pytest.mark.slow
@pytest.mark.parametrize("committer", sorted({one.name for one in COMPARED.values()} - {"two_phase"}))
def test_what_breaks_is_declared(committer: str) -> None:
    """In every scene, within the limits of `holdfast check`.

    C1 of `manifest` breaks after 94,000 states of slow-driver, which is beyond the limit of the table of all
    committers.
    """
    check = Check(build_committer_subject(COMPARED[committer]))
    for scene in SCENES.values():
        check.explore([scene], Budget(states=100_000))
    answers = {name: declared_guarantee(COMPARED[committer], name) for name in check.violations}
    assert [name for name, answer in answers.items() if answer and answer.holds and not answer.unless] == []
