"""Combine features into scenes: each feature defines what exists, who acts, or what can go wrong.

A scene's name consists of the names of its features, as in ``crash+recovery+overwrites``, so it identifies the world.
Without any feature there are two tasks with one attempt and one file each, which append to an empty destination, and no
fault happens. Features of the same kind exclude each other. The goals of a combination follow from rules: each rule
names a goal, and the features that together make it possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.commit import SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.runtime import SeededRandom
from holdfast.stores.base import MultipartLimits
from holdfast_checker.committers.actors import OtherJob
from holdfast_checker.committers.cluster import Order
from holdfast_checker.committers.properties import PROPERTIES
from holdfast_checker.committers.worlds import Scene
from holdfast_checker.kernel.calls import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One aspect of a world.

    Attributes:
        summary: describes the feature in a few words.
        changes: fields of `Scene` that the feature sets, with their values.
        budgets: how often each fault may happen.
        others: the jobs that run in addition to the main job.
        kind: a combination has at most one feature of each kind; empty for any number.
        without: names of features that cannot be combined with this one.
    """

    name: str
    summary: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    budgets: Mapping[Fault, int] = field(default_factory=dict)
    others: tuple[OtherJob, ...] = ()
    kind: str = ""
    without: frozenset[str] = frozenset()


_OVERWRITE, _PARTITIONS = SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS
_NAMESAKE = {"old": ("day=0", "day=01"), "foreign": True}
"""Existing data: one partition that the job writes, and one whose name begins with that partition's name."""

_ALL = (
    # --- the job ------------------------------------------------------------------------------------------------------
    Feature(name="one-task", summary="one task", changes={"tasks": 1}, kind="tasks"),
    Feature(name="three-tasks", summary="three tasks", changes={"tasks": 3}, kind="tasks"),
    Feature(name="twins", summary="two concurrent attempts at each task", changes={"attempts": 2}, kind="attempts"),
    Feature(
        name="retries",
        summary="two attempts at each task one after the other",
        changes={"attempts": 2, "speculation": False},
        kind="attempts",
    ),
    Feature(name="asks", summary="attempts ask before they commit", changes={"order": Order.ASK_FIRST}),
    Feature(name="two-files", summary="two files per attempt", changes={"files": 2}, kind="files"),
    Feature(name="parts", summary="files of three parts", changes={"parts": 3}),
    Feature(name="threads", summary="two concurrent calls in each process", changes={"threads": 2}),
    Feature(
        name="chosen", summary="jobs choose the names of their files, and all choose the same", changes={"chosen": True}
    ),
    # --- existing data, and the mode ----------------------------------------------------------------------------------
    Feature(name="old", summary="the destination holds data", changes=_NAMESAKE, kind="old"),
    Feature(name="overwrite", summary="the job overwrites", changes={"mode": _OVERWRITE, **_NAMESAKE}, kind="mode"),
    Feature(
        name="partitions",
        summary="the job overwrites the partitions that it writes",
        changes={"mode": _PARTITIONS, **_NAMESAKE},
        kind="mode",
    ),
    Feature(
        name="fail", summary="the job fails if the destination holds data", changes={"mode": SaveMode.FAIL}, kind="mode"
    ),
    Feature(
        name="ignore",
        summary="the job does nothing if the destination holds data",
        changes={"mode": SaveMode.IGNORE},
        kind="mode",
    ),
    # --- other jobs ---------------------------------------------------------------------------------------------------
    Feature(name="appends", summary="another job appends", others=(OtherJob(mode=SaveMode.APPEND),), kind="other"),
    Feature(
        name="overwrites",
        summary="another job overwrites",
        others=(OtherJob(mode=_OVERWRITE),),
        kind="other",
        without=frozenset({"fail", "ignore"}),
    ),
    Feature(
        name="overwrites-partitions",
        summary="another job overwrites the partitions that it writes",
        others=(OtherJob(mode=_PARTITIONS, directories=("day=0", "day=1")),),
        kind="other",
        without=frozenset({"fail", "ignore"}),
    ),
    Feature(
        name="then-appends",
        summary="another job appends after the driver is gone",
        others=(OtherJob(mode=SaveMode.APPEND, later=True),),
        kind="other",
    ),
    Feature(
        name="then-overwrites",
        summary="another job overwrites after the driver is gone",
        others=(OtherJob(mode=_OVERWRITE, later=True),),
        kind="other",
    ),
    Feature(
        name="busy",
        summary="two other jobs append, one after the other",
        others=(OtherJob(mode=SaveMode.APPEND, times=2),),
        kind="other",
    ),
    Feature(
        name="replay",
        summary="the job is a batch of a stream, which another driver writes again",
        changes={"batch": 0},
        others=(OtherJob(name="replay", batch=0),),
        kind="other",
        without=frozenset({"fail", "ignore", "partitions", "chosen", "live-jobs"}),
    ),
    Feature(name="at-once", summary="each of them runs to its end without interruption", changes={"at_once": True}),
    Feature(name="live-jobs", summary="live jobs exist in the destination and beside it", changes={"bystanders": True}),
    # --- other actors -------------------------------------------------------------------------------------------------
    Feature(name="reader", summary="a reader through Holdfast", changes={"reader": True}),
    Feature(name="recovery", summary="recovery", changes={"recovery": 1}, kind="recovery"),
    Feature(name="two-recoveries", summary="two concurrent recoveries", changes={"recovery": 2}, kind="recovery"),
    Feature(name="second-driver", summary="a second driver for the same job", changes={"second_driver": True}),
    Feature(name="cancel", summary="a user cancels the job", changes={"cancel": True}),
    # --- faults -------------------------------------------------------------------------------------------------------
    Feature(name="crash", summary="a process dies", budgets={Fault.CRASH: 1}),
    Feature(
        name="driver-dies",
        summary="the driver dies",
        changes={"mortal": ("driver",)},
        budgets={Fault.CRASH: 1},
        without=frozenset({"crash"}),
    ),
    Feature(name="lost-reply", summary="a reply is lost", budgets={Fault.LOST_REPLY: 1}),
    Feature(name="failure", summary="a call fails", budgets={Fault.FAILURE: 1}),
    Feature(
        name="contention",
        summary="the store refuses a conditional write because of another one, which fails",
        budgets={Fault.CONTENTION: 2},
    ),
    Feature(
        name="partition",
        summary="an executor is cut off from the driver, or the driver from others",
        budgets={Fault.PARTITION: 1},
    ),
    Feature(
        name="storm",
        summary="every fault may happen, several times",
        budgets={Fault.CRASH: 3, Fault.PARTITION: 2, Fault.LOST_REPLY: 2, Fault.FAILURE: 2, Fault.CONTENTION: 2},
        without=frozenset({"crash", "driver-dies", "lost-reply", "failure", "partition", "contention"}),
    ),
    Feature(name="slow", summary="a process that is presumed dead may be alive", budgets={Fault.CLOCK: 1}),
    # --- stores and settings ------------------------------------------------------------------------------------------
    Feature(
        name="renames",
        summary="the store has renames instead of multipart uploads",
        changes={"store": {"limits": None, "rename": True}},
        without=frozenset({"parts"}),
    ),
    Feature(
        name="transactions",
        summary="the store makes many changes in one transaction",
        changes={"store": {"limits": MultipartLimits(min_part_size_bytes=1), "transactions": True}},
        without=frozenset({"renames"}),
    ),
    Feature(
        name="piecemeal",
        summary="listings take several steps, and may show a new object without an older one",
        changes={"piecemeal": True},
    ),
    Feature(
        name="short-log",
        summary="the log keeps one decision",
        changes={"retention": 1},
        without=frozenset({"live-jobs"}),  # live jobs then miss decisions, and are rightly refused
    ),
)

FEATURES: Mapping[str, Feature] = {one.name: one for one in _ALL}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A goal that every combination with certain features must reach.

    Attributes:
        given: the rule applies if the combination has at least one feature of each of these sets.
        unless: the rule does not apply if the combination has any of these features.
    """

    goal: str
    given: tuple[frozenset[str], ...] = ()
    unless: frozenset[str] = frozenset()


def _any(*names: str) -> frozenset[str]:
    return frozenset(names)


_BESIDE = _any("appends", "overwrites", "overwrites-partitions", "busy")
_LATER = _any("then-appends", "then-overwrites")
_DEATH, _RECOVERY = _any("crash", "driver-dies"), _any("recovery", "two-recoveries")
_IN_THE_WAY = _any("fail", "ignore")
_AT_ONCE = _any("transactions")  # no decision is ever left unfinished

_RULES = (
    _Rule(goal="committed", unless=_any("old")),
    _Rule(goal="cleaned-up", unless=_any("old")),
    _Rule(goal="committed", given=(_any("old"),), unless=_any("chosen", *_IN_THE_WAY)),
    _Rule(goal="cleaned-up", given=(_any("old"),), unless=_any("chosen", *_IN_THE_WAY)),
    _Rule(goal="refused", given=(_any("old"), _any("fail"))),
    _Rule(goal="skipped", given=(_any("old"), _any("ignore"))),
    _Rule(goal="aborted", given=(_any("cancel", "lost-reply", "failure"),), unless=_any("old")),
    _Rule(goal="at-once", given=(_AT_ONCE,), unless=_any("old")),
    _Rule(goal="rolled-forward", given=(_DEATH, _RECOVERY), unless=_AT_ONCE),
    _Rule(goal="rolled-back", given=(_DEATH, _RECOVERY)),
    _Rule(goal="fenced", given=(_any("slow"), _RECOVERY)),
    _Rule(goal="second-job", given=(_BESIDE | _LATER,), unless=_any("chosen", *_IN_THE_WAY)),
    _Rule(goal="overtaken", given=(_BESIDE,), unless=_any("chosen", *_IN_THE_WAY)),
    _Rule(goal="helped", given=(_BESIDE,), unless=_any("chosen", *_IN_THE_WAY, *_AT_ONCE)),
    _Rule(goal="after-a-death", given=(_DEATH, _BESIDE | _LATER)),
    _Rule(goal="helped", given=(_DEATH, _LATER), unless=_AT_ONCE),
    _Rule(goal="replaced", given=(_any("overwrite", "partitions"),)),
    _Rule(goal="trimmed", given=(_any("short-log"), _BESIDE | _LATER), unless=_any("chosen", *_IN_THE_WAY)),
    _Rule(goal="aborted", given=(_IN_THE_WAY, _BESIDE), unless=_any("old")),
    _Rule(goal="refused", given=(_any("fail"), _BESIDE)),
    _Rule(goal="skipped", given=(_any("ignore"), _BESIDE)),
    _Rule(goal="skipped", given=(_any("replay"),)),
    _Rule(goal="helped", given=(_any("replay"),), unless=_AT_ONCE),
    _Rule(goal="late-attempt", given=(_any("twins"),)),
    _Rule(goal="read-without", given=(_any("reader"),)),
    _Rule(goal="read-with", given=(_any("reader"),)),
    _Rule(goal="read-between", given=(_any("reader"),), unless=_AT_ONCE),
)

_KIND_IS_ON = 1 / 2
_FEATURE_IS_ON = 1 / 3

_OF_ONE_JOB = _any("C1", "C2", "C3", "C6", "C8", "C9", "C10", "replaced-data", "whole-reads")
"""Properties that assume that no other job replaces anything; `log-order` judges all jobs."""


def combine(features: Iterable[Feature]) -> Scene:
    """Return the scene with these features.

    Raises:
        InvalidRequestError: two of the features exclude each other.
    """
    given = sorted({one.name: one for one in features}.values(), key=lambda one: list(FEATURES).index(one.name))
    names = frozenset(one.name for one in given)
    _require_sense(given, names)
    changes: dict[str, Any] = {}
    budgets: dict[Fault, int] = {}
    for one in given:
        changes.update(one.changes)
        budgets.update(one.budgets)
    at_once = changes.pop("at_once", False)
    others = tuple(replace(other, at_once=at_once) for one in given for other in one.others)
    mode = changes.get("mode")
    collide = any((other.mode or mode) in (_OVERWRITE, _PARTITIONS) for other in others) or (
        others and "chosen" in names
    )
    properties = [name for name in PROPERTIES if not (collide and name in _OF_ONE_JOB)]
    if "chosen" in names and "replaced-data" in properties:
        # In these combinations, a file of the same name replaces another one: see docs/how-to/write-files.md, Modes and
        # names.
        properties.remove("replaced-data")
    return Scene(
        name="+".join(one.name for one in given) or "plain",
        summary="; ".join(one.summary for one in given) or "no fault happens",
        **{"attempts": 1, "files": 1, **changes},
        others=others,
        budgets=budgets,
        properties=tuple(properties),
        reached=_goals(names),
    )


def _require_sense(given: Sequence[Feature], names: frozenset[str]) -> None:
    for one in given:
        against = [other.name for other in given if other.kind == one.kind and one.kind and other is not one]
        against += sorted(names & one.without)
        if against:
            raise InvalidRequestError(
                "two features of a scene exclude each other: leave one out", both=(one.name, against[0])
            )


def _goals(names: frozenset[str]) -> tuple[str, ...]:
    found = [rule.goal for rule in _RULES if all(names & any_ for any_ in rule.given) and not names & rule.unless]
    return tuple(dict.fromkeys(found))


def draw(seed: int, number: int) -> Scene:
    """Draw combination `number` of a seed: at most one feature of each kind, and any features without a kind."""
    chance = SeededRandom(SeededRandom.derive(seed, -1 - number))
    names: list[str] = []
    kinds = sorted({one.kind for one in _ALL if one.kind})
    for kind in chance.shuffled(kinds):
        found = chance.pick([one for one in _ALL if one.kind == kind])
        if chance.happens(_KIND_IS_ON):
            names.append(found.name)
    names += [one.name for one in chance.shuffled(_ALL) if not one.kind and chance.happens(_FEATURE_IS_ON)]
    kept: list[Feature] = []
    for name in names:  # leave out features that exclude an earlier one
        one = FEATURES[name]
        if not any(one.name in other.without or other.name in one.without for other in kept):
            kept.append(one)
    return combine(kept)


def features_of(name: str) -> list[Feature] | None:
    """Return the features in a scene's name; None if one of them is unknown."""
    parts = [part.strip().lower().replace("_", "-") for part in name.split("+")]
    return [FEATURES[part] for part in parts] if all(part in FEATURES for part in parts) else None
