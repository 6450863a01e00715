"""Read the cases in ``recorded/``: calls of a file system, and what HDFS 3.5.0 answered to each.

A file has cases; a case begins with ``== title``, in an empty file system, and has steps such as ``bob> delete /a
recursive -> false``. The calls are written by hand; ``tests/integration/record_hdfs.py`` runs them on a real HDFS and
writes the answers. An answer is the value, ``ok`` if there is none, or the class of Java's exception.

Where Holdfast differs on purpose, the answer goes on with ``| ours: …``, and a comment above the step says why.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FILES", "GROUPS", "NOT_OPEN", "SUPERUSER", "Case", "Step", "parse_step", "read_cases"]

FILES = sorted((Path(__file__).parent / "recorded").glob("*.txt"))

SUPERUSER = "super"
GROUPS = {
    SUPERUSER: ["supergroup"],
    "alice": ["staff", "painters"],
    "bob": ["staff"],
    "carol": ["guests"],
    "root2": ["supergroup"],
}
"""The groups of each user; the first one is the primary."""

NOT_OPEN = "(not open)"
"""The answer to a call on a stream that could not be opened."""

_NAMES = {
    "LONG255": "n" * 255,
    "LONG256": "n" * 256,
    "BYTES256": "é" * 128,
    "LEVELS998": "/".join(["d"] * 998),
    "LEVELS999": "/".join(["d"] * 999),
    "LEVELS1000": "/".join(["d"] * 1000),
    "LEVELS1001": "/".join(["d"] * 1001),
    "CHARACTERS7998": "/".join(["n" * 189] * 43)[:7998],
    "CHARACTERS7999": "/".join(["n" * 189] * 43)[:7999],
    "CHARACTERS8000": "/".join(["n" * 189] * 43)[:8000],
}


@dataclass(frozen=True, slots=True)
class Step:
    """One call.

    Attributes:
        line: its number in the file.
        call: the text of the call, with the user.
        user, operation, arguments: its parts.
        answer: HDFS's.
        ours: Holdfast's.
    """

    line: int
    call: str
    user: str
    operation: str
    arguments: tuple[str, ...]
    answer: str
    ours: str


@dataclass(frozen=True, slots=True)
class Case:
    """Calls in a fresh file system."""

    title: str
    steps: tuple[Step, ...]


def parse_step(line: str, number: int) -> Step:
    """Parse a line such as ``bob> delete /a recursive -> false | ours: true``."""
    call, _, answers = line.partition(" -> ")
    answer, _, ours = answers.partition(" | ours: ")
    user, separator, rest = call.partition("> ")
    if not separator:
        user, rest = SUPERUSER, call
    rest = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), rest)
    for short, name in _NAMES.items():
        rest = rest.replace(short, name)
    operation, *arguments = shlex.split(rest)
    return Step(number, call, user, operation, tuple(arguments), answer, ours or answer)


def read_cases(file: Path) -> Iterator[Case]:
    """Yield the cases of a file."""
    title, steps = "", list[Step]()
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.startswith("== "):
            if steps:
                yield Case(title, tuple(steps))
            title, steps = line.removeprefix("== "), []
        elif line and not line.startswith("# "):
            steps.append(parse_step(line, number))
    yield Case(title, tuple(steps))
