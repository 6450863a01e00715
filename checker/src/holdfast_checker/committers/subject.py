"""Describe each committer as the subject of a check."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.commit import Committer
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.guarantees import Answer
from holdfast_checker.committers.features import FEATURES, combine, draw, features_of
from holdfast_checker.committers.goals import GOALS, WITHOUT_LOG
from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.properties import PART_OF
from holdfast_checker.committers.scenes import ALL_ONCE, COMBINED, LARGE, SCENES, SMALL, STORES, TRANSACTIONAL
from holdfast_checker.committers.table_v.experiments import EXPERIMENTS, build_experiment
from holdfast_checker.committers.variants import VARIANTS
from holdfast_checker.committers.worlds import Scene, build_world
from holdfast_checker.framework.subject import GoalTracker, Subject, find_name
from holdfast_checker.kernel.world import World
from holdfast_checker.specimens import COMPARED

CHECKED: Mapping[str, Committer] = {**COMPARED, **VARIANTS}
"""Every committer that can be checked, by name."""

_BY_HARM = (
    *("C1", "C2", "C3", "C6", "replaced-data", "log-order"),  # rows are wrong, and the job is reported as committed
    *("C5", "C7", "C8", "C9"),  # rows are wrong after a failure
    *("C4", "whole-reads", "plain-reads"),  # rows are visible too early
    *("C10", "no-leftovers"),  # a user has to clean up
)

_OTHERS = {**STORES, **TRANSACTIONAL, ALL_ONCE.name: ALL_ONCE, LARGE.name: LARGE}
"""Other stores, and the scenes on a store with transactions; the largest ones."""


def committer_subject(committer: Committer) -> Subject[Scene]:
    """Return the subject that checks a committer."""
    has_log = committer.name == TWO_PHASE.name

    def build(scene: Scene, tracker: GoalTracker | None) -> World:
        if scene.name in EXPERIMENTS:  # they judge properties of their own, all for one row of Table V
            return build_experiment(committer, scene.name)
        return build_world(committer, scene, tracker)

    return Subject(
        name=committer.name,
        title=f"{committer.name}: {committer.summary}",
        build=build,
        narrate=job_narrator,
        properties=_BY_HARM,
        goals=GOALS if has_log else {name: GOALS[name] for name in WITHOUT_LOG},
        scenes={**SCENES, **COMBINED} if has_log else SCENES,
        small=SMALL,
        others=_OTHERS if has_log else {**COMBINED, **_OTHERS},
        find=_find,
        draw=draw,
        walk=None if has_log else LARGE,
        declared=lambda name: declared(committer, name),
    )


def _find(name: str) -> Scene | None:
    """Return the combination of the named features, as in ``crash+recovery+overwrite``, or the experiment's scene."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    features = features_of(name)
    if features is not None:
        combined = combine(features)
        return COMBINED.get(combined.name, combined)
    for part in name.split("+") if "+" in name else ():
        find_name(part, FEATURES, "feature of a scene")
    return None


def declared(committer: Committer, name: str) -> Answer | None:
    """Return what `holdfast committers` declares about a property; None if it declares nothing."""
    return committer.guarantees.get(PART_OF.get(name, name))
