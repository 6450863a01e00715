"""What a command shows: tables for a person, one JSON document for a program, progress on stderr for whoever waits."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal

import click

from holdfast.cli.failures import PROBLEM
from holdfast.cli.screen import ENDLESS, in_one_line, is_terminal, plain_table, shown
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.commit import Progress

__all__ = ["Documents", "Output", "OutputError", "duration", "hush", "milliseconds", "size", "when"]


def _put(line: str) -> None:
    """Print to stdout.

    Raises:
        BrokenPipeError: nobody reads any more.
        OutputError: it cannot be written, as on a full disk.
    """
    try:
        click.echo(line)
    except BrokenPipeError:
        raise
    except OSError as error:
        hush()
        raise OutputError(f"stdout cannot be written: {error.strerror or error}") from error


class OutputError(click.ClickException):
    """The result has no place to go to; what the command did is done."""

    exit_code = PROBLEM


@dataclass
class Documents:
    """The documents of one run on stdout: whatever happens, there is one.

    Attributes:
        wanted: whether the run was asked for one.
        printed: whether it is there.
    """

    wanted: bool = False
    printed: bool = False

    def print(self, value: Mapping[str, object]) -> None:
        """Print the run's document, if one is wanted and none is there yet."""
        if not self.wanted or self.printed:
            return
        self.printed = True
        text = shown(json.dumps(value, indent=2, ensure_ascii=False, default=str), _in_json)
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = json.dumps(value, indent=2, default=str)
        _put(text)


def _in_json(letter: str) -> str:
    return f"\\u{ord(letter):04x}"


@dataclass(frozen=True)
class Output:
    """How this run of the command talks.

    Attributes:
        json: stdout holds one JSON document and nothing else.
        debug: errors come with their traceback, Spark with its log.
        documents: of the run.
    """

    json: bool = False
    debug: bool = False
    documents: Documents = field(default_factory=Documents)

    # --- stdout -------------------------------------------------------------------------------------------------------
    def document(self, value: Mapping[str, object]) -> None:
        """The result as JSON, if that is what was asked for; only the first counts."""
        if self.json:
            self.documents.wanted = True
            self.documents.print(value)

    def say(self, text: str) -> None:
        """A line for a person; control characters in it are spelled out."""
        if not self.json:
            _put(shown(text))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
        """Rows for a person. Nothing is cut off: a cell that is too long for the screen goes on in its next line, and
        where there is no screen every row is one line.

        Args:
            right: columns that are aligned to the right.
        """
        if self.json:
            return
        if not is_terminal():
            for line in plain_table(columns, rows, right):
                _put(line)
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in columns:
            justify: Literal["left", "right"] = "right" if name in right else "left"
            table.add_column(Text(shown(name)), justify=justify, overflow="fold")  # Text: a "[" in a name is no markup
        for row in rows:
            table.add_row(*(Text(in_one_line(cell)) for cell in row))
        self._console().print(table)

    @property
    def width(self) -> int:
        """Columns of the screen; endless if there is none, so that what belongs together stays in one line."""
        return self._console().width if is_terminal() else ENDLESS

    def _console(self, *, stderr: bool = False) -> Console:
        from rich.console import Console

        return Console(stderr=stderr, highlight=False)

    # --- stderr -------------------------------------------------------------------------------------------------------
    def note(self, text: str) -> None:
        """A line beside the result, e.g. what to do next."""
        click.echo(shown(text), err=True)

    def error(self, error: HoldfastError) -> None:
        """One sentence on stderr; with --json also a document, so that a program need not parse sentences."""
        self.note(f"error: {error}")
        self.document({"error": str(error), "kind": type(error).__name__})

    @contextlib.contextmanager
    def progress(self) -> Iterator[Progress]:
        """A callback for long work; shows a bar if a person is watching stderr."""
        if sys.stderr is None or not is_terminal(sys.stderr):
            yield _silent
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console(stderr=True),
            transient=True,
        )
        stages = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage)
            bar.update(stages[stage], completed=done, total=total or None)

        with bar:
            yield advance

    @contextlib.contextmanager
    def waiting(self, text: str, *, lines: bool = False) -> Iterator[Callable[[str], None]]:
        """A spinner around work that does not count; gives a function that changes its text.

        Args:
            lines: where there is no terminal, say each text in a line of its own.
        """
        if sys.stderr is None or not is_terminal(sys.stderr):
            yield self.note if lines else _unheard
            return
        with self._console(stderr=True).status(text) as status:
            yield status.update


def _unheard(text: str) -> None:
    """Nobody looks."""


def _silent(stage: str, done: int, total: int) -> None:
    """Nobody looks."""


# --- values for a person ----------------------------------------------------------------------------------------------
def size(size_bytes: int) -> str:
    """E.g. ``12.3 MiB``."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def when(time_s: float) -> str:
    """UTC to the second, e.g. ``2013-01-01 05:15:00Z``."""
    return datetime.fromtimestamp(time_s, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def duration(duration_s: float) -> str:
    """E.g. ``45s``, ``12min``, ``3h``, ``2d``: one unit is enough to decide by."""
    for unit_s, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if duration_s >= unit_s:
            return f"{duration_s / unit_s:.0f}{unit}"
    return f"{max(duration_s, 0):.0f}s"


def milliseconds(spent_ms: int) -> str:
    """A measured time, e.g. ``7 ms``, ``1.3 s``, ``2.0 min``."""
    if spent_ms < 1000:
        return f"{spent_ms} ms"
    return f"{spent_ms / 1000:.1f} s" if spent_ms < 60_000 else f"{spent_ms / 60_000:.1f} min"


def hush() -> None:
    """Send what is left for a closed stdout nowhere, so that the interpreter's last flush does not complain."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
