"""Define the scenes that `holdfast check` explores, from the quickest to the largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit import SaveMode
from holdfast.stores.base import MultipartLimits
from holdfast_checker.committers.actors import OtherJob
from holdfast_checker.committers.cluster import Order
from holdfast_checker.committers.features import combine, features_of
from holdfast_checker.committers.worlds import Scene
from holdfast_checker.kernel.calls import Fault

_COMMITTED, _ENDED = ("committed", "cleaned-up"), ("committed", "cleaned-up", "aborted")
_RECOVERED = ("rolled-forward", "rolled-back")

_ONE_TASK = (
    Scene(
        name="speculation",
        reached=(*_COMMITTED, "late-attempt"),
        summary="two attempts at a task run concurrently, as in Spark's Python sources: commit, then report",
        tasks=1,
        bystanders=True,
    ),
    Scene(
        name="asking",
        reached=_COMMITTED,
        summary="two attempts at a task run concurrently and ask the driver before they commit, as in Hadoop",
        tasks=1,
        order=Order.ASK_FIRST,
        bystanders=True,
    ),
    Scene(
        name="partition",
        reached=_ENDED,
        summary="attempts ask before they commit, and one is cut off from the driver: another takes over, both run on",
        tasks=1,
        order=Order.ASK_FIRST,
        budgets={Fault.PARTITION: 1},
    ),
    Scene(
        name="crash",
        reached=(*_COMMITTED, *_RECOVERED),
        summary="a process dies between any two calls, and recovery follows",
        tasks=1,
        recovery=1,
        bystanders=True,
        budgets={Fault.CRASH: 1},
    ),
    Scene(
        name="lost-reply",
        reached=_ENDED,
        summary="one call takes effect, and its reply is lost",
        tasks=1,
        recovery=1,
        budgets={Fault.LOST_REPLY: 1},
    ),
    Scene(
        name="failure",
        reached=_ENDED,
        summary="one call fails and has no effect",
        tasks=1,
        recovery=1,
        budgets={Fault.FAILURE: 1},
    ),
    Scene(
        name="cancel",
        reached=_ENDED,
        summary="a user cancels the job while its tasks run",
        tasks=1,
        cancel=True,
        bystanders=True,
    ),
    Scene(
        name="second-driver",
        reached=_ENDED,
        summary="the driver is cut off or dies, and a second one commits or aborts the same job",
        tasks=1,
        attempts=1,
        second_driver=True,
        budgets={Fault.PARTITION: 1, Fault.CRASH: 1},
    ),
    Scene(
        name="slow-driver",
        reached=(*_ENDED, *_RECOVERED, "fenced"),
        summary="the driver is slow, recovery presumes it dead, and it keeps running",
        tasks=1,
        attempts=1,
        recovery=1,
        budgets={Fault.CLOCK: 1},
    ),
    Scene(
        name="overwrite",
        reached=(*_ENDED, *_RECOVERED, "replaced"),
        summary="the job replaces data, and a process dies between any two calls",
        tasks=1,
        attempts=1,
        mode=SaveMode.OVERWRITE,
        old=("day=0", "day=1"),
        recovery=1,
        budgets={Fault.CRASH: 1},
    ),
    Scene(
        name="other-job",
        reached=(*_COMMITTED, "second-job", "overtaken", "helped"),
        summary="another job runs on the same destination at the same time",
        tasks=1,
        attempts=1,
        others=(OtherJob(),),
    ),
    Scene(
        name="reader",
        reached=(*_COMMITTED, "read-without", "read-with", "read-between"),
        summary="a reader reads through Holdfast while the job runs",
        tasks=1,
        attempts=1,
        reader=True,
        budgets={Fault.CRASH: 1},
    ),
)

_NAMES = """
overwrite+appends+at-once
overwrite+overwrites+at-once
partitions+overwrites-partitions+at-once
fail+appends+at-once
ignore+appends+at-once
fail+old
ignore+old
chosen+appends+at-once
chosen+overwrite+overwrites+at-once
overwrite+replay+at-once
short-log+then-appends
short-log+busy+at-once
piecemeal+renames+overwrite+appends+at-once
one-task+busy+at-once+piecemeal
one-task+contention+overwrite
replay+at-once+contention
threads+overwrite+driver-dies+recovery
overwrite+then-overwrites+driver-dies
partitions+then-appends+driver-dies
replay+at-once+driver-dies
overwrite+crash+recovery
overwrite+renames+crash+recovery
overwrite+second-driver+driver-dies
overwrite+lost-reply
overwrite+failure
parts+crash+recovery
chosen+crash+recovery
one-task+overwrite+reader
one-task+appends
one-task+replay
overwrite+appends+at-once+driver-dies+recovery
transactions+overwrite+appends+at-once
transactions+overwrite+overwrites+at-once
transactions+partitions+overwrites-partitions+at-once
transactions+chosen+appends+at-once
transactions+chosen+overwrite+overwrites+at-once
transactions+short-log+busy+at-once
transactions+threads+overwrite+driver-dies+recovery
transactions+partitions+then-appends+driver-dies
transactions+replay+at-once+driver-dies
transactions+overwrite+crash+recovery
transactions+overwrite+second-driver+driver-dies
transactions+overwrite+lost-reply
transactions+overwrite+failure
transactions+one-task+slow+recovery
transactions+one-task+overwrite+reader
transactions+one-task+overwrites
"""

COMBINED: Mapping[str, Scene] = {
    scene.name: replace(scene, forgetful=not scene.chosen)
    for scene in (combine(features_of(name) or ()) for name in _NAMES.split())
}
"""Combinations of features for a committer with a log, with about 200,000 states in all.

Processes may forget in these scenes (`Scene.forgetful`), except in those with chosen names: exploring the scenes with
and without forgetting gave the same results. In other combinations, no process forgets.
"""

SCENES: Mapping[str, Scene] = {scene.name: scene for scene in _ONE_TASK}
"""Small scenes, each about one situation. To explore one of them takes seconds for any committer."""

_TRANSACTIONS: Mapping[str, object] = {"limits": MultipartLimits(min_part_size_bytes=1), "transactions": True}

_STORES = (
    Scene(
        name="renaming-store",
        reached=_ENDED,
        summary="like second-driver, on a store that renames files: two_phase publishes by renaming there",
        tasks=1,
        attempts=1,
        second_driver=True,
        store={"rename": True},
        budgets={Fault.PARTITION: 1, Fault.CRASH: 1},
    ),
    Scene(
        name="namespace-store",
        reached=(*_ENDED, "rolled-back", "replaced", "at-once"),
        summary="like overwrite, on a file system in a database, which has transactions too",
        tasks=1,
        attempts=1,
        mode=SaveMode.OVERWRITE,
        old=("day=0", "day=1"),
        recovery=1,
        store={**_TRANSACTIONS, "rename": True},
        budgets={Fault.CRASH: 1},
    ),
    Scene(
        name="stale-listing",
        reached=("committed",),
        summary="a listing misses one existing object, which committers that rely on listings cannot tolerate",
        attempts=1,
        recovery=1,
        budgets={Fault.STALE_LISTING: 1},
    ),
)

STORES: Mapping[str, Scene] = {scene.name: scene for scene in _STORES}
"""Scenes on stores that differ from those for which most committers were made."""

_TWO_TASKS = "two tasks, two consecutive attempts at each, two files; recovery"
_ANYTHING_ONCE = {Fault.CRASH: 1, Fault.PARTITION: 1, Fault.LOST_REPLY: 1}

_SMALL = (
    Scene(
        name="small-speculation",
        reached=(*_COMMITTED, "late-attempt"),
        summary="two tasks, two concurrent attempts at each, two files; live jobs in the destination and beside it",
        bystanders=True,
        forgetful=True,
    ),
    Scene(
        name="small-lost-partition",
        reached=(*_ENDED, "late-attempt"),
        summary=f"{_TWO_TASKS}; a lost reply and a partition, each once, anywhere",
        speculation=False,
        recovery=1,
        forgetful=True,
        budgets={Fault.LOST_REPLY: 1, Fault.PARTITION: 1},
    ),
    Scene(
        name="small-lost-crash",
        reached=(*_ENDED, *_RECOVERED),
        summary=f"{_TWO_TASKS}; a lost reply and a crash, each once, anywhere",
        speculation=False,
        recovery=1,
        forgetful=True,
        budgets={Fault.LOST_REPLY: 1, Fault.CRASH: 1},
    ),
    Scene(
        name="small-crash-partition",
        reached=(*_ENDED, *_RECOVERED),
        summary=f"{_TWO_TASKS}; a crash and a partition, each once, anywhere",
        speculation=False,
        recovery=1,
        forgetful=True,
        budgets={Fault.CRASH: 1, Fault.PARTITION: 1},
    ),
    Scene(
        name="small-drivers",
        reached=(*_ENDED, *_RECOVERED),
        summary="one task, two consecutive attempts, two files; a second driver, recovery; a crash, a "
        "partition and a lost reply, each once, anywhere",
        tasks=1,
        speculation=False,
        second_driver=True,
        recovery=1,
        forgetful=True,
        budgets=_ANYTHING_ONCE,
    ),
)

SMALL: Mapping[str, Scene] = {scene.name: scene for scene in _SMALL}
"""Larger scenes. To explore one of them takes minutes."""


def _on_transactions(scene: Scene) -> Scene:
    """Return the same scene on a store with transactions, where no decision of a commit is left unfinished.

    Nor does the driver put any list before its decision: without other faults, no lost reply makes it abort.
    """
    missed = ("rolled-forward", "helped", "read-between", *(("aborted",) if scene.name == "lost-reply" else ()))
    reached = [goal for goal in scene.reached if goal not in missed]
    return replace(
        scene,
        name=f"transactional-{scene.name}",
        summary=f"{scene.summary}; the store has transactions",
        store=_TRANSACTIONS,
        reached=(*reached, "at-once"),
    )


TRANSACTIONAL: Mapping[str, Scene] = {
    scene.name: scene for scene in map(_on_transactions, (*SCENES.values(), *SMALL.values()))
}
"""The small scenes and the larger ones for `two_phase` on a store with transactions."""

ALL_ONCE = Scene(
    name="small-all",
    reached=(*_ENDED, *_RECOVERED),
    summary=f"{_TWO_TASKS}; a crash, a partition and a lost reply, each once, anywhere",
    speculation=False,
    recovery=1,
    forgetful=True,
    budgets=_ANYTHING_ONCE,
)
"""About 10^7 states: exploring takes 15 minutes or more, and 10 GB of memory. Explored only if the user names it."""

LARGE = Scene(
    name="large",
    summary="three tasks, three attempts at each, three files, every actor, several faults of each kind",
    tasks=3,
    attempts=3,
    files=3,
    second_driver=True,
    recovery=2,
    reader=True,
    cancel=True,
    bystanders=True,
    budgets={Fault.CRASH: 3, Fault.PARTITION: 2, Fault.LOST_REPLY: 2, Fault.FAILURE: 2, Fault.CLOCK: 1},
)
"""The scene for random walks."""
