"""List the scenes that ``holdfast check units`` explores: one for each way in which units can collide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast_checker.kernel.calls import Fault
from holdfast_checker.units.scene import LIST, Run, Scene
from holdfast_checker.units.scripts import Script

_ON = {"x": "on", "y": "on"}
_EQUAL = {"x": 0, "y": 0}


def _units(**scripts: Script) -> tuple[Mapping[str, Script], ...]:
    """Return a job with one task."""
    return (scripts,)


def _runs(group: int = 1, rounds: int = 7, *, is_locked: bool = False, **jobs: str) -> dict[str, Run]:
    """Return one attempt at the first task of each job, by actor."""
    return {who: Run(job=job, group=group, rounds=rounds, is_locked=is_locked) for who, job in jobs.items()}


_INCREMENT = (("increment", "x"),)
_ADD = (("add", "y", 1),)
_PUT = (("put", "x", 7),)
_TWO_JOBS = {"job": _units(a=_INCREMENT, b=_INCREMENT), "other": _units(p=_INCREMENT)}
_SKEW = {"job": _units(a=(("swap_off", "x", "y"),)), "other": _units(p=(("swap_off", "y", "x"),))}
_CLAIMS = {"job": _units(a=(("claim", "w", "w1"),)), "other": _units(p=(("claim", "w", "w2"),))}

_CONFLICTS = (
    Scene(
        name="increments",
        summary="units of two tasks and of another job read a cell, and write the next number",
        jobs={"job": ({"a": _INCREMENT}, {"b": _INCREMENT}), "other": _units(p=_INCREMENT)},
        runs={"task 0": Run(), "task 1": Run(shard=1), "other": Run(job="other")},
        reached=("all", "conflicts", "deferred"),
    ),
    Scene(
        name="groups",
        summary="a group of three units conflicts with other units, runs one by one, and puts off what still conflicts",
        jobs={
            "job": _units(a=_INCREMENT, b=(("increment", "y"),), c=_INCREMENT),
            "other": _units(p=_INCREMENT, q=(("increment", "y"),)),
        },
        runs={"task": Run(group=3), "other": Run(job="other")},
        reached=("all", "conflicts", "deferred"),
    ),
    Scene(
        name="two-groups",
        summary="two groups of units of different jobs write the same cells",
        jobs={
            "job": _units(a=_INCREMENT, b=(("increment", "y"),)),
            "other": _units(p=(("increment", "y"),), q=_INCREMENT),
        },
        runs=_runs(2, task="job", other="other"),
        reached=("all", "conflicts"),
    ),
    Scene(
        name="write-skew",
        summary="each of two units turns its cell off if the other one is on",
        start=_ON,
        jobs=_SKEW,
        runs=_runs(task="job", other="other"),
        reached=("all", "conflicts", "deferred"),
    ),
    Scene(
        name="adds",
        summary="units add to cells that others put, read and delete",
        start={"x": 5},
        jobs={
            "job": _units(a=(("add", "x", 1),), b=(("read", "x"), ("add", "x", 2))),
            "other": _units(p=(("add", "x", 4),), q=(("put", "x", 8), ("add", "x", 1)), r=(("delete", "x"),)),
        },
        runs={"task": Run(group=2), "other": Run(job="other")},
        reached=("all", "conflicts"),
    ),
    Scene(
        name="read-add",
        summary="two units read a cell, and add to it",
        jobs={"job": _units(a=(("read", "x"), ("add", "x", 1))), "other": _units(p=(("read", "x"), ("add", "x", 1)))},
        runs=_runs(task="job", other="other"),
        reached=("all", "conflicts"),
    ),
    Scene(
        name="phantom",
        summary="two units insert a row if there is none with a prefix, and a third one counts these rows",
        jobs={**_CLAIMS, "third": _units(q=(("count", "w", "total"),))},
        runs=_runs(task="job", other="other", third="third"),
        reached=("all", "conflicts", "deferred"),
    ),
    Scene(
        name="come-and-go",
        summary="units create and delete rows that others read and count",
        start={"w1": 1},
        jobs={
            "job": _units(a=(("create", "w2", 1), ("delete", "w1")), b=(("count", "w", "total"),)),
            "other": _units(p=(("read", "w1"), ("create", "w1", 2)), q=(("delete", "w2"), ("add", "w2", 3))),
        },
        runs=_runs(2, task="job", other="other"),
        reached=("all", "conflicts"),
    ),
    Scene(
        name="stale-reads",
        summary="a unit fails if two cells differ, which never do, while others change both",
        start=_EQUAL,
        jobs={
            "job": _units(a=(("together", "x", "y"), ("put", "z", 1))),
            "other": _units(p=(("move", "x", "y"),), q=(("move", "y", "x"),)),
        },
        runs=_runs(task="job", other="other"),
        reached=("all", "conflicts", "stale"),
    ),
    Scene(
        name="stale-group",
        summary="the last unit of a group fails if two cells differ, while another task changes both",
        start=_EQUAL,
        jobs={
            "job": _units(a=(("add", "z", 1),), b=(("together", "x", "y"),)),
            "other": _units(p=(("move", "x", "y"),)),
        },
        runs=_runs(2, task="job", other="other"),
        reached=("all", "conflicts", "stale"),
    ),
    Scene(
        name="failing-unit",
        summary="the second unit of a group always fails: the first one takes effect, the others never do",
        jobs={"job": _units(a=_INCREMENT, b=(("increment", "x"), ("fail",)), c=_INCREMENT)},
        runs={"task": Run(group=3), "second": Run(group=3, after="task")},
        fails=frozenset({"b"}),
        reached=("failed",),
    ),
)

_TWINS = (
    Scene(
        name="twins",
        summary="two attempts at one task run at the same time, in groups of different sizes",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT, c=_ADD)},
        runs={"attempt 0": Run(), "attempt 1": Run(group=2)},
        reached=("all", "conflicts", "skipped"),
    ),
    Scene(
        name="twins-and-another",
        summary="two attempts at one task run at the same time, and conflict with the units of another job",
        jobs=_TWO_JOBS,
        runs={"attempt 0": Run(group=2), "attempt 1": Run(group=2), "other": Run(job="other")},
        reached=("all", "conflicts", "skipped", "deferred"),
    ),
    Scene(
        name="early-drain",
        summary="a unit that is put off runs again before its group ends, while a twin runs the rest of the group",
        jobs={"job": _units(a=_INCREMENT, b=_ADD), "other": _units(p=_PUT, q=_PUT)},
        runs={"attempt 0": Run(group=2, most_deferred=1), "attempt 1": Run(group=2), "other": Run(job="other")},
        reached=("all", "conflicts", "deferred", "skipped"),
    ),
    Scene(
        name="three-attempts",
        summary="three attempts at one task run at the same time",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT)},
        runs={f"attempt {number}": Run(group=2) for number in range(3)},
        reached=("all", "conflicts", "skipped"),
    ),
    Scene(
        name="two-drivers",
        summary="two drivers begin the same job, run its tasks, and end it",
        jobs={"job": _units(a=_INCREMENT)},
        runs={"driver 0": Run(drives=True), "driver 1": Run(drives=True)},
        reached=("all", "conflicts", "skipped", "fenced"),
    ),
)

_RUNS = (
    Scene(
        name="changed-input",
        summary="two drivers begin the same job, of which one has another row",
        jobs={"job": _units(a=_INCREMENT, b=_ADD)},
        runs={"driver 0": Run(drives=True, without=frozenset({"b"})), "driver 1": Run(drives=True)},
        reached=("refused",),
    ),
    Scene(
        name="ended-run",
        summary="a driver ends a run while its attempts go on as zombies, and their commits arrive late",
        jobs={"job": _units(a=_INCREMENT, b=_ADD)},
        runs={"attempt": Run(run="run")},
        ends="run",
        budgets={Fault.LOST_REPLY: 1},
        reached=("given-up", "unknown"),
    ),
)

_FAULTS = (
    Scene(
        name="second-attempt",
        summary="an attempt dies, and Spark starts another one, while another job writes the same cell",
        jobs=_TWO_JOBS,
        runs={"attempt 0": Run(), "attempt 1": Run(group=2, after="attempt 0"), "other": Run(job="other")},
        budgets={Fault.CRASH: 1},
        reached=("all", "second", "deferred", "skipped"),
    ),
    Scene(
        name="twin-dies",
        summary="one of two attempts dies, anywhere, while another job writes the same cell",
        jobs={"job": _units(a=_INCREMENT), "other": _units(p=_INCREMENT)},
        runs={"attempt 0": Run(), "attempt 1": Run(), "other": Run(job="other")},
        budgets={Fault.CRASH: 1},
        reached=("all", "second", "deferred"),
    ),
    Scene(
        name="lost-replies",
        summary="a task's reply is lost, and the commit takes effect, perhaps late; another job writes the same cell",
        jobs={"job": _units(a=_INCREMENT), "other": _units(p=_INCREMENT)},
        runs={"task": Run(), "other": Run(job="other")},
        budgets={Fault.LOST_REPLY: 2},
        reached=("all", "unknown", "conflicts"),
    ),
    Scene(
        name="lost-group",
        summary="the reply to a group is lost, and a twin runs the same units meanwhile",
        jobs={"job": _units(a=_INCREMENT, b=_ADD, c=_INCREMENT)},
        runs={"attempt 0": Run(group=2), "attempt 1": Run(group=3)},
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "unknown", "skipped"),
    ),
    Scene(
        name="failures",
        summary="calls fail without effect, and are repeated; another job writes the same cell",
        jobs=_TWO_JOBS,
        runs={"task": Run(group=2), "other": Run(job="other")},
        budgets={Fault.FAILURE: 2},
        reached=("all", "unavailable", "conflicts"),
    ),
    Scene(
        name="zombie",
        summary="a driver ends the job, while an attempt that it has given up goes on, and its commits arrive late",
        jobs={"job": _units(a=_INCREMENT)},
        runs={"attempt": Run(), "driver": Run(drives=True)},
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "unknown", "skipped", "fenced"),
    ),
    Scene(
        name="forgotten",
        summary="a job is forgotten while its task runs, with lost replies and commits that arrive late",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT)},
        runs={"task": Run()},
        forgets="job",
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "fenced", "unknown"),
    ),
    Scene(
        name="database-crash",
        summary="the database crashes and loses commits that are not durable; then another attempt goes on",
        jobs={"job": _units(a=_INCREMENT, b=_ADD)},
        runs={"attempt 0": Run(), "attempt 1": Run(after="attempt 0")},
        crashes=1,
        reached=("all", "lost"),
    ),
    Scene(
        name="database-crash-after-conflicts",
        summary="the database crashes and loses commits, among them those of units that were put off",
        jobs=_TWO_JOBS,
        runs={"attempt 0": Run(), "attempt 1": Run(after="attempt 0"), "other": Run(job="other")},
        crashes=1,
        reached=("all", "lost", "deferred"),
    ),
    Scene(
        name="two-database-crashes",
        summary="the database crashes twice while two attempts at one task run",
        jobs={"job": _units(a=_INCREMENT)},
        runs={"attempt 0": Run(), "attempt 1": Run()},
        crashes=2,
        reached=("all", "lost"),
    ),
    Scene(
        name="database-crash-under-a-driver",
        summary="a driver begins a job, runs its task and ends it, while the database crashes and loses commits",
        jobs={"job": _units(a=_INCREMENT)},
        runs={"driver": Run(drives=True)},
        crashes=1,
        reached=("all", "lost"),
    ),
    Scene(
        name="database-crash-under-a-dropped-table",
        summary="the table is dropped and created again while a unit writes to it, and the database forgets some of it",
        jobs={"job": _units(a=_INCREMENT)},
        runs={"task": Run(), "second": Run(after="task")},
        drops=True,
        crashes=1,
        reached=("all", "failed"),
    ),
    Scene(
        name="lost-replies-of-a-driver",
        summary="a driver begins a job, runs its task and ends it, and replies are lost",
        jobs={"job": _units(a=_INCREMENT)},
        runs={"driver": Run(drives=True)},
        budgets={Fault.LOST_REPLY: 2},
        reached=("all", "unknown"),
    ),
    Scene(
        name="dropped-table",
        summary="the table is dropped and created again while units write to it",
        start={"x": 7},
        jobs={"job": _units(a=_INCREMENT, b=_ADD)},
        runs={"task": Run(group=2), "second": Run(after="task")},
        drops=True,
        reached=("all", "failed", "conflicts"),
    ),
)

_AHEAD = (
    Scene(
        name="read-ahead",
        summary="each commit reads what the next unit will read, while another job writes the same cell",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT), "other": _units(p=_INCREMENT)},
        runs={"task": Run(reads_ahead=True), "other": Run(job="other")},
        reached=("all", "ahead", "conflicts", "deferred"),
    ),
    Scene(
        name="read-ahead-groups",
        summary="each commit reads what the next group will read, which it changes itself, as another job does",
        jobs={
            "job": _units(a=_INCREMENT, b=(("increment", "y"),), c=_INCREMENT, d=(("move", "x", "y"),)),
            "other": _units(p=(("move", "y", "x"),)),
        },
        runs={"task": Run(group=2, reads_ahead=True), "other": Run(job="other")},
        reached=("all", "ahead", "conflicts"),
    ),
    Scene(
        name="read-ahead-twins",
        summary="two attempts at one task run at the same time, and their commits read for the next units",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT, c=(("create", "y", 1),))},
        runs={"attempt 0": Run(reads_ahead=True), "attempt 1": Run(group=2, reads_ahead=True)},
        reached=("all", "ahead", "conflicts", "skipped"),
    ),
    Scene(
        name="read-ahead-stale",
        summary="a unit fails if two cells differ, of which one was read ahead, while another job changes both",
        start=_EQUAL,
        jobs={
            "job": _units(a=(("add", "z", 1),), b=(("together", "x", "y"), ("put", "z", 1))),
            "other": _units(p=(("move", "x", "y"),)),
        },
        runs={"task": Run(reads_ahead=True), "other": Run(job="other")},
        reached=("all", "ahead", "conflicts", "stale"),
    ),
    Scene(
        name="read-ahead-lost-replies",
        summary="replies to commits that read for the next unit are lost, and another job writes the same cell",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT), "other": _units(p=_INCREMENT)},
        runs={"task": Run(reads_ahead=True), "other": Run(job="other")},
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "ahead", "unknown", "conflicts"),
    ),
)

_LOCKS = (
    Scene(
        name="locks",
        summary="units lock what they read, which others write, and each is a transaction of its own",
        jobs=_TWO_JOBS,
        runs={"task": Run(is_locked=True), "other": Run(job="other")},
        mortal=False,
        reached=("all", "conflicts"),
    ),
    Scene(
        name="locks-on-both-sides",
        summary="units of two tasks lock what they read, and wait for each other",
        start=_ON,
        jobs=_SKEW,
        runs=_runs(is_locked=True, task="job", other="other"),
        mortal=False,
        reached=("all", "conflicts"),
    ),
    Scene(
        name="locks-and-phantoms",
        summary="units lock ranges and absent rows, and insert there",
        jobs={**_CLAIMS, "third": _units(q=(("read", "w1"), ("create", "v", 1)))},
        runs={"task": Run(is_locked=True), "other": Run(job="other", is_locked=True), "third": Run(job="third")},
        mortal=False,
    ),
    Scene(
        name="absent-rows",
        summary="units lock rows that do not exist, and create them",
        jobs={"job": _units(a=(("create", "x", 1),)), "other": _units(p=(("create", "x", 2),))},
        runs=_runs(is_locked=True, task="job", other="other"),
        mortal=False,
        reached=("all", "conflicts"),
    ),
    Scene(
        name="last-resort",
        summary="a unit that conflicts again and again locks what it reads",
        jobs={"job": _units(a=_INCREMENT), "other": _units(p=_INCREMENT, q=_INCREMENT, r=_INCREMENT)},
        runs={"task": Run(rounds=1), "other": Run(job="other", rounds=1)},
        mortal=False,
        reached=("all", "deferred", "locked"),
    ),
    Scene(
        name="twins-with-locks",
        summary="two attempts at one task lock what they read, and their replies are lost",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT)},
        runs={f"attempt {number}": Run(is_locked=True) for number in range(2)},
        mortal=False,
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "unknown", "skipped"),
    ),
)

_EMITTING = {"a": (("emit", "c"), ("increment", "x")), "b": _INCREMENT, "c": _INCREMENT}
_EMIT_ONE = {"a": (("emit", "b"),), "b": _INCREMENT}
_TWO_WORKERS = {"worker 0": Run(job=LIST), "worker 1": Run(job=LIST, shard=1)}

_WORK_LISTS = (
    Scene(
        name="workers",
        summary="two workers share the units of a work list, which write the same cell",
        work={"a": _INCREMENT, "b": _INCREMENT, "c": _ADD},
        items=("a", "b", "c"),
        runs={"worker 0": Run(job=LIST, group=2), "worker 1": Run(job=LIST, shard=1)},
        reached=("all", "conflicts", "deferred"),
    ),
    Scene(
        name="emitted-work",
        summary="a unit of a work list adds another one, while the list is nearly at its end",
        work=_EMITTING,
        items=("a", "b"),
        runs=_TWO_WORKERS,
        reached=("all", "conflicts"),
    ),
    Scene(
        name="dead-worker",
        summary="a worker dies, and another one takes over what it has claimed",
        work=_EMITTING,
        items=("a", "b"),
        runs={"worker 0": Run(job=LIST, group=2), "worker 1": Run(job=LIST, shard=1)},
        budgets={Fault.CRASH: 1},
        reached=("all", "second"),
    ),
    Scene(
        name="worker-again",
        summary="a worker dies, and Spark starts it again",
        work=_EMITTING,
        items=("a", "b"),
        runs={"worker 0": Run(job=LIST, group=2), "worker 0 again": Run(job=LIST, after="worker 0")},
        budgets={Fault.CRASH: 1},
        reached=("all", "second"),
    ),
    Scene(
        name="worker-twins",
        summary="two attempts at one worker run at the same time",
        work=_EMIT_ONE,
        items=("a",),
        runs={"worker 0": Run(job=LIST, group=2), "worker 0 again": Run(job=LIST)},
        reached=("all",),
    ),
    Scene(
        name="expired-lease",
        summary="the lease of a worker that is only slow runs out, and another one takes over what it has claimed",
        work=_EMIT_ONE,
        items=("a",),
        runs=_TWO_WORKERS,
        budgets={Fault.CLOCK: 2},
        reached=("all",),
    ),
    Scene(
        name="lost-claims",
        summary="replies to claims and to units are lost, and the commits take effect, perhaps late",
        work={"a": _INCREMENT},
        items=("a",),
        runs=_TWO_WORKERS,
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "unknown"),
    ),
    Scene(
        name="lost-emitted-work",
        summary="replies to a worker are lost twice, also to a unit that adds another one",
        work=_EMIT_ONE,
        items=("a",),
        runs={"worker": Run(job=LIST)},
        budgets={Fault.LOST_REPLY: 2},
        reached=("all", "unknown"),
    ),
    Scene(
        name="database-crash-under-a-worker",
        summary="the database crashes twice and loses commits, while a worker runs the units of a work list",
        work=_EMIT_ONE,
        items=("a",),
        runs={"worker": Run(job=LIST)},
        crashes=2,
        reached=("all",),
    ),
    Scene(
        name="database-crash-under-workers",
        summary="the database crashes and loses commits, while two workers share a work list",
        work={"a": _ADD},
        items=("a",),
        runs=_TWO_WORKERS,
        crashes=1,
        reached=("all",),
    ),
    Scene(
        name="emitted-by-a-task",
        summary="the twin attempts at a task add to a work list, on which a worker waits",
        jobs={"job": _units(a=(("emit", "c"),), b=(("emit", "d"),))},
        work={"c": _INCREMENT, "d": _INCREMENT, "e": _INCREMENT},
        items=("e",),
        runs={"attempt 0": Run(group=2), "attempt 1": Run()},
        reached=("all", "skipped"),
    ),
)

SCENES: Mapping[str, Scene] = {
    scene.name: scene
    for scenes in (_CONFLICTS, _TWINS, _RUNS, _FAULTS, _AHEAD, _LOCKS, _WORK_LISTS)
    for scene in scenes
}
"""The quick scenes."""

_LARGE = frozenset(
    {
        "database-crash-after-conflicts",
        "database-crash-under-a-worker",
        "database-crash-under-workers",
        "early-drain",
        "emitted-work",
        "increments",
        "phantom",
        "three-attempts",
        "twins",
        "twins-and-another",
        "two-database-crashes",
        "two-drivers",
        "worker-twins",
        "workers",
    }
)
"""Scenes with 100,000 states and more, if a call fails or a reply is lost."""

_FAULTS_OF_CALLS = (Fault.CRASH, Fault.LOST_REPLY, Fault.FAILURE)


def _with_one_fault(scene: Scene) -> list[Scene]:
    """Return a scene with each kind of fault; locks are released by a death, which may spare others an error."""
    return [
        replace(
            scene,
            name=f"faulty-{scene.name}/{fault.value.replace(' ', '-')}",
            summary=f"{scene.summary}; a {fault.value}, anywhere",
            budgets={fault: 1},
            reached=(),
        )
        for fault in _FAULTS_OF_CALLS
        if (scene.name not in _LARGE if fault is not Fault.CRASH else scene.mortal)
    ]


_LOST_CLAIMS = replace(
    SCENES["lost-claims"],
    name="faulty-lost-claims/emitted",
    summary="replies to claims are lost, and to a unit that adds another one",
    work=_EMIT_ONE,
)

LARGEST: Mapping[str, Scene] = {
    "early-drain-of-others": Scene(
        name="early-drain-of-others",
        summary="a unit that is put off runs again, while a twin has put off another one, and has run what follows",
        jobs={"job": _units(a=_INCREMENT, b=_INCREMENT, c=_ADD), "other": _units(p=_PUT, q=_PUT)},
        runs={"attempt 0": Run(most_deferred=1), "attempt 1": Run(), "other": Run(job="other")},
        reached=("all", "conflicts", "deferred", "skipped"),
    )
}
"""The largest scenes, only if they are named."""

SMALL: Mapping[str, Scene] = {
    _LOST_CLAIMS.name: _LOST_CLAIMS,
    **{scene.name: scene for known in SCENES.values() if not known.budgets for scene in _with_one_fault(known)},
}
"""Larger scenes: those without faults, with one fault of each kind; the largest ones only with a crash."""
