"""Make the scenes that ``holdfast check transactions`` explores: ``scenes.ini`` has one for each way to collide.

Most scenes run on both kinds of databases: with commits in one step, and with each statement inside of a commit as a
step (their names end in ``-in-steps``). Further scenes are all pairs of kinds of transactions on one record, and random
ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

from holdfast.runtime import SeededRandom
from holdfast_checker.framework import subject
from holdfast_checker.framework.scene_files import Fields, by_name, calls_of, read_scenes, with_all_faults
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.transactions.actors import Work
from holdfast_checker.transactions.properties import UNIT
from holdfast_checker.transactions.scripts import Content, Script, Step

_IN_STEPS = "-in-steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(subject.Scene):
    """A short description of a world.

    Attributes:
        works: by actor, its transactions, one after the other.
        groups: by actor, the scripts that it commits as a group.
        start: the records at the start.
        crashes: how often the database crashes, and loses any number of the newest commits; not with `stepped`.
        stepped: whether each statement inside of a commit is a step; if not, a commit is one step.
    """

    works: Mapping[str, tuple[Work, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[Script, ...]] = field(default_factory=dict)
    start: Mapping[str, Content] = field(default_factory=dict)
    crashes: int = 0
    stepped: bool = False


# --- scenes that are declared -----------------------------------------------------------------------------------------
def _make(name: str, fields: Fields) -> Scene:
    """Make a scene of its section.

    Fields: ``looks`` if transactions read the guard before they create records, ``repeats`` for all of them,
    ``crashes``, and ``statements``: ``no`` or ``only`` if the scene runs on one kind of database. Others are actors,
    with ``|`` between their transactions; ``unit 1`` is a transaction that inserts a marker with its effect.
    """
    common, start = fields.common(name), fields.calls("start")
    looks, repeats, crashes = fields.flag("looks"), fields.number("repeats"), fields.number("crashes")
    stepped = fields.pop("statements", "") == "only"
    scripts = {who: tuple(map(_script, works.split(" | "))) for who, works in fields.items()}
    together = {who for who in scripts if who.endswith(_TOGETHER)}
    return Scene(
        **common,
        works={
            who: tuple(_work(script, looks, repeats) for script in works)
            for who, works in scripts.items()
            if who not in together
        },
        groups={who.removesuffix(_TOGETHER): works for who, works in scripts.items() if who in together},
        start={key: (str(value), number[0] if number else 0) for key, value, *number in start},
        crashes=crashes,
        stepped=stepped,
    )


_TOGETHER = " (as one group)"
_VALUES = ("put", "insert", "create", "append")


def _script(text: str) -> Script:
    return tuple((*step[:2], str(step[2])) if step[0] in _VALUES else step for step in calls_of(text))


def _work(script: Script, looks: bool, repeats: int) -> Work:
    if script[0][0] == "unit":
        return _unit(script[0][1], repeats=repeats)
    return Work(script=script, looks=looks, repeats=repeats)


def _unit(number: int, *, repeats: int, looks: bool = False) -> Work:
    """Return a unit of work that happens once, however often it is repeated."""
    marker = f"done {number}"
    script = (("unless", marker), ("insert", marker, ""), ("add", f"{UNIT}{number}", 1))
    return Work(script=script, repeats=repeats, looks=looks)


def _in_steps(scene: Scene) -> Scene:
    """Return a scene with statements as steps. Nothing comes late there: a broken connection is rolled back."""
    return replace(scene, name=f"{scene.name}{_IN_STEPS}", stepped=True)


_DECLARED = read_scenes("holdfast_checker.transactions", _make)


# --- all pairs, and all triples ---------------------------------------------------------------------------------------
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
        reached=("all",) if fits and names.count("bounded") < 2 and len(names) == 2 else (),
    )


def _all_of(family: str, count: int, stepped: bool) -> Iterator[Scene]:
    """Yield a scene for each combination of kinds."""
    for start in _STARTS:
        for names in combinations_with_replacement(KINDS, count):
            yield _kinds_of(names, family, start, stepped)


# --- all of them ------------------------------------------------------------------------------------------------------
_ON_BOTH = [scene for scene in _DECLARED.values() if not scene.stepped and not scene.crashes]

SCENES: Mapping[str, Scene] = by_name(
    _all_of("pairs", 2, stepped=False),
    _all_of("pairs", 2, stepped=True),
    *((scene, _in_steps(scene)) for scene in _ON_BOTH),
    (scene for scene in _DECLARED.values() if scene not in _ON_BOTH),
)
"""The quick scenes: all of them together take seconds."""

SMALL: Mapping[str, Scene] = by_name(
    _all_of("triples", 3, stepped=False),
    _all_of("triples", 3, stepped=True),
    (with_all_faults(one) for one in _ON_BOTH if not one.budgets and len(one.works) + len(one.groups) < 3),
)
"""Larger scenes, which take minutes."""

MANY: Mapping[str, str] = {
    "pairs": "every pair of kinds of transactions on one record, which is absent or present at the start",
    "pairs-in-steps": "the same, with each statement inside of a commit as a step",
    "triples": "every three kinds of transactions on one record",
    "triples-in-steps": "the same, with each statement inside of a commit as a step",
}
"""What happens in the families of many scenes."""


# --- random scenes ----------------------------------------------------------------------------------------------------
_KEYS = ("w1", "w2", "x", "y", "left/1", "right/1")
_RANGES = (("w", "z"), ("w", "x"), ("left/", "left0"), ("right/", "right0"))
_FAULTS = (Fault.CRASH, Fault.LOST_REPLY, Fault.FAILURE)


def draw(seed: int, number: int) -> Scene:
    """Return the `number`-th random scene of a seed: who runs what on which kind of database, and what can go wrong."""
    chance = SeededRandom(SeededRandom.derive(seed, number))
    names = ("ann", "bob", "eve", "dan")[: chance.pick((2, 3, 3, 4))]
    counting = chance.happens(0.6)  # then everybody looks at the guard, which those that commit in groups do not
    works = {
        who: tuple(_random_work(chance, f"{who}{at}", counting) for at in range(chance.pick((1, 1, 2))))
        for who in names
    }
    groups: dict[str, tuple[Script, ...]] = {}
    if not counting:
        adds = (("add", "sum", 1), ("add", "sum", 2), ("bounded", "sum", 1, 2))
        groups["group"] = tuple(
            (*_random_script(chance, f"group{at}", False)[:1], chance.pick(adds)) for at in range(chance.pick((2, 3)))
        )
    if chance.happens(0.3):
        units = tuple(_unit(at, repeats=3, looks=True) for at in range(1, chance.pick((2, 3, 4))))
        works |= {"twin 0": units, "twin 1": units}
    return Scene(
        name=f"drawn-{seed}-{number}",
        summary="random transactions",
        works=works,
        groups=groups,
        start={key: ("start" * chance.pick((0, 1)), chance.pick((0, 0, 2))) for key in _KEYS if chance.happens(0.5)},
        stepped=chance.happens(0.5),
        budgets={fault: chance.pick((1, 2)) for fault in _FAULTS if chance.happens(0.4)},
        reached=(),
    )


def _random_work(chance: SeededRandom, mark: str, counting: bool) -> Work:
    return Work(script=_random_script(chance, mark, counting), attempts=chance.pick((1, 2, 3)), looks=True)


def _random_script(chance: SeededRandom, mark: str, counting: bool) -> Script:
    steps: list[Step] = []
    for at in range(chance.pick((1, 2, 2, 3, 4))):
        key, other = chance.shuffled(_KEYS)[:2]
        start, end = chance.pick(_RANGES)
        on_key: list[Step] = [(kind, key) for kind in ("get", "delete", "remove", "unless")]
        on_key += [(kind, key, f"{mark}{at}") for kind in ("put", "append", "create")]
        ranges = (("scan", start, end, chance.pick((None, 1))), ("count", start, end, key), ("claim", start, end, key))
        choices = (*on_key, ("get_many", key, other), ("swap_off", key, other), ("add", key, chance.pick((1, 2))))
        steps.append(chance.pick((*choices, *ranges) if counting else choices))
    return tuple(steps)
