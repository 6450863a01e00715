"""Measure which code a check ran; the check proves nothing about other code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from holdfast.cli.output import Output
from holdfast.wording import counted
from holdfast_checker.kernel.coverage import Coverage, Covered

_COMMIT = ("holdfast.commit", "holdfast.versioned_log")


@dataclass(slots=True)
class Ran:
    """Which code has run so far.

    Attributes:
        packages: the packages and modules whose code is checked.
        functions: all functions of the packages, each with the lines that did not run.
        scenes: number of statements that ran in each scene.
    """

    packages: tuple[str, ...]
    functions: Sequence[Covered]
    scenes: dict[str, int]

    @property
    def entered(self) -> list[Covered]:
        """Return all functions of the modules in which any code ran."""
        modules = {one.module for one in self.functions if _ran(one)}
        return [one for one in self.functions if one.module in modules]

    def document(self) -> dict[str, object]:
        return {
            "packages": list(self.packages),
            "statements": sum(len(one.lines) for one in self.entered),
            "ran": sum(map(_ran, self.entered)),
            "not_entered": sorted({one.module for one in self.functions} - {one.module for one in self.entered}),
            "missed": [
                {"module": one.module, "function": one.name, "lines": list(one.missed)}
                for one in self.entered
                if one.missed
            ],
        }


def nothing_ran(packages: tuple[str, ...] = _COMMIT) -> Ran:
    """Return the coverage of packages at the start, before the first scene."""
    return Ran(packages, [replace(one, missed=one.lines) for one in _coverage(packages).functions()], {})


@cache
def _coverage(packages: tuple[str, ...]) -> Coverage:
    return Coverage(*packages)


@contextmanager
def watching(ran: Ran, scene: str) -> Iterator[None]:
    """Add the code that the block runs to the coverage of a scene."""
    coverage = _coverage(ran.packages)
    coverage.forget()
    try:
        with coverage.watching():
            yield
    finally:
        found = coverage.functions()
        ran.scenes[scene] = sum(map(_ran, found))
        ran.functions = [
            replace(one, missed=tuple(line for line in one.missed if line in now.missed))
            for one, now in zip(ran.functions, found, strict=True)
        ]


def _ran(one: Covered) -> int:
    return len(one.lines) - len(one.missed)


def show_ran(ran: Ran, out: Output, *, lines: bool) -> None:
    """Show how much code ran; if `lines` is set, also show the lines of each function that no history ran."""
    entered = ran.entered
    total, there = sum(len(one.lines) for one in entered), sum(map(_ran, entered))
    modules = {one.module for one in entered}
    others = len({one.module for one in ran.functions} - modules)
    share = f"{there:,} of {total:,} statements ran ({there / max(total, 1):.0%})"
    folders = " and ".join(dict.fromkeys(f"{package.split('.')[1]}/" for package in ran.packages))
    out.say(f"{folders}: {share} in {counted(len(modules), 'module')}{f', none in {others:,} others' * (others > 0)}")
    if not lines:
        out.say("code that did not run is not checked: --coverage shows its lines")
        return
    rows = [(_file(one), one.name, _spans(one)) for one in entered if one.missed]
    out.table(["module", "function", "lines that no history ran"], rows)


def _file(one: Covered) -> str:
    return one.module.removeprefix("holdfast.commit.").removeprefix("holdfast.").replace(".", "/")


def _spans(one: Covered) -> str:
    """Format the numbers of the missed lines, those of consecutive statements as ``first-last``."""
    spans: list[list[int]] = []
    follows = False
    for line in one.lines:
        is_missed = line in one.missed
        if is_missed and follows:
            spans[-1][1:] = [line]
        elif is_missed:
            spans.append([line])
        follows = is_missed
    return ", ".join("-".join(map(str, span)) for span in spans)
