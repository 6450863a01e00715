"""Combine features, such as ``crash`` or ``recovery``, into scenes (simulated worlds) for committers.

A scene's name consists of the names of its features, as in ``crash+recovery+overwrites``, so it identifies the world.
Without any feature there are two tasks with one attempt and one file each, which append to an empty destination, and no
fault happens. Features of the same kind exclude each other. The goals of a combination follow from rules: each rule
names a goal, and the features that together make it possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.commit import SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.stores.base import MultipartLimits
from holdfast_checker.committers.actors import CommitterScene, OtherJob
from holdfast_checker.committers.cluster import TaskCommitTiming
from holdfast_checker.committers.properties import RULES
from holdfast_checker.framework.scene_files import SceneFields, parse_field_list, read_sections


@dataclass(frozen=True, slots=True)
class SceneFeature:
    """One named aspect of a scene, such as a kind of fault, a further actor, or a kind of store.

    Attributes:
        summary: describes the feature in a few words.
        changes: fields of `Scene` that the feature sets, with their values.
        others: the jobs that run in addition to the main job.
        kind: a combination has at most one feature of each kind; empty for any number.
        without: names of features that cannot be combined with this one.
    """

    name: str
    summary: str
    changes: Mapping[str, Any]
    others: tuple[OtherJob, ...]
    kind: str
    without: frozenset[str]


_STORES: Mapping[str, Mapping[str, Any]] = {
    "renames": {"rename": True},
    "no-uploads": {"limits": None},
    "transactions": {"limits": MultipartLimits(min_part_size_bytes=1), "transactions": True},
}
"""Options of `MemoryStore` by the words for them."""


def _read_feature(name: str, fields: SceneFields) -> SceneFeature:
    summary, other = fields.pop("summary"), fields.pop("other", None)
    options = [_STORES[word] for word in fields.pop("store", "").split()]
    store = {key: value for those in options for key, value in those.items()}
    return SceneFeature(
        name,
        summary,
        {
            **fields.take_fields(CommitterScene, mode=SaveMode, order=TaskCommitTiming),
            **({"store": store} if store else {}),
        },
        () if other is None else (OtherJob(**parse_field_list(other).take_fields(OtherJob, mode=SaveMode)),),
        kind=fields.get("kind", ""),
        without=frozenset(fields.get("without", "").split()),
    )


FEATURES: Mapping[str, SceneFeature] = {
    name: _read_feature(name, fields)
    for name, fields in read_sections("holdfast_checker.committers", "features.ini").items()
}


@dataclass(frozen=True, slots=True)
class _GoalRule:
    """A goal that every combination with certain features must reach.

    Attributes:
        given: the rule applies if the combination has at least one feature of each of these sets.
        unless: the rule does not apply if the combination has any of these features.
    """

    goal: str
    given: tuple[frozenset[str], ...] = ()
    unless: frozenset[str] = frozenset()


_BESIDE = frozenset({"appends", "overwrites", "overwrites-partitions", "busy"})
_LATER = frozenset({"then-appends", "then-overwrites"})
_DEATH, _RECOVERY = frozenset({"crash", "driver-dies"}), frozenset({"recovery", "two-recoveries"})
_IN_THE_WAY = frozenset({"fail", "ignore"})
_AT_ONCE = frozenset({"transactions"})  # no decision is ever left unfinished

_RULES = (
    _GoalRule("committed", unless=frozenset({"old"})),
    _GoalRule("cleaned-up", unless=frozenset({"old"})),
    _GoalRule("committed", (frozenset({"old"}),), frozenset({"chosen", *_IN_THE_WAY})),
    _GoalRule("cleaned-up", (frozenset({"old"}),), frozenset({"chosen", *_IN_THE_WAY})),
    _GoalRule("refused", (frozenset({"old"}), frozenset({"fail"}))),
    _GoalRule("skipped", (frozenset({"old"}), frozenset({"ignore"}))),
    _GoalRule("aborted", (frozenset({"cancel", "lost-reply", "failure"}),), frozenset({"old"})),
    _GoalRule("at-once", (_AT_ONCE,), frozenset({"old"})),
    _GoalRule("rolled-forward", (_DEATH, _RECOVERY), _AT_ONCE),
    _GoalRule("rolled-back", (_DEATH, _RECOVERY)),
    _GoalRule("fenced", (frozenset({"slow"}), _RECOVERY)),
    _GoalRule("second-job", (_BESIDE | _LATER,), frozenset({"chosen", *_IN_THE_WAY})),
    _GoalRule("overtaken", (_BESIDE,), frozenset({"chosen", *_IN_THE_WAY})),
    _GoalRule("helped", (_BESIDE,), frozenset({"chosen", *_IN_THE_WAY, *_AT_ONCE})),
    _GoalRule("after-a-death", (_DEATH, _BESIDE | _LATER)),
    _GoalRule("helped", (_DEATH, _LATER), _AT_ONCE),
    _GoalRule("replaced", (frozenset({"overwrite", "partitions"}),)),
    _GoalRule("trimmed", (frozenset({"short-log"}), _BESIDE | _LATER), frozenset({"chosen", *_IN_THE_WAY})),
    _GoalRule("aborted", (_IN_THE_WAY, _BESIDE), frozenset({"old"})),
    _GoalRule("refused", (frozenset({"fail"}), _BESIDE)),
    _GoalRule("skipped", (frozenset({"ignore"}), _BESIDE)),
    _GoalRule("skipped", (frozenset({"replay"}),)),
    _GoalRule("helped", (frozenset({"replay"}),), _AT_ONCE),
    _GoalRule("late-attempt", (frozenset({"twins"}),)),
    _GoalRule("read-without", (frozenset({"reader"}),)),
    _GoalRule("read-with", (frozenset({"reader"}),)),
    _GoalRule("read-between", (frozenset({"reader"}),), _AT_ONCE),
)

_OF_ONE_JOB = frozenset({"C1", "C2", "C3", "C6", "C8", "C9", "C10", "replaced-data", "whole-reads"})
"""Properties that assume that no other job replaces anything; `log-order` judges all jobs."""


def combine_features(features: Iterable[SceneFeature]) -> CommitterScene:
    """Combine features into one scene, whose coverage goals follow from the features.

    Raises:
        InvalidRequestError: two of the features exclude each other.
    """
    given = sorted({one.name: one for one in features}.values(), key=lambda one: list(FEATURES).index(one.name))
    names = frozenset(one.name for one in given)
    _refuse_senseless_combination(given, names)
    changes: dict[str, Any] = {"attempts": 1, "files": 1, "store": {}, "budgets": {}}
    for one in given:
        merged = {name: {**changes[name], **one.changes.get(name, {})} for name in ("store", "budgets")}
        changes.update(one.changes, **merged)
    others = tuple(replace(other, at_once="at-once" in names) for one in given for other in one.others)
    mode = changes.get("mode")
    overwrites = any((other.mode or mode) in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS) for other in others)
    collide = overwrites or bool(others and "chosen" in names)
    properties = [name for name in RULES if not (collide and name in _OF_ONE_JOB)]
    if "chosen" in names and "replaced-data" in properties:
        # In these combinations, a file of the same name replaces another one: see docs/how-to/write-files.md, Modes and
        # names.
        properties.remove("replaced-data")
    return CommitterScene(
        name="+".join(one.name for one in given) or "plain",
        summary="; ".join(one.summary for one in given) or "no fault happens",
        **changes,
        others=others,
        properties=tuple(properties),
        reached=_goals_of_features(names),
    )


def _refuse_senseless_combination(given: Sequence[SceneFeature], names: frozenset[str]) -> None:
    for one in given:
        against = [other.name for other in given if other.kind == one.kind and one.kind and other is not one]
        against += sorted(names & one.without)
        if against:
            raise InvalidRequestError(
                "two features of a scene exclude each other: leave one out", both=(one.name, against[0])
            )


def _goals_of_features(names: frozenset[str]) -> tuple[str, ...]:
    found = [rule.goal for rule in _RULES if all(names & any_ for any_ in rule.given) and not names & rule.unless]
    return tuple(dict.fromkeys(found))


def parse_features(name: str) -> list[SceneFeature] | None:
    """Parse a scene's name such as ``crash+recovery`` into features; return None if one of them is unknown."""
    parts = [part.strip().lower().replace("_", "-") for part in name.split("+")]
    return [FEATURES[part] for part in parts] if all(part in FEATURES for part in parts) else None
