"""Define the scenes (small worlds) that ``holdfast check namespace`` explores; most are declared in ``scenes.ini``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast_checker.framework import subject
from holdfast_checker.framework.scene_files import (
    Calls,
    SceneFields,
    add_faults,
    parse_script,
    read_scenes,
    single_fault_scenes,
)
from holdfast_checker.framework.subject import index_by_name


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceScene(subject.Scene):
    """The declaration of a simulated world of a namespace: its clients, background processes, and faults.

    Attributes:
        start: calls made before the history.
        scripts: by actor, its calls, one after the other.
        knows: paths that each client looks up before the history begins; None for all paths that exist then.
        users: the clients that are ordinary users, with their own names; all others are the superuser.
        through: the clients whose calls go through two servers, and are repeated (`requests`).
        locks: whether operations lock what they read, as they do after many conflicts.
        collectors: for each garbage collector process, how many rounds it runs.
        elects: whether collectors elect a leader, so that only one works at a time, if clocks are right.
        sweepers: how many processes look for blobs that no file refers to, and record them as garbage.
        is_slow: whether clients are so slow that the blobs they write are at once old enough to be swept.
        later: whether so much time may pass, once, that leases expire.
        crashes: how often the database crashes, and loses any number of the newest commits; only without `locks`.
        inline: whether the bytes of files are in the database.
        is_large: whether the scene has tens of thousands of states if a fault of each kind happens.
    """

    start: Calls = ()
    scripts: Mapping[str, Calls] = field(default_factory=dict)
    knows: Mapping[str, tuple[str, ...]] | None = None
    users: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset()
    locks: bool = False
    collectors: tuple[int, ...] = ()
    elects: bool = True
    sweepers: int = 0
    is_slow: bool = False
    later: bool = False
    crashes: int = 0
    inline: bool = True
    is_large: bool = False


def _make_scene(name: str, fields: SceneFields) -> NamespaceScene:
    """Create a scene from the section of a scene file: fields of `NamespaceScene`, and actors with their calls.

    ``knows`` names actors with their paths.
    """
    start, knows = _parse_calls(fields.pop("start", "")), fields.pop("knows", None)
    taken = fields.take_fields(NamespaceScene)
    return NamespaceScene(
        name=name,
        start=start,
        knows=None if knows is None else {who: tuple(paths) for who, *paths in parse_script(knows)},
        scripts={who: _parse_calls(script) for who, script in fields.items()},
        **taken,
    )


def _parse_calls(text: str) -> Calls:
    """Return calls whose arguments are texts, apart from quotas, and modes, which are octal."""
    return tuple(tuple(_parse_call_arguments(*call)) for call in parse_script(text))


def _parse_call_arguments(kind: str, *args: Any) -> list[Any]:
    if kind == "set_mode":
        return [kind, args[0], int(str(args[1]), 8)]
    if kind in ("publish", "put_all"):  # files, each as its path and what it holds
        return [kind, *(tuple(str(one).split("=")) for one in args)]
    return [kind, *(args if kind == "set_quota" else map(str, args))]


_DECLARED: Mapping[str, NamespaceScene] = read_scenes("holdfast_checker.namespace", _make_scene)

SCENES: Mapping[str, NamespaceScene] = {name: scene for name, scene in _DECLARED.items() if not scene.through}
"""The quick scenes."""

REPEATED: Mapping[str, NamespaceScene] = {name: scene for name, scene in _DECLARED.items() if scene.through}
"""Scenes of requests that come again: up to millions of states each, so they are explored only if they are named."""

_FAULTLESS = [scene for scene in SCENES.values() if not scene.budgets and not scene.crashes]

SMALL: Mapping[str, NamespaceScene] = index_by_name(
    *(one for scene in _FAULTLESS for one in (single_fault_scenes(scene) if scene.is_large else [add_faults(scene)]))
)
"""Larger scenes, with faults: all kinds in each history; in the largest scenes, one kind at a time."""

LARGEST: Mapping[str, NamespaceScene] = index_by_name(
    *(add_faults(one, "all-faults") for one in _FAULTLESS if one.is_large)
)
"""The largest scenes, with all kinds of faults in each history: half a minute each, only if they are named."""
