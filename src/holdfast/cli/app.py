"""Define the command ``holdfast``, and how all commands end.

A command's module is imported when the command is looked up, and imports only click and modules that load quickly, so
that ``--help`` is fast and works without PySpark. A command imports everything else when it runs.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from holdfast.cli.command import CommandGroup, group
from holdfast.cli.failures import INTERRUPTED, TERMINATED, WRONG_USAGE
from holdfast.cli.output import Output, OutputError, discard_stdout
from holdfast.cli.screen import escape_controls


class _Commands(CommandGroup):
    """The commands; however they end, the exit code is a documented one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)  # --help and --version are known, and the screen is small

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]  # always exits
        extra.pop("standalone_mode", None)
        given = sys.argv[1:] if args is None else list(args)
        # Even if the arguments do not parse, --json needs a document, so look for this flag before parsing.
        out = Output(json="--json" in given[: given.index("--") if "--" in given else None])
        try:
            code = super().main(given, prog_name or "holdfast", standalone_mode=False, obj=out, **extra)
        except click.ClickException as error:
            code = _report_usage_error(error, out)
        except (click.Abort, KeyboardInterrupt):
            code = _report_interrupt(out)
        except SystemExit as end:
            if end.code == TERMINATED:
                out.print_json_error("terminated", "Interrupted")
            raise
        except BrokenPipeError:
            discard_stdout()
            code = 0
        except Exception as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 raises RuntimeError from it in an import
                sys.exit(_report_interrupt(out))
            # A bug: keep its traceback.
            out.print_json_error(str(error), type(error).__name__)
            raise
        sys.exit(code if isinstance(code, int) else 0)


def _report_interrupt(out: Output) -> int:
    """Say that the command was interrupted, also as JSON if wanted; return the exit code."""
    click.echo("interrupted", err=True)
    out.print_json_error("interrupted", "Interrupted")
    return INTERRUPTED


def _report_usage_error(error: click.ClickException, out: Output) -> int:
    """Print what is wrong with the arguments or with stdout, also as JSON if wanted; return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # no arguments: print the help
        click.echo(escape_controls(error.format_message()), err=True)
        out.print_json_error("no command is given", "InvalidRequestError")
        return WRONG_USAGE
    sentence = error.format_message()
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else ""
    click.echo(escape_controls(f"error: {sentence}"), err=True)
    if command:
        click.echo(f"help: {command} --help", err=True)
    if isinstance(error, OutputError):
        return error.exit_code
    out.print_json_error(sentence, "InvalidRequestError")
    return WRONG_USAGE


# --- groups -----------------------------------------------------------------------------------------------------------
@group({"Commands": {"recovery": "list abort"}})
def uploads() -> None:
    """List or abort pending multipart uploads.

    They are stored parts that you pay for and that belong to no file.
    """


@group(
    {
        "Look": {"fs.listing": "ls find stat test", "fs.copying": "cat"},
        "Copy": {"fs.copying": "put get cp"},
        "Change": {"fs.moving": "mv rm", "fs.changing": "mkdir touch chmod chown"},
        "Measure": {"fs.sizes": "du quota"},
    }
)
def fs() -> None:
    """Work with the files of a namespace, as with hadoop fs.

    Examples:
      holdfast fs ls -l holdfast://prod/data
      holdfast fs put ./flights holdfast://prod/data
      holdfast fs mv holdfast://prod/data holdfast://prod/archive
      holdfast fs rm -r --trash --glob 'holdfast://prod/archive/2013-*'

    A path is holdfast://NAME/path, where holdfast namespace init has created NAME. Every character of a path is
    literal. With --glob, paths are patterns: *, ?, [a-c], [!a], {a,b}, and ** for any number of directories. Put them
    in quotes, so that the shell does not expand them. Options, such as --user, follow the command: holdfast fs ls
    --user ann URL.
    """


@group({"Commands": {"namespace.tokens": "issue list revoke"}})
def token() -> None:
    """Issue and revoke the tokens that prove users to servers.

    A client sends one in the header Authorization: Bearer; Hadoop and Spark find one in a file.
    """


@group(
    {
        "Commands": {
            "namespace.configuration": "init list status set",
            "namespace.upkeep": "fsck gc",
            "namespace.serving": "serve demo",
            "app": "token",
        }
    }
)
def namespace() -> None:
    """Create, inspect and clean up namespaces.

    A namespace is a tree of directories and files, as in HDFS, over any object store.

    Examples:
      holdfast namespace init prod --database sqlite:///var/lib/prod.db \\
          --data s3://bucket/prod
      holdfast namespace status prod
      holdfast namespace gc prod --every 3600
    """


@group(
    {
        "Tables": {"database.tables": "create stats drop gc", "database.cells": "ls scan"},
        "Cells": {"database.cells": "get put delete"},
        "Jobs of computation units": {"database.jobs": "jobs watch forget"},
    }
)
def database() -> None:
    """Work with tables of cells, which computation units share.

    Examples:
      holdfast database create sqlite:///var/lib/shop.db stock
      holdfast database put sqlite:///var/lib/shop.db stock apples 5 --type int
      holdfast database scan sqlite:///var/lib/shop.db stock

    A cell is a value at a row and a column; computation units are functions that change cells. A URL is
    sqlite:///file, postgresql://user@host/database or mysql://user@host/database. A password does not belong on a
    command line: set the variable HOLDFAST_DATABASE_<NAME> to the URL, and give NAME instead.
    """


# --- holdfast ---------------------------------------------------------------------------------------------------------
_START = """\
Transactional output for Spark: a job's rows appear at once, or not at all.

\b
  holdfast demo                                   watch it survive crashes
  holdfast write flights.csv s3://bucket/flights  write a file with Spark
  holdfast read s3://bucket/flights               show the rows
"""


@click.group(
    cls=_Commands,
    sections={
        "Write and read tables": {"write": "write", "read": "read", "inspection": "history show"},
        "Operate them": {"inspection": "verify", "recovery": "recover", "app": "uploads"},
        "Choose a store and a committer": {"committers": "committers", "check_store": "check-store"},
        "Keep files and cells in a database": {"app": "fs namespace database"},
        "Try it out": {"trying_out": "demo s3-server"},
    },
    extensible="Choose a store and a committer",
    elsewhere={"check": "pip install 'holdfast[checker]'"},
    help=_START,
    epilog="""\
Options and examples: holdfast COMMAND --help. Exit codes: 0 success, 1 problem found, 2 wrong usage, 3 unavailable or
unknown. Credentials come from where every AWS tool has them, never from the command line.""",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(package_name="holdfast", prog_name="holdfast", message="%(prog)s %(version)s")
def cli() -> None:
    """Run the command that the arguments name; without one, print the help, which begins with `_START`."""


def _handle_sigterm(number: int, frame: object) -> NoReturn:
    """Handle SIGTERM: exit as after Ctrl-C, which ends child processes and aborts an undecided job."""
    sys.exit(128 + number)


def _start_repeating_lost_signals() -> None:
    """From now on, send this process a signal again, a moment later, if Python has ignored what its handler raised.

    Python runs the handler of a signal between any two steps of the main thread, also in finalizers and in callbacks of
    weak references, such as those that end an import. What it raises there is only printed: the command would go on.
    """
    report: Callable[[Any], object] = sys.unraisablehook

    def repeat_lost_signal(ignored: Any) -> None:
        number = _find_signal_behind_error(ignored.exc_value)
        if number is None:
            report(ignored)
            return
        signal.signal(signal.SIGALRM, lambda _number, _frame: signal.raise_signal(number))
        signal.setitimer(signal.ITIMER_REAL, 0.01)

    sys.unraisablehook = repeat_lost_signal


def _find_signal_behind_error(error: BaseException | None) -> signal.Signals | None:
    """Return the signal whose handler has raised an error, which it does in the main thread only."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    return signal.SIGTERM if isinstance(error, SystemExit) and error.code == TERMINATED else None


def main() -> None:
    """Run ``holdfast`` with the arguments of this process, and exit."""
    signal.signal(signal.SIGTERM, _handle_sigterm)
    _start_repeating_lost_signals()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escape what the locale's encoding cannot express
            stream.reconfigure(errors="backslashreplace")
    cli.main()
