"""Make the scenes that ``holdfast check namespace`` explores: ``scenes.ini`` has one for each way to collide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime import SeededRandom
from holdfast_checker.framework import subject
from holdfast_checker.framework.scene_files import (
    FAULTY,
    Calls,
    Fields,
    by_name,
    calls_of,
    read_scenes,
    with_all_faults,
    with_one_fault,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(subject.Scene):
    """A short description of a world of a namespace.

    Attributes:
        start: calls that were made before the history.
        scripts: by actor, its calls, one after the other.
        knows: paths that each actor looked at before the history began; None for all that there were.
        users: the clients that are ordinary users, with their own names; all others are the superuser.
        locks: whether operations lock what they read, as they do after many conflicts.
        collectors: how many processes collect what was deleted, and how often each.
        elects: whether only one of them works at a time, if clocks are right.
        sweepers: how many processes look for blobs that nobody owns, and note them as garbage.
        is_slow: whether what clients write is old at once for a sweep: they are that slow.
        later: whether much time may pass, once.
        crashes: how often the database crashes, and loses any number of the newest commits; only without `locks`.
        inline: whether the bytes of files are in the database.
        is_large: whether the scene has many ten thousands of states if a fault of each kind happens.
    """

    start: Calls = ()
    scripts: Mapping[str, Calls] = field(default_factory=dict)
    knows: Mapping[str, tuple[str, ...]] | None = None
    users: frozenset[str] = frozenset()
    locks: bool = False
    collectors: tuple[int, ...] = ()
    elects: bool = True
    sweepers: int = 0
    is_slow: bool = False
    later: bool = False
    crashes: int = 0
    inline: bool = True
    is_large: bool = False


def _make(name: str, fields: Fields) -> Scene:
    """Make a scene of its section: fields with the names of attributes, and actors with their calls.

    ``knows`` names actors with their paths; ``blobs`` if the bytes of files are not in the database.
    """
    common, knows = fields.common(name), fields.pop("knows", None)
    return Scene(
        **common,
        start=_calls(fields.pop("start", "")),
        knows=None if knows is None else {who: tuple(paths) for who, *paths in _paths(knows)},
        users=frozenset(fields.names("users")),
        locks=fields.flag("locks"),
        collectors=tuple(map(int, fields.names("collectors"))),
        elects=not fields.flag("without-election"),
        sweepers=fields.number("sweepers"),
        is_slow=fields.flag("slow"),
        later=fields.flag("later"),
        crashes=fields.number("crashes"),
        inline=not fields.flag("blobs"),
        is_large=fields.flag("large"),
        scripts={who: _calls(script) for who, script in fields.items()},
    )


def _paths(text: str) -> Calls:
    return () if text == "nothing" else calls_of(text)


def _calls(text: str) -> Calls:
    """Return calls whose arguments are texts, apart from quotas, and modes, which are octal."""
    return tuple(tuple(_arguments(*call)) for call in calls_of(text))


def _arguments(kind: str, *args: Any) -> list[Any]:
    if kind == "set_mode":
        return [kind, args[0], int(str(args[1]), 8)]
    if kind in ("publish", "put_all"):  # files, each as its path and what it holds
        return [kind, *(tuple(str(one).split("=")) for one in args)]
    return [kind, *(args if kind == "set_quota" else map(str, args))]


SCENES: Mapping[str, Scene] = read_scenes("holdfast_checker.namespace", _make)
"""The quick scenes."""

_FAULTLESS = [scene for scene in SCENES.values() if not scene.budgets and not scene.crashes]

SMALL: Mapping[str, Scene] = by_name(
    *(with_one_fault(scene) if scene.is_large else (with_all_faults(scene),) for scene in _FAULTLESS)
)
"""Larger scenes, with faults: all kinds in each history; in the largest scenes, one kind at a time."""

LARGEST: Mapping[str, Scene] = by_name(with_all_faults(one, "all-faults") for one in _FAULTLESS if one.is_large)
"""The largest scenes, with all kinds of faults in each history: half a minute each, only if they are named."""


# --- random scenes ----------------------------------------------------------------------------------------------------
_STARTS = (
    "mkdirs /a/b; create /c/f 0",
    "create /a/b/f 0; mkdirs /b; create /f 1",
    "create /a/f 0; create /a/g 1; mkdirs /c; set_quota /c 4",
    "create /a/b/f 0; set_quota /a 5; mkdirs /c/d",
)
_PLACES = ("/a", "/a/b", "/c", "/a/f", "/a/b/f", "/c/f", "/c/a", "/f")


def draw(seed: int, number: int) -> Scene:
    """Return the `number`-th random scene of a seed: what is there, who calls what, and what can go wrong."""
    chance = SeededRandom(SeededRandom.derive(seed, number))
    names = ("ann", "bob", "eve", "dan")[: chance.pick((2, 3, 3, 4))]
    return Scene(
        name=f"drawn-{seed}-{number}",
        summary="random calls",
        start=_calls(chance.pick(_STARTS)),
        scripts={who: _script(chance, who) for who in names},
        knows=None if chance.happens(0.7) else {},
        collectors=chance.pick(((), (1,), (2,), (1, 1))),
        inline=chance.happens(0.6),
        budgets={fault: chance.pick((1, 2)) for fault in FAULTY if chance.happens(0.4)},
        reached=(),
    )


def _script(chance: SeededRandom, who: str) -> Calls:
    steps: list[str] = []
    for at in range(chance.pick((1, 2, 2, 3))):
        place, other, third = chance.shuffled(_PLACES)[:3]
        mark = f"{who}{at}"
        steps.append(
            chance.pick(
                (
                    *(f"{kind} {place}" for kind in ("mkdirs", "delete", "delete_tree", "list", "read", "recover")),
                    *(f"{kind} {place} {mark}" for kind in ("create", "overwrite")),
                    *(f"{kind} {place} {other}" for kind in ("rename", "rename", "replace")),
                    f"walk {chance.pick(('/', '/a'))}",
                    f"publish {place}={mark} {other}={mark}; read {third}",
                    f"append {place} {mark}; close {mark} {mark}",
                    f"append {place} {mark}; sync {mark} {mark}; close {mark} end",
                    f"set_quota {chance.pick(('/a', '/c'))} {chance.pick((0, 3, 5))}",
                )
            )
        )
    return _calls("; ".join(steps))
