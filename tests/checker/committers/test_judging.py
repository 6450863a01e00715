"""Properties fail on destinations that no shipped committer produces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from holdfast.commit import SaveMode
from holdfast_checker.committers.actors import WorldSettings
from holdfast_checker.committers.cluster import (
    CLUSTER,
    Cluster,
    ClusterState,
    JobPhase,
    LearnedOutcome,
    TaskCommitTiming,
)
from holdfast_checker.committers.cluster import AttemptState as Doing
from holdfast_checker.committers.output import DESTINATION, HOME, FileOrigin, file_bytes
from holdfast_checker.committers.properties import RULES, VisibleAttempt, visible_attempts
from holdfast_checker.committers.sandbox import CopiedStores, StoreSandbox
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.store import StoreResource
from holdfast_checker.specimens import COMPARED

MINE = FileOrigin("main", 0, 0, 0)
ENDED = ClusterState(attempts=((Doing.ENDED,),), accepted=(None,))


def _winner(*paths: str) -> VisibleAttempt:
    return visible_attempts(ENDED, dict.fromkeys(paths, MINE), 1)[0]


def test_a_file_in_its_partition_is_not_strange() -> None:
    assert _winner("day=0/a.txt").strange == frozenset()
    assert _winner("day=0/a.txt").attempt == 0


@pytest.mark.parametrize("paths", [("day=0/a.txt", "day=0/b.txt"), ("day=1/a.txt",), ("a.txt",)])
def test_a_file_that_is_there_twice_or_elsewhere_is_strange(paths: Sequence[str]) -> None:
    assert _winner(*paths).strange == {MINE}


@pytest.mark.parametrize("phase", JobPhase)
def test_a_job_that_nobody_has_begun_to_commit_shows_nothing(phase: JobPhase) -> None:
    sandbox, copy = _empty(SaveMode.APPEND)
    step = RULES["C4"].bind(sandbox).step
    assert step is not None
    copy.stores[DESTINATION].put(f"{HOME}day=0/main.txt", file_bytes("main", 0, 0, 0))
    view = View({CLUSTER: replace(ENDED, phase=phase), DESTINATION: copy.stores[DESTINATION].take_snapshot()})
    assert bool(step(view, view, "")) is (phase is not JobPhase.COMMITTING)


def test_a_driver_that_gives_up_does_not_hide_that_another_commits() -> None:
    cluster = Cluster(tasks=1, attempts=1, speculation=False)
    commits = replace(ENDED, phase=JobPhase.COMMITTING, cancelled=True)
    (way,) = cluster.alternatives(commits, Call(CLUSTER, "await_tasks"), "driver")
    assert way.state == commits
    assert way.reply.value is None


def _empty(mode: SaveMode) -> tuple[StoreSandbox, CopiedStores]:
    store = StoreResource(DESTINATION, time_of=lambda actor: 0.0)
    setting = WorldSettings(
        name="empty",
        committer=COMPARED["two_phase"],
        capabilities={DESTINATION: store.capabilities},
        tasks=1,
        attempts=1,
        files=1,
        order=TaskCommitTiming.REPORT,
        mode=mode,
    )
    sandbox = StoreSandbox(setting, {DESTINATION: store})
    return sandbox, sandbox.copy_states({DESTINATION: store.initial_state()})


@pytest.mark.parametrize(
    ("stays", "mode", "broken"),
    [(True, SaveMode.APPEND, False), (False, SaveMode.APPEND, True), (False, SaveMode.OVERWRITE, False)],
)
def test_what_another_job_has_committed_stays(stays: bool, mode: SaveMode, broken: bool) -> None:
    sandbox, copy = _empty(mode)
    if stays:
        copy.stores[DESTINATION].put(f"{HOME}day=0/other.txt", file_bytes("other", 0, 0, 0))
    told = replace(ENDED, told=(LearnedOutcome("other job", "committed", True),))
    end = RULES["C7"].bind(sandbox).end
    assert end is not None
    assert bool(end(View({CLUSTER: told, DESTINATION: copy.stores[DESTINATION].take_snapshot()}))) is broken
