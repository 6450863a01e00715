"""Declare commands and groups of commands.

A command is a function. Its docstring is its help, from ``Examples:`` on below the options. Its first parameter is the
`CommandRun`; the others are what a user gives, each annotated with a type and an `option` or an `argument`. Parameters
that several commands have are declared once, as aliases such as `Url`, and so are spelled alike everywhere::

    @command(Opens.STORES)
    def history(run: Run, url: Url, limit: Annotated[int, option("-n --limit", "Jobs to show.", default=20)]) -> None:
        \"\"\"Show the latest jobs at URL.\"\"\"
"""

from __future__ import annotations

import functools
import importlib
import inspect
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from enum import Enum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

import click

from holdfast.cli.arguments import (
    ConnectionOptions,
    make_connection_parameters,
    parse_age,
    parse_byte_count,
    parse_time_ms,
    refuse_empty_value,
    refuse_password,
)
from holdfast.cli.failures import PROBLEM, as_holdfast_error, exit_code
from holdfast.cli.output import Output, discard_stdout
from holdfast.errors import HoldfastError
from holdfast.wording import suggest_nearest

if TYPE_CHECKING:
    from holdfast.commit import CommitContext, Progress
    from holdfast.namespace import Namespace

ENTRY_POINT_GROUP = "holdfast.commands"


# --- groups -----------------------------------------------------------------------------------------------------------
class CommandGroup(click.Group):
    """A group of commands that imports the module of a command only when the command or the group's help is asked for.

    So the command line starts fast, and works without packages that only one command needs. For a wrong command, the
    error suggests the nearest one.

    Args:
        sections: below each heading, names of modules in `holdfast.cli`, each with the names of its commands.
        extensible: the heading of the commands that other packages register as entry points of `ENTRY_POINT_GROUP`;
            None if there are no such commands.
        elsewhere: how to install commands of other packages that are not installed, by their names.
        settings: arguments of `click.Group`.
    """

    def __init__(
        self,
        *,
        sections: Mapping[str, Mapping[str, str]],
        extensible: str | None = None,
        elsewhere: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._sections = sections
        self._extensible = extensible
        self._elsewhere = elsewhere or {}
        self._modules = {
            name: module for section in sections.values() for module, names in section.items() for name in names.split()
        }

    def _others(self) -> dict[str, EntryPoint]:
        """Return the commands of other packages, by name."""
        return {} if self._extensible is None else {one.name: one for one in entry_points(group=ENTRY_POINT_GROUP)}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found: click.Command | None
        others: dict[str, EntryPoint] = {}
        if cmd_name in self._modules:
            known = vars(importlib.import_module(f"holdfast.cli.{self._modules[cmd_name]}")).values()
            found = next(one for one in known if isinstance(one, click.Command) and one.name == cmd_name)
        elif cmd_name in (others := self._others()):
            found = others[cmd_name].load()
        else:
            found = super().get_command(ctx, cmd_name)
        if found is None and not cmd_name.startswith("-"):
            if cmd_name in self._elsewhere:
                ctx.fail(f"the command '{cmd_name}' is in another package: {self._elsewhere[cmd_name]}")
            offered = [one for one in (*self._modules, *others) if one != "rm"]  # a typo must not delete anything
            ctx.fail(f"no such command '{cmd_name}': {suggest_nearest(cmd_name, offered)}")
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._modules, *self._others()]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.list_commands(ctx)))
        for heading, section in self._sections.items():
            names = " ".join(section.values()).split()
            names += self._others() if heading == self._extensible else ()
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), one.get_short_help_str(100)) for name, one in commands if one])


def group(sections: Mapping[str, Mapping[str, str]]) -> Callable[[Callable[[], None]], CommandGroup]:
    """Return a decorator that makes a `CommandGroup`, whose help is the docstring of the decorated function."""

    def make_group(function: Callable[[], None]) -> CommandGroup:
        text, examples = _split_help(function)
        name = function.__name__
        return CommandGroup(name=name, help=text, epilog=examples, sections=sections, no_args_is_help=True)

    return make_group


def _split_help(function: Callable[..., None]) -> tuple[str, str | None]:
    """Return what stands above the options of a command, and what stands below them."""
    text, mark, examples = (inspect.getdoc(function) or "").partition("\nExamples:\n")
    return text, f"\b\nExamples:\n{examples}" if mark else None


# --- what a user gives ------------------------------------------------------------------------------------------------
class _DeclaredParameter(NamedTuple):
    names: tuple[str, ...]
    settings: Mapping[str, Any]


_METAVARS: Mapping[object, str] = {
    parse_age: "AGE",
    parse_byte_count: "SIZE",
    refuse_empty_value: "NAME",
    parse_time_ms: "TIME",
}


def option(names: str, help: str = "", **settings: Any) -> _DeclaredParameter:  # noqa: A002  # the word of click
    """Declare a command-line option, as an annotation of a command's parameter.

    Args:
        names: the spellings, such as ``-n --limit``.
        settings: arguments of `click.Option`. The annotated type says the rest: bool is a flag, a tuple is repeatable.
    """
    kind = settings.get("type")
    metavar = "N" if isinstance(kind, click.IntRange) else _METAVARS.get(kind)
    defaults = {"help": help, "show_default": "default" in settings, "metavar": metavar}
    return _DeclaredParameter(tuple(names.split()), {**defaults, **settings})


def argument(metavar: str | None = None, **settings: Any) -> _DeclaredParameter:
    """Declare a positional command-line argument, as an annotation of a command's parameter.

    It is required unless `settings`, arguments of `click.Argument`, say otherwise. A tuple takes any number of words.
    """
    return _DeclaredParameter((), {"metavar": metavar, **settings})


Url = Annotated[str, argument()]
Urls = Annotated[tuple[str, ...], argument("URL...", required=True)]
Name = Annotated[str, argument()]
Glob = Annotated[bool, option("--glob", "URLs are patterns, such as '*.csv'.")]
Human = Annotated[bool, option("-h --human", "Show sizes in units such as MiB.")]
Recursive = Annotated[bool, option("-R --recursive", "Change everything below too.")]
Overwrite = Annotated[bool, option("-f --overwrite", "Replace files that exist.")]
Yes = Annotated[bool, option("-y --yes", "Do not ask for confirmation.")]


def _build_parameters(function: Callable[..., Any]) -> Iterator[click.Parameter]:
    for name, hint in list(typing.get_type_hints(function, include_extras=True).items()):
        if get_origin(hint) is not Annotated:
            continue  # the run, or what is returned
        kind, given = get_args(hint)
        settings = dict(given.settings)
        if kind is bool:
            settings["is_flag"] = True
        elif get_origin(kind) is tuple:
            settings |= {"multiple": True} if given.names else {"nargs": -1}
        elif Path in (kind, *get_args(kind)):
            settings.setdefault("type", click.Path(path_type=Path))
        yield click.Option([*given.names, name], **settings) if given.names else click.Argument([name], **settings)


# --- commands ---------------------------------------------------------------------------------------------------------
class OutputForm(Enum):
    """The form of a command's output: with ``--json``, one document or one per line; or raw bytes without JSON."""

    DOCUMENT = "Print one JSON document, for programs."
    LINES = "Print a JSON document on each line, for programs."
    BYTES = ""


class ResourceKind(Enum):
    """The kind of resource that a command opens; it determines which connection options the command has."""

    NOTHING = 0
    STORES = 1
    NAMESPACES = 2  # and the stores of their data, and others


class CommandRun:
    """The state of one running command: its output, and the stores and namespaces that it opens.

    Args:
        database: URL of the database of a namespace, from ``--database``; it overrides the catalog and the environment.
        user: name of the user as whom the command acts in namespaces; None for the user of this process.

    Attributes:
        reach: the connection options for object stores, including those with the data of namespaces.
        closing: closes, at the end of the command, everything that it opened.
    """

    def __init__(
        self, out: Output, reach: ConnectionOptions, database: str | None = None, user: str | None = None
    ) -> None:
        self.out = out
        self.reach = reach
        self._database = database
        self._user = user
        self._namespaces: dict[str, Namespace] = {}
        self.closing = ExitStack()

    def store(self, url: str, progress: Progress | None = None, **settings: Any) -> CommitContext:
        """Open the destination at a URL, and close it at the end of the command; see `Reach.open`."""
        return self.closing.enter_context(self.reach.open(url, progress, **settings))

    def namespace(self, text: str) -> Namespace:
        """Open a namespace, given its name or a URL in it, and close it at the end of the command.

        Raises:
            HoldfastError: see `holdfast.namespace.open_namespace`; or the database's URL contains a password.
        """
        from holdfast.namespace import open_namespace, split_url
        from holdfast.namespace.catalog import namespace_variable

        name = split_url(text)[0] if "://" in text else text
        if name not in self._namespaces:
            if self._database is not None:
                refuse_password(self._database, namespace_variable(name))
            self._namespaces[name] = self.closing.enter_context(
                open_namespace(
                    f"holdfast://{name}",
                    database=self._database,
                    user=self._user,
                    store_options=self.reach.parse_options_for_all_store_kinds(),
                )
            )
        return self._namespaces[name]

    def find_namespace_database_url(self, name: str) -> str:
        """Return the database URL of the namespace `name`; the URL may contain a password, so do not print it."""
        from holdfast.namespace.catalog import find_database_url

        return self._database or find_database_url(name)


def command(
    opens: ResourceKind = ResourceKind.NOTHING,
    shape: OutputForm = OutputForm.DOCUMENT,
    *,
    name: str | None = None,
    takes_hyphens: bool = False,
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that turns a function into a command of the command line.

    Each parameter becomes an option or an argument, and the docstring becomes the help.

    Args:
        opens: the resources that the command opens; adds their connection options.
        shape: the form of the output; adds ``--json`` unless it is bytes.
        name: the command's name; None for the function's name.
        takes_hyphens: whether an argument may begin with ``-``, as a negative number or a mode
            (`_HyphenArgumentsCommand`).
    """

    def make_command(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def run_with_parameters(*, out: Output, **given: Any) -> None:
            reach = (
                ConnectionOptions.take_from_parameters(given)
                if opens is not ResourceKind.NOTHING
                else ConnectionOptions()
            )
            users = [given.pop(one) for one in ("database", "user")] if opens is ResourceKind.NAMESPACES else []
            this = CommandRun(out, reach, *users)
            try:
                function(this, **given)
            except BaseException:
                with suppress(HoldfastError):  # the first error says more
                    this.closing.close()
                raise
            this.closing.close()

        text, examples = _split_help(function)
        parameters = [*_build_parameters(function), *_namespace_options(opens)]
        parameters += [
            *(make_connection_parameters() if opens is not ResourceKind.NOTHING else ()),
            *_output_options(shape),
        ]
        has_h = any("-h" in one.opts for one in parameters)
        kind = _HyphenArgumentsCommand if takes_hyphens else click.Command
        return kind(
            name or function.__name__,
            callback=report_errors(run_with_parameters),
            params=parameters,
            help=text,
            epilog=examples,
            context_settings={"help_option_names": ["--help"]} if has_h or takes_hyphens else {},
        )

    return make_command


class _HyphenArgumentsCommand(click.Command):
    """A command whose arguments may begin with a hyphen; unknown options in words are still refused.

    Such an argument may contain any letter: so ``-h`` asks for help only if it stands alone.
    """

    ignore_unknown_options = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args == ["-h"]:
            args = ["--help"]
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        for word in args[: args.index("--")] if "--" in args else args:
            name = word.partition("=")[0]
            if name.startswith("--") and name not in known:
                raise click.NoSuchOption(name, possibilities=sorted(known), ctx=ctx)
        return super().parse_args(ctx, args)


def _namespace_options(opens: ResourceKind) -> list[click.Parameter]:
    if opens is not ResourceKind.NAMESPACES:
        return []
    about_database = "Database of the namespace, if the catalog does not know it."
    return [
        click.Option(["--database"], type=refuse_empty_value, metavar="URL", help=about_database),
        click.Option(["--user"], type=refuse_empty_value, metavar="NAME", help="Act as this user.  [default: you]"),
    ]


def _output_options(shape: OutputForm) -> list[click.Parameter]:
    debug = click.Option(["--debug"], is_flag=True, help="Show tracebacks and Spark's log.")
    return [*([click.Option(["--json", "as_json"], is_flag=True, help=shape.value)] if shape.value else []), debug]


def report_errors(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that it gets an `Output` as `out`, and its errors become messages and exit codes."""

    @functools.wraps(function)
    def run_and_report_errors(**given: Any) -> None:
        out = click.get_current_context().find_object(Output) or Output()
        out.json, out.debug = given.pop("as_json", False), given.pop("debug")
        try:
            function(out=out, **given)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            discard_stdout()  # the reader closed the pipe, like `head`
            raise click.exceptions.Exit(0) from None
        except Exception as error:
            known = as_holdfast_error(error)
            if known is None:
                raise
            if out.debug:
                traceback.print_exception(error)
            out.error(known)
            raise click.exceptions.Exit(exit_code(known) or PROBLEM) from None

    return run_and_report_errors
