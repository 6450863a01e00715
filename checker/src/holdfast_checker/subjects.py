"""List the subjects of ``holdfast check``: each committer, database transactions, the namespace, computation units."""

from __future__ import annotations

from typing import Any

from holdfast.commit import Committer
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.guarantees import GuaranteeAnswer
from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.features import FEATURES, combine_features, parse_features
from holdfast_checker.committers.goals import GOALS, WITHOUT_LOG
from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.properties import PART_OF, RULES
from holdfast_checker.committers.scenes import COMBINED, LARGE, SCENES, SMALL, STORES, TRANSACTIONAL
from holdfast_checker.committers.table_v.experiments import EXPERIMENTS, build_experiment
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.framework.subject import GoalTracker, Subject, find_name
from holdfast_checker.kernel.world import World
from holdfast_checker.namespace.worlds import NAMESPACE
from holdfast_checker.specimens import COMPARED
from holdfast_checker.transactions.worlds import TRANSACTIONS
from holdfast_checker.units.worlds import UNITS

_OTHERS = {**STORES, **TRANSACTIONAL, LARGE.name: LARGE}
"""Other stores, the scenes on a store with transactions, and the largest one."""


def build_committer_subject(committer: Committer) -> Subject[CommitterScene]:
    """Return the checker's description (`Subject`) of a committer: its scenes, properties and goals."""
    has_log = committer.name == TWO_PHASE.name

    def build_scene(scene: CommitterScene, tracker: GoalTracker | None) -> World:
        if scene.name in EXPERIMENTS:  # they judge properties of their own, all for one row of Table V
            return build_experiment(committer, scene.name)
        return build_world(committer, scene, tracker)

    return Subject(
        name=committer.name,
        title=f"{committer.name}: {committer.summary}",
        build=build_scene,
        narrate=job_narrator,
        rules=RULES,
        goals=GOALS if has_log else {name: GOALS[name] for name in WITHOUT_LOG},
        scenes={**SCENES, **COMBINED} if has_log else SCENES,
        small=SMALL,
        others=_OTHERS if has_log else {**COMBINED, **_OTHERS},
        find=_find_scene_by_features,
        walk=None if has_log else LARGE,
        declared=lambda name: declared_guarantee(committer, name),
    )


def _find_scene_by_features(name: str) -> CommitterScene | None:
    """Return the combination of the named features, as in ``crash+recovery+overwrite``, or the experiment's scene."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    features = parse_features(name)
    if features is not None:
        combined = combine_features(features)
        return COMBINED.get(combined.name, combined)
    for part in name.split("+") if "+" in name else ():
        find_name(part, FEATURES, "feature of a scene")
    return None


def declared_guarantee(committer: Committer, name: str) -> GuaranteeAnswer | None:
    """Return the declared guarantee of a committer about a property, as `holdfast committers` shows it, or None."""
    return committer.guarantees.get(PART_OF.get(name, name))


SUBJECTS = {one.name: one for one in (TRANSACTIONS, NAMESPACE, UNITS)}
"""All but the committers, by name."""


def find_subject(name: str) -> Subject[Any]:
    """Return the `Subject` with this name: a committer, ``transactions``, ``namespace`` or ``units``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    found = find_name(name, (*COMPARED, *SUBJECTS), "committer")
    return SUBJECTS[found] if found in SUBJECTS else build_committer_subject(COMPARED[found])
