"""Describe a world of a namespace: what is there at the start, who calls what, and what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.namespace.operation import Mode
from holdfast_checker.framework import subject
from holdfast_checker.namespace.actors import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(subject.Scene):
    """A short description of a world.

    Attributes:
        start: calls that were made before the history.
        scripts: by actor, its calls, one after the other.
        knows: paths that each actor looked at before the history began; None for all that there were.
        users: the clients that are ordinary users, with their own names; all others are the superuser.
        mode: how operations are kept apart: see `holdfast.namespace.operation`.
        collectors: how many processes collect what was deleted, and how often each.
        sweepers: how many processes look for blobs that nobody owns, and note them as garbage.
        is_slow: whether what clients write is old at once for a sweep: they are that slow.
        elects: whether only one of them works at a time, if clocks are right.
        later: whether much time may pass, once.
        crashes: how often the database crashes, and loses any number of the newest commits; only in the optimistic
            mode.
        inline: whether the bytes of files are in the database.
        safety_age_s: how long garbage is kept.
        mortal: whether actors may crash, if the budgets allow it.
    """

    start: Script = ()
    scripts: Mapping[str, Script] = field(default_factory=dict)
    knows: Mapping[str, tuple[str, ...]] | None = None
    users: frozenset[str] = frozenset()
    mode: Mode = "optimistic"
    collectors: tuple[int, ...] = ()
    sweepers: int = 0
    is_slow: bool = False
    elects: bool = True
    later: bool = False
    crashes: int = 0
    inline: bool = True
    safety_age_s: int = 24 * 3600
    mortal: bool = True
