"""Print results: tables for a person or one JSON document for a program; notes and progress go to stderr.

A command declares what it knows of the things that it lists once, as a tuple of `ResultColumn`: `to_documents` makes
JSON of it, and `Output.show` a table.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from holdfast.cli.failures import PROBLEM
from holdfast.cli.screen import ENDLESS, escape_controls, escape_to_one_line, is_terminal, plain_table
from holdfast.errors import HoldfastError, InvalidRequestError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from holdfast.commit import Progress


def _print_line(line: str) -> None:
    """Print a line to stdout; raises what `_report_stdout_errors` raises."""
    with _report_stdout_errors():
        click.echo(line)


@contextlib.contextmanager
def _report_stdout_errors() -> Iterator[None]:
    """Report a failed write to stdout.

    Raises:
        BrokenPipeError: the reader closed the pipe.
        OutputError: stdout cannot be written, e.g. because the disk is full, or because it was closed at the start.
    """
    if sys.stdout is None:
        raise OutputError("stdout is closed: open it, or send the output to /dev/null")
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_stdout()
        raise OutputError(f"stdout cannot be written: {error.strerror or error}") from error


class OutputError(click.ClickException):
    """Raised if the result cannot be printed, after the command itself has done its work."""

    exit_code = PROBLEM


def _dump_json(value: Mapping[str, object], indent: int | None = None) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    text = escape_controls(text, lambda character: f"\\u{ord(character):04x}")
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, default=str)
    return text


# --- what is known of things ------------------------------------------------------------------------------------------
def format_json_value(value: object) -> str:
    """Format a JSON value of a result for a person."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def format_with_commas(number: int | None) -> str:
    """Format a number with commas, e.g. ``1,234``."""
    return "-" if number is None else f"{number:,}"


class ResultColumn(NamedTuple):
    """A column of a command's result: a field of JSON documents and a column of tables.

    Attributes:
        key: the name of the field in JSON; empty if it is only in tables.
        title: the heading in tables; None if it is only in JSON.
        value: takes a listed object, and returns the JSON value of the field.
        text: formats that value for a person.
    """

    key: str
    title: str | None
    value: Callable[[Any], object]
    text: Callable[[Any], str] = format_json_value


def to_document(columns: Sequence[ResultColumn], thing: object) -> dict[str, object]:
    """Return one listed object as a JSON object, with a field for each column that has a key."""
    return {one.key: one.value(thing) for one in columns if one.key}


def to_documents(columns: Sequence[ResultColumn], things: Iterable[object]) -> list[dict[str, object]]:
    """Return listed objects as JSON objects, each with a field for each column that has a key."""
    return [to_document(columns, thing) for thing in things]


@dataclass
class Output:
    """The output of one run of a command.

    Guarantee: with `json`, stdout is exactly one JSON document, even after an error; commands that list things print a
    document for each of them, on a line of its own, instead.

    Attributes:
        json: whether to print JSON to stdout and nothing else.
        debug: whether to print tracebacks of errors, and Spark's log.
    """

    json: bool = False
    debug: bool = False
    _is_complete: bool = False

    # --- stdout -------------------------------------------------------------------------------------------------------
    def document(self, value: Mapping[str, object]) -> None:
        """Print the result as JSON, if the user asked for JSON; ignore every document after the first."""
        if self.json and not self._is_complete:
            self._is_complete = True
            _print_line(_dump_json(value, indent=2))

    def line(self, value: Mapping[str, object]) -> None:
        """Print one of many results as a line of JSON, if the user asked for JSON."""
        if self.json:
            _print_line(_dump_json(value))

    def print_json_error(self, sentence: str, kind: str) -> None:
        """Print an error as a JSON document, if the user asked for JSON and no document was printed yet.

        Args:
            kind: name of the error's class.
        """
        if not self._is_complete:
            self.line({"error": sentence, "kind": kind})
            self._is_complete = True

    def data(self, data: bytes) -> None:
        """Write the bytes of a file to stdout as they are.

        Raises:
            BrokenPipeError: the reader closed the pipe.
            OutputError: stdout cannot be written, e.g. because the disk is full.
        """
        with _report_stdout_errors():
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def say(self, text: str) -> None:
        """Print a line for a person, with control characters escaped."""
        if not self.json:
            _print_line(escape_controls(text))

    def show(self, columns: Sequence[ResultColumn], things: Iterable[object]) -> None:
        """Print objects as a table for a person, a row for each; numbers are right-aligned."""
        shown = [one for one in columns if one.title is not None]
        rows = [[one.value(thing) for one in shown] for thing in things]
        numbers = {
            one.title or ""
            for index, one in enumerate(shown)
            if any(isinstance(row[index], int | float) and not isinstance(row[index], bool) for row in rows)
        }
        texts = [[one.text(value) for one, value in zip(shown, row, strict=True)] for row in rows]
        self.table([one.title or "" for one in shown], texts, right=[*numbers])

    def lines(self, columns: Sequence[ResultColumn], things: Sequence[object], *, nothing: str = "") -> None:
        """Print objects: with ``--json`` as a line of JSON for each, else as a table.

        Args:
            nothing: the line to print for a person if there are no objects; empty for no line.
        """
        for thing in things:
            self.line(to_document(columns, thing))
        if things:
            self.show(columns, things)
        elif nothing:
            self.say(nothing)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
        """Print a table for a person.

        Guarantee: nothing is cut off. On a terminal, a long cell continues on the next line. If stdout is not a
        terminal, every row is one line.

        Args:
            right: names of the right-aligned columns.
        """
        if self.json:
            return
        if not is_terminal(sys.stdout):
            for line in plain_table(columns, rows, right):
                _print_line(line)
            return
        self._console().print(_rich_table(columns, rows, right))

    def fields(self, values: Mapping[str, object], texts: Mapping[str, Callable[[Any], str]] | None = None) -> None:
        """Print the fields of a JSON document for a person, one on a line.

        Args:
            texts: formats the values of some fields for a person.
        """
        rows = [
            (name.removesuffix("_s").replace("_", " "), (texts or {}).get(name, format_json_value)(value))
            for name, value in values.items()
        ]
        self.table(["field", "value"], rows)

    def print_split_table(self, title: str, names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> None:
        """Print a table of narrow columns, split into several tables on a narrow screen.

        Args:
            title, names: the heading and the cells of the first column.
            columns: the cells of the other columns, by heading; headings are wrapped after each - or _.
        """
        heads = [re.sub("([-_])", r"\1\n", head) for head in columns]
        cells = list(columns.values())
        fitting = max((self.width - 28) // 12, 1)
        for start in range(0, len(heads), fitting):
            rows = zip(names, *cells[start : start + fitting], strict=True)
            self.table([title, *heads[start : start + fitting]], list(rows))

    @property
    def width(self) -> int:
        """Return the width of the terminal in columns; `ENDLESS` without a terminal, so that nothing is wrapped."""
        return self._console().width if is_terminal(sys.stdout) else ENDLESS

    def _console(self, *, stderr: bool = False) -> Console:
        from rich.console import Console

        return Console(stderr=stderr, highlight=False)

    # --- stderr -------------------------------------------------------------------------------------------------------
    def note(self, text: str) -> None:
        """Print a line on stderr, such as what to do next."""
        click.echo(escape_controls(text), err=True)

    def error(self, error: HoldfastError) -> None:
        """Print an error as one sentence on stderr; with --json, also print it as a document for programs."""
        self.note(f"error: {error}")
        self.print_json_error(str(error), type(error).__name__)

    def confirm(self, question: str) -> None:
        """Ask whether to go on; end the command if the answer is no.

        Raises:
            InvalidRequestError: stdin is not a terminal, or stdout takes JSON.
        """
        if self.json or not is_terminal(sys.stdin):
            raise InvalidRequestError("cannot ask for confirmation here: run this command with --yes")
        click.confirm(question, abort=True)

    @contextlib.contextmanager
    def progress(self, *, in_bytes: bool = False) -> Iterator[Progress]:
        """Yield a progress callback for long work; draw a bar if stderr is a terminal.

        Args:
            in_bytes: whether it is called with numbers of bytes, which are shown with their speed.
        """
        if not is_terminal(sys.stderr):
            yield lambda stage, done, total: None
            return
        from rich import progress as shown

        sizes = (shown.DownloadColumn(binary_units=True), shown.TransferSpeedColumn(), shown.TimeRemainingColumn())
        numbers = (shown.MofNCompleteColumn(), shown.TimeElapsedColumn())
        bar = shown.Progress(
            shown.TextColumn("{task.description}"),
            shown.BarColumn(),
            *(sizes if in_bytes else numbers),
            console=self._console(stderr=True),
            transient=True,
        )
        stages = {}

        def show_progress(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=total or None)
            bar.update(stages[stage], completed=done, total=total or None)

        with bar:
            yield show_progress

    @contextlib.contextmanager
    def show_spinner(self, text: str, *, lines: bool = False) -> Iterator[Callable[[str], None]]:
        """Show a spinner during work whose progress cannot be counted; yield a function that changes its text.

        Args:
            lines: whether to print each text as a line if stderr is not a terminal.
        """
        if not is_terminal(sys.stderr):
            yield self.note if lines else lambda text: None
            return
        from rich.text import Text

        # Use Text, so that rich does not take a "[" in a name for markup.
        with self._console(stderr=True).status(Text(escape_to_one_line(text))) as status:
            yield lambda text: status.update(Text(escape_to_one_line(text)))


def _rich_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        # Use Text, so that rich does not take a "[" in a name for markup.
        longest = max(map(len, name.split()), default=0)  # a heading continues on the next line between its words
        table.add_column(Text(escape_controls(name)), justify=justify, overflow="fold", min_width=longest)
    for row in rows:
        table.add_row(*(Text(escape_to_one_line(cell)) for cell in row))
    return table


# --- values for a person ----------------------------------------------------------------------------------------------
def size_text(size_bytes: int) -> str:
    """Format a size, e.g. ``12.3 MiB``."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def time_text(time_s: float) -> str:
    """Format a timestamp in UTC to the second, e.g. ``2013-01-01 05:15:00Z``; beyond the year 9999, its seconds."""
    try:
        return datetime.fromtimestamp(time_s, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # other programs may have written any number
        return f"{time_s:.0f}s after 1970"


def duration_text(duration_s: float) -> str:
    """Format a duration in one unit, e.g. ``45s``, ``12min``, ``3h``, ``2d``: precise enough to act on."""
    for unit_s, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if duration_s >= unit_s:
            return f"{duration_s / unit_s:.0f}{unit}"
    return f"{max(duration_s, 0):.0f}s"


def discard_stdout() -> None:
    """Redirect a closed stdout to /dev/null, so that the interpreter's last flush raises no error."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
