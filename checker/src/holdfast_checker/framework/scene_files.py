"""Read scenes from the files that declare them: a section for each scene, a line for each of its fields and actors.

The format is that of `configparser`. A script is written as calls with a semicolon between them, and a call as its name
and its arguments with spaces between them, as in ``get x; put y "two words"``.
"""

from __future__ import annotations

import configparser
import importlib.resources
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from holdfast_checker.framework.subject import FAULTY, Scene
from holdfast_checker.kernel.calls import Fault

S = TypeVar("S", bound=Scene)
Calls = tuple[tuple[Any, ...], ...]


def _faults(text: str) -> dict[Fault, int]:
    """Read faults: their names with a comma between them, each with a number if it may happen more than once."""
    found: dict[Fault, int] = {}
    for one in text.split(", "):
        words, _space, count = one.rpartition(" ")
        found[Fault(words if count.isdigit() else one)] = int(count) if count.isdigit() else 1
    return found


_READERS: Mapping[Any, Callable[[str], object]] = {
    "str": str,
    "int": int,
    "int | None": int,
    "bool": lambda text: text == "yes",
    "tuple[str, ...]": lambda text: tuple(text.split()),
    "tuple[int, ...]": lambda text: tuple(map(int, text.split())),
    "frozenset[str]": lambda text: frozenset(text.split()),
    "Mapping[Fault, int]": _faults,
}
"""How the fields of dataclasses are written, by their annotations."""


class Fields(dict[str, str]):
    """The fields of a section that were not taken yet; what is left in the end are the actors."""

    def take(self, kind: type, **readers: Callable[[str], object]) -> dict[str, Any]:
        """Take the fields that a dataclass has too, as values of its types.

        Args:
            readers: how fields of other types are written, by their names.
        """
        known = {one.name: readers.get(one.name) or _READERS.get(one.type) for one in fields(kind)}
        return {name: reader(self.pop(name)) for name, reader in known.items() if name in self and reader is not None}

    def calls(self, name: str) -> Calls:
        return calls_of(self.pop(name, ""))


def options_of(text: str) -> Fields:
    """Read fields on one line, with a comma between them, as in ``group=3, drives``; one without a value is ``yes``."""
    return Fields({name: value or "yes" for name, _equals, value in (one.partition("=") for one in text.split(", "))})


def read_sections(package: str, file: str = "scenes.ini") -> dict[str, Fields]:
    """Return the fields of each section in a file of a package."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names of actors keep their case
    parser.read_string(importlib.resources.files(package).joinpath(file).read_text(encoding="utf-8"))
    return {name: Fields(parser[name]) for name in parser.sections()}


def read_scenes(package: str, make: Callable[[str, Fields], S]) -> dict[str, S]:
    """Return the scenes in the file ``scenes.ini`` of a package, by name.

    Args:
        make: makes a scene of its name and the fields of its section.
    """
    return {name: make(name, fields) for name, fields in read_sections(package).items()}


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
        name = f"faulty-{scene.name}/{fault.value.replace(' ', '-')}"
        summary = f"{scene.summary}; a {fault.value}, anywhere"
        yield replace(scene, name=name, summary=summary, budgets={fault: 1}, reached=())
