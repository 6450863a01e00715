"""Declare the arguments and options that name rows, and parse them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import click

from holdfast.cli.arguments import Word, filled
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.records import Row

_ROW_TYPES = ("text", "int", "json")
_MOST_DIGITS = 4000


class RowCommand(click.Command):
    """A command whose arguments may begin with a hyphen, as negative numbers do; unknown options are still refused.

    Such an argument may contain any letter: so ``-h`` asks for help only if it stands alone.
    """

    ignore_unknown_options = True

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.context_settings = {**self.context_settings, "help_option_names": ["--help"]}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args == ["-h"]:
            args = ["--help"]
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        for word in args[: args.index("--")] if "--" in args else args:
            name = word.partition("=")[0]
            if name.startswith("--") and name not in known:
                raise click.NoSuchOption(name, possibilities=sorted(known), ctx=ctx)
        return super().parse_args(ctx, args)


def with_row(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument ``ROW`` and ``--row-type``; pass the parsed row as `row`."""

    @_row_type
    @click.argument("row", type=filled)
    @functools.wraps(command)
    def run(*args: Any, row: str, row_type: str, **given: Any) -> None:
        command(*args, row=_parse_row(row, row_type), **given)

    return run


class Bounds(TypedDict, total=False):
    """What limits a scan: only what was given."""

    prefix: Row
    start: Row
    end: Row


def with_bounds(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--prefix``, ``--start``, ``--end`` and ``--row-type``; pass what was given as `bounds`."""

    @click.option("--prefix", metavar="ROW", type=filled, help="Only rows that begin with this text, or these parts.")
    @click.option("--start", metavar="ROW", type=filled, help="The first row.")
    @click.option("--end", metavar="ROW", type=filled, help="The row before which to stop.")
    @_row_type
    @functools.wraps(command)
    def run(*args: Any, prefix: str | None, start: str | None, end: str | None, row_type: str, **given: Any) -> None:
        if prefix is not None and (start is not None or end is not None):
            raise click.UsageError("give --prefix, or --start and --end, not both")
        bounds: dict[str, Row] = {}
        for name, text in (("prefix", prefix), ("start", start), ("end", end)):
            if text is not None:
                bounds[name] = _parse_row(text, row_type, is_prefix=name == "prefix")
        command(*args, bounds=bounds, **given)

    return run


_row_type = click.option(
    "--row-type",
    type=Word(_ROW_TYPES),
    default="text",
    show_default=True,
    help="How rows are given: text, int, or json for tuples.",
)


def _parse_row(text: str, kind: str, *, is_prefix: bool = False) -> Row:
    from holdfast.cli.database.forms import parse_json_row

    if kind == "int":
        return parse_integer(text, "row")
    return parse_json_row(text, is_prefix=is_prefix) if kind == "json" else text


def parse_integer(text: str, what: str) -> int:
    """Return the integer that a text is.

    Raises:
        InvalidRequestError: it is none, or one of more than 4,000 digits.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise InvalidRequestError(f"the {what} is no integer: write digits, at most {_MOST_DIGITS:,}", given=text)
    return int(text)
