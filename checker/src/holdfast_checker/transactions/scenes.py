"""Define the scenes that ``holdfast check transactions`` explores: one for each way in which transactions can collide.

Most scenes run on both kinds of databases: with commits in one step, and with each statement inside of a commit as a
step (their names end in ``-in-steps``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

from holdfast_checker.kernel.calls import Fault
from holdfast_checker.transactions.actors import Work
from holdfast_checker.transactions.properties import UNIT
from holdfast_checker.transactions.scripts import Content, Script
from holdfast_checker.transactions.worlds import Scene

KINDS: Mapping[str, Script] = {
    "read": (("get", "x"),),
    "scan": (("scan", "w", "z"),),
    "count": (("count", "w", "z", "total"),),
    "put": (("put", "x", "mark"),),
    "append": (("append", "x", "mark"),),
    "insert": (("insert", "x", "mark"),),
    "create": (("create", "x", "mark"),),
    "delete": (("delete", "x"),),
    "remove": (("remove", "x"),),
    "add": (("add", "x", 1),),
    "read-add": (("get", "x"), ("add", "x", 1)),
    "bounded": (("bounded", "x", 1, 4),),
}
"""What a transaction may do with the record x, which is in the range from w to z."""

_COUNTING = {"scan", "count"}
_STARTS: Mapping[str, Mapping[str, Content]] = {"absent": {}, "present": {"x": ("v", 3)}}
_IN_STEPS = "-in-steps"


def _kinds_of(names: Sequence[str], family: str, start: str, stepped: bool) -> Scene:
    """Return the scene in which several transactions of these kinds run at the same time."""
    looks = not _COUNTING.isdisjoint(names)
    works = {}
    for who, kind in zip(("ann", "bob", "eve"), names, strict=False):
        script = tuple(tuple(who if part == "mark" else part for part in step) for step in KINDS[kind])
        works[who] = (Work(script=script, attempts=2, looks=looks),)
    # Inserts of what is there, and adds over a bound, are given up.
    fits = "insert" not in names or (start == "absent" and names.count("insert") == 1 and len(set(names)) == len(names))
    return Scene(
        name=f"{family}{_IN_STEPS * stepped}/{start}:{'+'.join(names)}",
        summary=f"transactions on one record, which is {start} at the start: {', '.join(names)}",
        works=works,
        start=_STARTS[start],
        stepped=stepped,
        reached=("all",) if fits and names.count("bounded") < 2 else (),
    )


def pairs(stepped: bool) -> Iterator[Scene]:
    """Yield a scene for each pair of kinds."""
    for start in _STARTS:
        for names in combinations_with_replacement(KINDS, 2):
            yield _kinds_of(names, "pairs", start, stepped)


def triples(stepped: bool) -> Iterator[Scene]:
    """Yield a scene for each three kinds."""
    for start in _STARTS:
        for names in combinations_with_replacement(KINDS, 3):
            yield replace(_kinds_of(names, "triples", start, stepped), reached=())


def _in_steps(scene: Scene) -> Scene:
    """Return a scene with statements as steps. Nothing comes late there: a broken connection is rolled back."""
    return replace(scene, name=f"{scene.name}{_IN_STEPS}", stepped=True)


def _works(**scripts: Script) -> dict[str, tuple[Work, ...]]:
    """Return one transaction for each actor."""
    return {who: (Work(script=script),) for who, script in scripts.items()}


def _looking(**scripts: Script) -> dict[str, tuple[Work, ...]]:
    """Return one transaction for each actor, which reads the guard before it creates records."""
    return {who: (Work(script=script, looks=True),) for who, script in scripts.items()}


def _unit(owner: str, number: int) -> Work:
    return Work(script=(("add", f"{UNIT}{owner} {number}", 1),), progress=(owner, number), repeats=2)


_ON = {"x": ("on", 0), "y": ("on", 0)}
_PAIR = {"x": ("", 0), "y": ("", 0)}
_MARKED = (("unless", "done"), ("insert", "done", ""), ("add", f"{UNIT}1", 1))

_GENERAL = (
    Scene(
        name="increments",
        summary="three transactions read a record and write it",
        works=_works(**{who: (("append", "x", who),) for who in ("ann", "bob", "eve")}),
        reached=("all", "conflict"),
    ),
    Scene(
        name="write-skew",
        summary="each of two transactions turns its record off if the other one is on",
        works=_works(ann=(("swap_off", "x", "y"),), bob=(("swap_off", "y", "x"),)),
        start=_ON,
        reached=("all", "conflict"),
    ),
    Scene(
        name="skew-through-absence",
        summary="each of two transactions creates its record if the other one does not exist",
        works=_works(ann=(("unless", "y"), ("put", "x", "")), bob=(("unless", "x"), ("put", "y", ""))),
        reached=("all", "conflict"),
    ),
    Scene(
        name="phantom",
        summary="two transactions insert into a range if it is empty, and a third one scans it",
        works=_looking(
            ann=(("claim", "w", "z", "w1"),),
            bob=(("claim", "w", "z", "w2"),),
            eve=(("scan", "w", "z"), ("put", "e", "")),
        ),
        reached=("all", "conflict"),
    ),
    Scene(
        name="two-ranges",
        summary="each of two transactions inserts into a range if another range is empty, into which the other inserts",
        works=_looking(
            ann=(("claim", "left/", "left0", "right/1"),),
            bob=(("claim", "right/", "right0", "left/1"),),
        ),
        reached=("all", "conflict"),
    ),
    Scene(
        name="phantom-page",
        summary="a transaction reads the first two records of a range, and another one inserts and deletes there",
        works=_looking(ann=(("scan", "w", "z", 2), ("put", "a", "")), bob=(("create", "w2", ""), ("remove", "w1"))),
        start={"w1": ("", 0), "w3": ("", 0), "w4": ("", 0)},
        reached=("all", "conflict"),
    ),
    Scene(
        name="empty-directory",
        summary="a transaction removes a directory if it is empty, and another one creates a file in it if it exists",
        works={
            "ann": (Work(script=(("remove_empty", "w", "z", "guard"),)),),
            "bob": (Work(script=(("create_below", "guard", "w1"),)),),
        },
        start={"guard": ("directory", 0)},
        reached=("all", "conflict"),
    ),
    Scene(
        name="mixed-state",
        summary="a transaction fails if two records differ, which it reads one by one while another one writes both",
        works=_works(
            ann=(("together", "x", "y"), ("put", "seen", "")), bob=(("append", "x", "b"), ("append", "y", "b"))
        ),
        start=_PAIR,
        reached=("all", "conflict"),
    ),
    Scene(
        name="audit",
        summary="two transactions write two records each in another order, and a third one reads both",
        works=_works(
            ann=(("append", "x", "a"), ("append", "y", "a")),
            bob=(("append", "y", "b"), ("append", "x", "b")),
            eve=(("get", "x"), ("get", "y")),
        ),
        start=_PAIR,
        reached=("all", "conflict"),
    ),
    Scene(
        name="read-only-anomaly",
        summary="one withdraws from y after it has seen x, another one deposits in x, a third one reads x and y",
        works=_works(
            ann=(("get_many", "x", "y"), ("append", "y", "-11")),
            bob=(("append", "x", "+20"),),
            eve=(("get", "x"), ("get", "y")),
        ),
        start=_PAIR,
        reached=("all", "conflict"),
    ),
    Scene(
        name="recreated",
        summary="a record is deleted and created again, while another transaction changes it",
        works={
            "ann": (Work(script=(("append", "x", "a"),)),),
            "bob": (Work(script=(("delete", "x"),)), Work(script=(("create", "x", "new"),))),
        },
        start={"x": ("v", 0)},
        reached=("all", "conflict"),
    ),
    Scene(
        name="own-writes",
        summary="a transaction reads what it has written itself, while another one changes it",
        works=_looking(
            ann=(
                *(("add", "x", 1), ("get", "x"), ("put", "y", "a"), ("get", "y"), ("delete", "w1"), ("add", "w2", 2)),
                *(("scan", "w", "z"), ("get_many", "w1", "w2", "w3"), ("delete", "w3"), ("create", "w3", "a")),
            ),
            bob=(("append", "x", "b"), ("delete", "w1")),
        ),
        start={"w1": ("", 0), "x": ("v", 1)},
        reached=("all", "conflict"),
    ),
    Scene(
        name="counters",
        summary="three transactions add to the same two counters, and two of them have a bound",
        works=_works(
            ann=(("bounded", "x", 1, 2), ("add", "y", 1)),
            bob=(("add", "y", 2), ("bounded", "x", 1, 2)),
            eve=(("add", "x", 1), ("get", "z")),
        ),
        reached=("given-up",),
    ),
    Scene(
        name="groups",
        summary="two actors commit two transactions each as a group, and a third one a single transaction",
        groups={
            "group": ((("add", "x", 1), ("get", "y")), (("bounded", "x", 2, 4), ("insert", "b", "1"))),
            "pair": ((("bounded", "x", 2, 4), ("put", "c", "2")), (("insert", "b", "2"), ("add", "x", 1))),
        },
        works=_works(ann=(("append", "y", "a"),)),
        reached=("conflict",),
    ),
    Scene(
        name="crossing-groups",
        summary="two groups of two write the same two records, in another order",
        groups={
            "group": ((("put", "x", "1"),), (("put", "y", "1"),)),
            "pair": ((("put", "y", "2"),), (("put", "x", "2"),)),
        },
        reached=("all",),
    ),
    Scene(
        name="bounded-group",
        summary="a group of three adds to one counter, two of which have a bound, while another transaction adds to it",
        groups={"group": ((("add", "x", 1),), (("bounded", "x", 1, 2),), (("bounded", "x", 2, 3),))},
        works=_works(ann=(("add", "x", 1), ("get", "y"))),
        reached=("given-up",),
    ),
    Scene(
        name="errors",
        summary="a function fails because of what it has really read",
        works=_works(ann=(("together", "x", "y"),), bob=(("append", "x", "b"),)),
        start=_ON | {"x": ("off", 0)},
        reached=("error",),
    ),
)

_FAULTS = (
    Scene(
        name="twins",
        summary="two attempts at a task run the same two units of work; replies are lost, commits come late",
        works={who: (_unit("owner", 1), _unit("owner", 2)) for who in ("attempt 0", "attempt 1")},
        budgets={Fault.LOST_REPLY: 1},
        reached=("done", "unknown"),
    ),
    Scene(
        name="second-attempt",
        summary="two attempts at a task run the same unit of work, and an attempt dies, or a call fails",
        works={who: (_unit("owner", 1),) for who in ("attempt 0", "attempt 1")},
        budgets={Fault.CRASH: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1},
        reached=("done", "unknown"),
    ),
    Scene(
        name="marker",
        summary="the marker of a unit of work is inserted with its effect; replies are lost, commits come late",
        works={who: (Work(script=_MARKED, repeats=1),) for who in ("attempt 0", "attempt 1")},
        budgets={Fault.LOST_REPLY: 1, Fault.CRASH: 1},
        reached=("unknown",),
    ),
    Scene(
        name="unmarked",
        summary="a unit of work has neither progress nor a marker, and the reply of its commit is lost",
        works=_works(ann=(("get", "x"), ("add", f"{UNIT}1", 1)), bob=(("append", "x", "b"),)),
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "unknown"),
    ),
    Scene(
        name="lost",
        summary="two transactions collide, one reply is lost, and one call fails",
        works=_works(ann=(("append", "x", "a"), ("get", "y")), bob=(("append", "x", "b"), ("delete", "y"))),
        start=_PAIR,
        budgets={Fault.LOST_REPLY: 1, Fault.FAILURE: 1},
        reached=("all", "unknown"),
    ),
)

_CRASHES = (
    Scene(
        name="database-crash",
        summary="a record is written twice while another one appends to it, and the database crashes and forgets",
        works={
            "ann": (Work(script=(("append", "x", "a"),)),),
            "bob": (Work(script=(("put", "x", "b"),)), Work(script=(("put", "x", "c"),))),
        },
        crashes=1,
        reached=("all", "conflict", "crashed"),
    ),
    Scene(
        name="database-crash-and-ranges",
        summary="each of two transactions inserts into a range if it is empty, and the database crashes and forgets",
        works=_looking(ann=(("claim", "w", "z", "w1"),), bob=(("claim", "w", "z", "w2"), ("get", "x"))),
        crashes=1,
        reached=("all", "conflict", "crashed"),
    ),
    Scene(
        name="database-crash-and-markers",
        summary="two attempts at a unit of work that inserts a marker, and the database crashes twice and forgets",
        works={who: (Work(script=_MARKED, repeats=1),) for who in ("attempt 0", "attempt 1")},
        crashes=2,
        reached=("all", "crashed"),
    ),
)

_STEPPED = (
    Scene(
        name="lock-order",
        summary="three transactions read one of three records each, and write another one, in a circle",
        works=_works(
            ann=(("get", "y"), ("put", "x", "a")),
            bob=(("get", "z"), ("put", "y", "b")),
            eve=(("get", "x"), ("put", "z", "e")),
        ),
        start={"x": ("", 0), "z": ("", 0)},
        stepped=True,
        reached=("all", "conflict"),
    ),
    Scene(
        name="broken-connection",
        summary="two transactions collide, and one of them dies or loses its connection while it holds locks",
        works=_works(ann=(("append", "x", "a"), ("create", "y", "a")), bob=(("append", "y", "b"), ("delete", "x"))),
        start={"x": ("", 0)},
        stepped=True,
        budgets={Fault.CRASH: 1, Fault.FAILURE: 1},
        reached=("all", "conflict"),
    ),
)


SCENES: Mapping[str, Scene] = {
    scene.name: scene
    for scenes in (
        pairs(stepped=False),
        pairs(stepped=True),
        *((scene, _in_steps(scene)) for scene in (*_GENERAL, *_FAULTS)),
        _CRASHES,
        _STEPPED,
    )
    for scene in scenes
}
"""The quick scenes: all of them together take seconds."""

SMALL: Mapping[str, Scene] = {
    scene.name: scene
    for scene in (
        *triples(stepped=False),
        *triples(stepped=True),
        *(
            replace(
                scene,
                name=f"faulty-{scene.name}",
                summary=f"{scene.summary}; a crash, a lost reply and a failure, each once, anywhere",
                budgets={Fault.CRASH: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1},
                reached=(),
            )
            for scene in _GENERAL
            if len(scene.works) + len(scene.groups) < 3
        ),
    )
}
"""Larger scenes, which take minutes."""

MANY: Mapping[str, str] = {
    "pairs": "every pair of kinds of transactions on one record, which is absent or present at the start",
    "pairs-in-steps": "the same, with each statement inside of a commit as a step",
    "triples": "every three kinds of transactions on one record",
    "triples-in-steps": "the same, with each statement inside of a commit as a step",
}
"""What happens in the families of many scenes."""
