"""Define the scenes (small worlds) that ``holdfast check transactions`` explores; most are declared in ``scenes.ini``.

Most scenes run on both kinds of databases: with commits in one step, and with each statement inside of a commit as a
step (their names end in ``-in-steps``). Further scenes are all pairs of kinds of transactions on one record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

from holdfast_checker.framework import subject
from holdfast_checker.framework.scene_files import SceneFields, add_faults, parse_script, read_scenes
from holdfast_checker.framework.subject import index_by_name
from holdfast_checker.transactions.actors import ScriptedTransaction
from holdfast_checker.transactions.properties import UNIT
from holdfast_checker.transactions.scripts import Content, Script

_IN_STEPS = "-in-steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionScene(subject.Scene):
    """The declaration of a simulated world of transactions: its actors with their scripts, and its database.

    Attributes:
        works: by actor, its transactions, one after the other.
        groups: by actor, the scripts that it commits as a group.
        start: the records at the start.
        crashes: how often the database crashes, and loses any number of the newest commits; not with `stepped`.
        stepped: whether each statement inside of a commit is a step; if not, a commit is one step.
    """

    works: Mapping[str, tuple[ScriptedTransaction, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[Script, ...]] = field(default_factory=dict)
    start: Mapping[str, Content] = field(default_factory=dict)
    crashes: int = 0
    stepped: bool = False


# --- scenes that are declared -----------------------------------------------------------------------------------------
def _make_scene(name: str, fields: SceneFields) -> TransactionScene:
    """Make a scene of its section.

    Fields: those of `TransactionScene`, ``looks`` if transactions read the guard before they create records,
        ``repeats`` for all
    of them, and ``statements``: ``no`` or ``only`` if the scene runs on one kind of database. Others are actors, with
    ``|`` between their transactions; ``unit 1`` is a transaction that inserts a marker with its effect.
    """
    start = {key: (str(value), number[0] if number else 0) for key, value, *number in fields.take_calls("start")}
    looks, repeats = fields.pop("looks", "") == "yes", int(fields.pop("repeats", 0))
    stepped = fields.pop("statements", "") == "only"
    taken = fields.take_fields(TransactionScene)
    scripts = {who: tuple(map(_parse_transaction_script, works.split(" | "))) for who, works in fields.items()}
    works = {who: works for who, works in scripts.items() if not who.endswith(_TOGETHER)}
    return TransactionScene(
        name=name,
        works={
            who: tuple(_make_transaction(script, looks, repeats) for script in scripts)
            for who, scripts in works.items()
        },
        groups={who.removesuffix(_TOGETHER): one for who, one in scripts.items() if who not in works},
        start=start,
        stepped=stepped,
        **taken,
    )


_TOGETHER = " (as one group)"
_VALUES = ("put", "insert", "create", "append")


def _parse_transaction_script(text: str) -> Script:
    return tuple((*step[:2], str(step[2])) if step[0] in _VALUES else step for step in parse_script(text))


def _make_transaction(script: Script, looks: bool, repeats: int) -> ScriptedTransaction:
    if script[0][0] == "unit":
        return _make_unit_transaction(script[0][1], repeats=repeats)
    return ScriptedTransaction(script=script, looks=looks, repeats=repeats)


def _make_unit_transaction(number: int, *, repeats: int) -> ScriptedTransaction:
    """Return a unit of work that happens once, however often it is repeated."""
    marker = f"done {number}"
    script = (("unless", marker), ("insert", marker, ""), ("add", f"{UNIT}{number}", 1))
    return ScriptedTransaction(script=script, repeats=repeats)


def _scene_with_statement_steps(scene: TransactionScene) -> TransactionScene:
    """Return a scene with statements as steps. Nothing comes late there: a broken connection is rolled back."""
    return replace(scene, name=f"{scene.name}{_IN_STEPS}", stepped=True)


_DECLARED = read_scenes("holdfast_checker.transactions", _make_scene)


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
"""Scripts of transactions that use the record x, which is in the range from w to z, by name of their kind."""

_COUNTING = {"scan", "count"}
_STARTS: Mapping[str, Mapping[str, Content]] = {"absent": {}, "present": {"x": ("v", 3)}}


def _scene_of_transaction_kinds(names: Sequence[str], family: str, start: str, stepped: bool) -> TransactionScene:
    """Return the scene in which several transactions of these kinds run at the same time."""
    looks = not _COUNTING.isdisjoint(names)
    works = {}
    for who, kind in zip(("ann", "bob", "eve"), names, strict=False):
        script = tuple(tuple(who if part == "mark" else part for part in step) for step in KINDS[kind])
        works[who] = (ScriptedTransaction(script=script, attempts=2, looks=looks),)
    # Inserts of what is there, and adds over a bound, are given up.
    fits = "insert" not in names or (start == "absent" and names.count("insert") == 1 and len(set(names)) == len(names))
    return TransactionScene(
        name=f"{family}{_IN_STEPS * stepped}/{start}:{'+'.join(names)}",
        summary=f"transactions on one record, which is {start} at the start: {', '.join(names)}",
        works=works,
        start=_STARTS[start],
        stepped=stepped,
        reached=("all",) if fits and names.count("bounded") < 2 and len(names) == 2 else (),
    )


def _scenes_of_kind_combinations(family: str, count: int, stepped: bool) -> Iterator[TransactionScene]:
    """Yield a scene for each combination of kinds."""
    for start in _STARTS:
        for names in combinations_with_replacement(KINDS, count):
            yield _scene_of_transaction_kinds(names, family, start, stepped)


# --- all of them ------------------------------------------------------------------------------------------------------
_ON_BOTH = [scene for scene in _DECLARED.values() if not scene.stepped and not scene.crashes]

SCENES: Mapping[str, TransactionScene] = index_by_name(
    *_scenes_of_kind_combinations("pairs", 2, stepped=False),
    *_scenes_of_kind_combinations("pairs", 2, stepped=True),
    *(one for scene in _ON_BOTH for one in (scene, _scene_with_statement_steps(scene))),
    *(scene for scene in _DECLARED.values() if scene not in _ON_BOTH),
)
"""The quick scenes: all of them together take seconds."""

SMALL: Mapping[str, TransactionScene] = index_by_name(
    *_scenes_of_kind_combinations("triples", 3, stepped=False),
    *_scenes_of_kind_combinations("triples", 3, stepped=True),
    *(add_faults(one) for one in _ON_BOTH if not one.budgets and len(one.works) + len(one.groups) < 3),
)
"""Larger scenes, which take minutes."""
