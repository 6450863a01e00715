"""Read declarations of scenes (small simulated worlds) and properties from INI files, with a section for each of them.

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

from holdfast_checker.framework.subject import FAULTY, Rule, Scene
from holdfast_checker.kernel.calls import Fault

S = TypeVar("S", bound=Scene)
Calls = tuple[tuple[Any, ...], ...]
Judges = tuple[Callable[..., str | None] | None, Callable[..., str | None] | None]
"""The functions `step` and `end` of a `Rule`."""


def _parse_faults(text: str) -> dict[Fault, int]:
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
    "Mapping[Fault, int]": _parse_faults,
}
"""How the fields of dataclasses are written, by their annotations."""


class SceneFields(dict[str, str]):
    """The fields of one section of a scene file. `take_fields` removes what it returns; the rest declares actors."""

    def take_fields(self, kind: type, **readers: Callable[[str], object]) -> dict[str, Any]:
        """Remove the fields with the names of a dataclass's fields, and return their values, converted to its types.

        Args:
            kind: the dataclass.
            readers: by field name, functions that parse values of other types.
        """
        known = {one.name: readers.get(one.name) or _READERS.get(one.type) for one in fields(kind)}
        return {name: reader(self.pop(name)) for name, reader in known.items() if name in self and reader is not None}

    def take_calls(self, name: str) -> Calls:
        return parse_script(self.pop(name, ""))


def parse_field_list(text: str) -> SceneFields:
    """Parse a comma-separated list of fields such as ``group=3, drives``; a field without a value gets ``yes``."""
    return SceneFields({name: value or "yes" for name, _, value in (one.partition("=") for one in text.split(", "))})


def read_sections(package: str, file: str = "scenes.ini") -> dict[str, SceneFields]:
    """Read a scene file of a package, and return the fields of each section by its name."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names of actors keep their case
    parser.read_string(importlib.resources.files(package).joinpath(file).read_text(encoding="utf-8"))
    return {name: SceneFields(parser[name]) for name in parser.sections()}


def read_scenes(package: str, make: Callable[[str, SceneFields], S]) -> dict[str, S]:
    """Read the scenes in the file ``scenes.ini`` of a package, by name.

    Args:
        make: takes a section's name and fields, and returns the scene.
    """
    return {name: make(name, fields) for name, fields in read_sections(package).items()}


def read_rules(package: str, judges: Mapping[str, Judges], file: str = "properties.ini") -> dict[str, Rule]:
    """Read the titles and meanings of properties from an INI file of a package; return its rules, in its order.

    Args:
        judges: for each property, the functions that judge a step and the end of a history; None for one that is not
            needed.
    """
    sections = read_sections(package, file)
    assert sections.keys() == judges.keys(), f"{file} and the code describe different properties"
    return {
        name: Rule(name, of["title"], " ".join(of["meaning"].split()), *judges[name]) for name, of in sections.items()
    }


def parse_script(text: str) -> Calls:
    """Parse a script such as ``get x; put y 1`` into calls; arguments that are numbers become integers."""
    return tuple(tuple(map(_parse_argument, shlex.split(one))) for one in text.split(";") if one.strip())


def _parse_argument(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdigit() else text


# --- the same scenes with faults --------------------------------------------------------------------------------------
def add_faults(scene: S, prefix: str = "faulty") -> S:
    """Return a copy of a scene in which a crash, a lost reply and a failed call may each happen once."""
    summary = f"{scene.summary}; a crash, a lost reply and a failure, each once, anywhere"
    return replace(scene, name=f"{prefix}-{scene.name}", summary=summary, budgets=FAULTY, reached=())


def single_fault_scenes(scene: S) -> Iterator[S]:
    """Yield a copy of a scene for each kind of fault; in each copy, only this fault may happen, and only once."""
    for fault in FAULTY:
        name = f"faulty-{scene.name}/{fault.value.replace(' ', '-')}"
        summary = f"{scene.summary}; a {fault.value}, anywhere"
        yield replace(scene, name=name, summary=summary, budgets={fault: 1}, reached=())
