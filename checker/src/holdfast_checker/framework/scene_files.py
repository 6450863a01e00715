"""Read scenes from the files that declare them: a section for each scene, a line for each of its fields and actors.

The format is that of `configparser`. A script is written as calls with a semicolon between them, and a call as its name
and its arguments with spaces between them, as in ``get x; put y "two words"``.
"""

from __future__ import annotations

import configparser
import importlib.resources
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from holdfast_checker.framework.subject import Scene
from holdfast_checker.kernel.calls import Fault

S = TypeVar("S", bound=Scene)
Calls = tuple[tuple[Any, ...], ...]

FAULTY: Mapping[Fault, int] = {Fault.CRASH: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1}
"""One fault of each kind that a call on a database may meet."""


class Fields(dict[str, str]):
    """The fields of a section that were not taken yet; what is left in the end are the actors."""

    def flag(self, name: str) -> bool:
        """Take a field that is ``yes`` if it is there."""
        return self.pop(name, "") == "yes"

    def number(self, name: str, default: int = 0) -> int:
        return int(self.pop(name, default))

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(self.pop(name, "").split())

    def calls(self, name: str) -> Calls:
        return calls_of(self.pop(name, ""))

    def common(self, name: str) -> dict[str, Any]:
        """Take the fields that all scenes have: ``summary``, ``faults`` and ``reached``, which is ``all`` by default.

        Faults are written as their names with a comma between them, each with a number if it may happen more than once.
        """
        faults: dict[Fault, int] = {}
        for one in filter(None, self.pop("faults", "").split(", ")):
            words, _space, count = one.rpartition(" ")
            faults[Fault(words if count.isdigit() else one)] = int(count) if count.isdigit() else 1
        reached = tuple(self.pop("reached", "all").replace("nothing", "").split())
        return {"name": name, "summary": self.pop("summary"), "budgets": faults, "reached": reached}


def read_scenes(package: str, make: Callable[[str, Fields], S]) -> dict[str, S]:
    """Return the scenes in the file ``scenes.ini`` of a package, by name.

    Args:
        make: makes a scene of its name and the fields of its section.
    """
    return {name: make(name, fields) for name, fields in read_sections(package).items()}


def read_sections(package: str) -> dict[str, Fields]:
    """Return the fields of each section in the file ``scenes.ini`` of a package."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names of actors keep their case
    parser.read_string(importlib.resources.files(package).joinpath("scenes.ini").read_text(encoding="utf-8"))
    return {name: Fields(parser[name]) for name in parser.sections()}


def calls_of(text: str) -> Calls:
    """Return the calls of a script; arguments that are numbers become integers."""
    return tuple(tuple(map(_argument, shlex.split(one))) for one in text.split(";") if one.strip())


def _argument(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdigit() else text


# --- the same scenes with faults --------------------------------------------------------------------------------------
def with_all_faults(scene: S, prefix: str = "faulty") -> S:
    """Return a scene in which each kind of fault may happen once in a history."""
    summary = f"{scene.summary}; a crash, a lost reply and a failure, each once, anywhere"
    return replace(scene, name=f"{prefix}-{scene.name}", summary=summary, budgets=FAULTY, reached=())


def with_one_fault(scene: S) -> Iterator[S]:
    """Yield a scene for each kind of fault, which may happen once in a history."""
    for fault in FAULTY:
        name, summary = (
            f"faulty-{scene.name}/{fault.value.replace(' ', '-')}",
            f"{scene.summary}; a {fault.value}, anywhere",
        )
        yield replace(scene, name=name, summary=summary, budgets={fault: 1}, reached=())


def by_name(*groups: Any) -> dict[str, Any]:
    """Return scenes by name."""
    return {scene.name: scene for scenes in groups for scene in scenes}
