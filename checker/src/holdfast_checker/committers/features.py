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


@dataclass(frozen=True, slots=True)
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
_NAMESAKE: Mapping[str, Any] = {"old": ("day=0", "day=01"), "foreign": True}
"""Existing data: one partition that the job writes, and one whose name begins with that partition's name."""


def _feature(name: str, summary: str, *, kind: str = "", without: str = "", **changes: Any) -> Feature:
    """Return a feature that sets fields of `Scene`.

    Args:
        without: features that it excludes, with spaces between them.
        changes: among them `budgets`, and `others`, the other jobs.
    """
    budgets, others = changes.pop("budgets", {}), changes.pop("others", ())
    excluded = frozenset(without.split())
    return Feature(name, summary, changes, budgets, others, kind, excluded)


_STORM = {Fault.CRASH: 3, Fault.PARTITION: 2, Fault.LOST_REPLY: 2, Fault.FAILURE: 2, Fault.CONTENTION: 2}
_APPENDS, _OVERWRITES = OtherJob(mode=SaveMode.APPEND), OtherJob(mode=_OVERWRITE)
_IN_PARTITIONS = OtherJob(mode=_PARTITIONS, directories=("day=0", "day=1"))
_LATER_APPENDS, _LATER_OVERWRITES = replace(_APPENDS, later=True), replace(_OVERWRITES, later=True)
_TWO_APPEND, _REPLAY = replace(_APPENDS, times=2), OtherJob(name="replay", batch=0)
_TRANSACTIONS: Mapping[str, Any] = {"limits": MultipartLimits(min_part_size_bytes=1), "transactions": True}
_IN_TURN: Mapping[str, Any] = {"attempts": 2, "speculation": False}
_NO_FAIL, _NO_REPLAY = "fail ignore", "fail ignore partitions chosen live-jobs"
_FAULTS = "crash driver-dies lost-reply failure partition contention"

_ALL = (
    # --- the job ------------------------------------------------------------------------------------------------------
    _feature("one-task", "one task", kind="tasks", tasks=1),
    _feature("three-tasks", "three tasks", kind="tasks", tasks=3),
    _feature("twins", "two concurrent attempts at each task", kind="attempts", attempts=2),
    _feature("retries", "two attempts at each task one after the other", kind="attempts", **_IN_TURN),
    _feature("asks", "attempts ask before they commit", order=Order.ASK_FIRST),
    _feature("two-files", "two files per attempt", kind="files", files=2),
    _feature("parts", "files of three parts", parts=3),
    _feature("threads", "two concurrent calls in each process", threads=2),
    _feature("chosen", "jobs choose the names of their files, and all choose the same", chosen=True),
    # --- existing data, and the mode ----------------------------------------------------------------------------------
    _feature("old", "the destination holds data", kind="old", **_NAMESAKE),
    _feature("overwrite", "the job overwrites", kind="mode", mode=_OVERWRITE, **_NAMESAKE),
    _feature(
        "partitions", "the job overwrites the partitions that it writes", kind="mode", mode=_PARTITIONS, **_NAMESAKE
    ),
    _feature("fail", "the job fails if the destination holds data", kind="mode", mode=SaveMode.FAIL),
    _feature("ignore", "the job does nothing if the destination holds data", kind="mode", mode=SaveMode.IGNORE),
    # --- other jobs ---------------------------------------------------------------------------------------------------
    _feature("appends", "another job appends", kind="other", others=(_APPENDS,)),
    _feature("overwrites", "another job overwrites", kind="other", without=_NO_FAIL, others=(_OVERWRITES,)),
    _feature(
        "overwrites-partitions",
        "another overwrites the partitions that it writes",
        kind="other",
        without=_NO_FAIL,
        others=(_IN_PARTITIONS,),
    ),
    _feature("then-appends", "another job appends after the driver is gone", kind="other", others=(_LATER_APPENDS,)),
    _feature(
        "then-overwrites", "another job overwrites after the driver is gone", kind="other", others=(_LATER_OVERWRITES,)
    ),
    _feature("busy", "two other jobs append, one after the other", kind="other", others=(replace(_APPENDS, times=2),)),
    _feature(
        "replay",
        "another driver writes the same batch of a stream",
        kind="other",
        without=_NO_REPLAY,
        batch=0,
        others=(_REPLAY,),
    ),
    _feature("at-once", "each of them runs to its end without interruption", at_once=True),
    _feature("live-jobs", "live jobs exist in the destination and beside it", bystanders=True),
    # --- other actors -------------------------------------------------------------------------------------------------
    _feature("reader", "a reader through Holdfast", reader=True),
    _feature("recovery", "recovery", kind="recovery", recovery=1),
    _feature("two-recoveries", "two concurrent recoveries", kind="recovery", recovery=2),
    _feature("second-driver", "a second driver for the same job", second_driver=True),
    _feature("cancel", "a user cancels the job", cancel=True),
    # --- faults -------------------------------------------------------------------------------------------------------
    _feature("crash", "a process dies", budgets={Fault.CRASH: 1}),
    _feature("driver-dies", "the driver dies", without="crash", mortal=("driver",), budgets={Fault.CRASH: 1}),
    _feature("lost-reply", "a reply is lost", budgets={Fault.LOST_REPLY: 1}),
    _feature("failure", "a call fails", budgets={Fault.FAILURE: 1}),
    _feature(
        "contention", "the store refuses a conditional write because of another one", budgets={Fault.CONTENTION: 2}
    ),
    _feature(
        "partition", "an executor is cut off from the driver, or the driver from others", budgets={Fault.PARTITION: 1}
    ),
    _feature("storm", "every fault may happen, several times", without=_FAULTS, budgets=_STORM),
    _feature("slow", "a process that is presumed dead may be alive", budgets={Fault.CLOCK: 1}),
    # --- stores and settings ------------------------------------------------------------------------------------------
    _feature(
        "renames",
        "the store has renames, and no multipart uploads",
        without="parts",
        store={"limits": None, "rename": True},
    ),
    _feature("transactions", "the store makes many changes in one transaction", without="renames", store=_TRANSACTIONS),
    _feature("piecemeal", "listings take several steps, and may miss an older object", piecemeal=True),
    # Live jobs would miss decisions of a short log, and are rightly refused.
    _feature("short-log", "the log keeps one decision", without="live-jobs", retention=1),
)

_NOT_DRAWN = (
    _feature("renames-too", "the store has renames too", without="renames", store={"rename": True}),
    _feature(
        "attempt-dies", "an attempt dies", without="crash driver-dies", mortal=("task",), budgets={Fault.CRASH: 1}
    ),
    _feature("stale-listing", "a listing misses an object", budgets={Fault.STALE_LISTING: 1}),
)
"""Features that random combinations do not have."""

FEATURES: Mapping[str, Feature] = {one.name: one for one in (*_ALL, *_NOT_DRAWN)}


@dataclass(frozen=True, slots=True)
class _Rule:
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
    _Rule("committed", unless=frozenset({"old"})),
    _Rule("cleaned-up", unless=frozenset({"old"})),
    _Rule("committed", (frozenset({"old"}),), frozenset({"chosen", *_IN_THE_WAY})),
    _Rule("cleaned-up", (frozenset({"old"}),), frozenset({"chosen", *_IN_THE_WAY})),
    _Rule("refused", (frozenset({"old"}), frozenset({"fail"}))),
    _Rule("skipped", (frozenset({"old"}), frozenset({"ignore"}))),
    _Rule("aborted", (frozenset({"cancel", "lost-reply", "failure"}),), frozenset({"old"})),
    _Rule("at-once", (_AT_ONCE,), frozenset({"old"})),
    _Rule("rolled-forward", (_DEATH, _RECOVERY), _AT_ONCE),
    _Rule("rolled-back", (_DEATH, _RECOVERY)),
    _Rule("fenced", (frozenset({"slow"}), _RECOVERY)),
    _Rule("second-job", (_BESIDE | _LATER,), frozenset({"chosen", *_IN_THE_WAY})),
    _Rule("overtaken", (_BESIDE,), frozenset({"chosen", *_IN_THE_WAY})),
    _Rule("helped", (_BESIDE,), frozenset({"chosen", *_IN_THE_WAY, *_AT_ONCE})),
    _Rule("after-a-death", (_DEATH, _BESIDE | _LATER)),
    _Rule("helped", (_DEATH, _LATER), _AT_ONCE),
    _Rule("replaced", (frozenset({"overwrite", "partitions"}),)),
    _Rule("trimmed", (frozenset({"short-log"}), _BESIDE | _LATER), frozenset({"chosen", *_IN_THE_WAY})),
    _Rule("aborted", (_IN_THE_WAY, _BESIDE), frozenset({"old"})),
    _Rule("refused", (frozenset({"fail"}), _BESIDE)),
    _Rule("skipped", (frozenset({"ignore"}), _BESIDE)),
    _Rule("skipped", (frozenset({"replay"}),)),
    _Rule("helped", (frozenset({"replay"}),), _AT_ONCE),
    _Rule("late-attempt", (frozenset({"twins"}),)),
    _Rule("read-without", (frozenset({"reader"}),)),
    _Rule("read-with", (frozenset({"reader"}),)),
    _Rule("read-between", (frozenset({"reader"}),), _AT_ONCE),
)

_KIND_IS_ON = 1 / 2
_FEATURE_IS_ON = 1 / 3

_OF_ONE_JOB = frozenset({"C1", "C2", "C3", "C6", "C8", "C9", "C10", "replaced-data", "whole-reads"})
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
        store = {**changes.get("store", {}), **one.changes.get("store", {})}
        changes.update(one.changes, **({"store": store} if store else {}))
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
