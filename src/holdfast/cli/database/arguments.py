"""Open the database that a command names, and parse how users write rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import click

from holdfast.cli.arguments import Word, filled
from holdfast.cli.command import Run, argument, option
from holdfast.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from holdfast.records import Database, Row

_VARIABLE_PREFIX = "HOLDFAST_DATABASE_"
_MOST_DIGITS = 4000
_ROW_TYPES = "How rows are given: text, int, or json for tuples."

Table = Annotated[str, argument()]
Key = Annotated[str, argument("ROW", type=filled)]
RowType = Annotated[str, option("--row-type", _ROW_TYPES, type=Word(["text", "int", "json"]), default="text")]
Column = Annotated[str, option("--column", "Column of the cell.", default="value")]
Prefix = Annotated[str | None, option("--prefix", "Only rows that begin so.", metavar="ROW", type=filled)]
Start = Annotated[str | None, option("--start", "The first row.", metavar="ROW", type=filled)]
End = Annotated[str | None, option("--end", "The row before which to stop.", metavar="ROW", type=filled)]


# --- databases --------------------------------------------------------------------------------------------------------
def open_url(run: Run, given: str, *, create: bool = False) -> Database:
    """Open the database at a URL, or at the URL in the variable of a name; it is closed at the end of the run.

    Raises:
        HoldfastError: see `holdfast.records.open_database`; or the URL contains a password (which the message does not
            show), or belongs to this process only.
    """
    from holdfast.records import open_database

    url = _url_of(given)
    if url.startswith("memory://"):
        raise InvalidRequestError("memory:// exists in one process only, and ends with this command: name a database")
    try:
        return run.closing.enter_context(open_database(url, create=create))
    except NotFoundError as error:
        if create:
            raise
        what = error.message.partition(":")[0]
        hint = "check the url, or make the database with holdfast database create"
        raise NotFoundError(f"{what}: {hint}", **error.variables) from error


def _url_of(given: str) -> str:
    from holdfast.transactions.urls import has_password

    if "://" not in given and not given.startswith("sqlite:"):  # if its slashes are missing, the error says so
        return _url_in_variable(given)
    if has_password(given):
        raise InvalidRequestError(
            "a password does not belong on a command line, which every user of the machine can read: put the url in a "
            f"variable such as {_VARIABLE_PREFIX}SHOP and give shop in its place, or the password in a file of the "
            "database's client, such as ~/.pgpass"
        )
    return given


def _url_in_variable(name: str) -> str:
    if not name.replace("-", "_").isidentifier():
        raise InvalidRequestError(
            "a database is named by its url: write sqlite:///directory/file.db for a file", given=name
        )
    variable = _VARIABLE_PREFIX + name.upper().replace("-", "_")
    url = os.environ.get(variable, "")
    if url and "://" not in url:  # not shown: it may hold a password
        raise InvalidRequestError(
            "the variable holds no url of a database: set it to one, such as sqlite:///directory/file.db",
            variable=variable,
        )
    if not url:
        raise InvalidRequestError(
            f"no such database: give its url, such as sqlite:///directory/file.db, or set {variable} to it",
            given=name,
        )
    return url


# --- rows -------------------------------------------------------------------------------------------------------------
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


class Bounds(TypedDict, total=False):
    """What limits a scan: only what was given."""

    prefix: Row
    start: Row
    end: Row


def parse_bounds(prefix: str | None, start: str | None, end: str | None, row_type: str) -> Bounds:
    """Return what limits a scan.

    Raises:
        UsageError: the options contradict each other.
    """
    if prefix is not None and (start is not None or end is not None):
        raise click.UsageError("give --prefix, or --start and --end, not both")
    bounds = Bounds()
    if prefix is not None:
        bounds["prefix"] = parse_row(prefix, row_type, is_prefix=True)
    if start is not None:
        bounds["start"] = parse_row(start, row_type)
    if end is not None:
        bounds["end"] = parse_row(end, row_type)
    return bounds


def parse_row(text: str, kind: str, *, is_prefix: bool = False) -> Row:
    """Return the row that a user means by a text of this type."""
    from holdfast.cli.database.forms import parse_json_row

    if kind == "int":
        return parse_integer(text, "row")
    return parse_json_row(text, is_prefix=is_prefix) if kind == "json" else text


def parse_integer(text: str, what: str) -> int:
    """Return the integer that a text is.

    Raises:
        InvalidRequestError: the text is no integer, or one of more than 4,000 digits.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise InvalidRequestError(f"the {what} is no integer: write digits, at most {_MOST_DIGITS:,}", given=text)
    return int(text)
