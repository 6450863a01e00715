"""Define the command ``holdfast`` and its groups of commands, and how all of them end.

A command's module is imported when the command is looked up, and imports only click and modules that load quickly, so
that ``--help`` is fast and works without PySpark. A command imports everything else when it runs.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import click

from holdfast.cli.command import CommandGroup
from holdfast.cli.failures import INTERRUPTED, TERMINATED, WRONG_USAGE
from holdfast.cli.output import Documents, OutputError, discard_stdout
from holdfast.cli.screen import escaped


class _Commands(CommandGroup):
    """The commands; however they end, the exit code is a documented one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)  # --help and --version are known, and the screen is small

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]  # always exits
        extra.pop("standalone_mode", None)
        given = sys.argv[1:] if args is None else list(args)
        # Even if the arguments do not parse, --json needs a document, so look for this flag before parsing.
        documents = Documents(wanted="--json" in given[: given.index("--") if "--" in given else None])
        try:
            code = super().main(given, prog_name or "holdfast", standalone_mode=False, obj=documents, **extra)
        except click.ClickException as error:
            code = _refuse(error, documents)
        except (click.Abort, KeyboardInterrupt):
            code = _interrupted(documents)
        except SystemExit as end:
            if end.code == TERMINATED:
                documents.print_error("terminated", "Interrupted")
            raise
        except BrokenPipeError:
            discard_stdout()
            code = 0
        except Exception as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 raises RuntimeError from it in an import
                sys.exit(_interrupted(documents))
            # A bug: keep its traceback.
            documents.print_error(str(error), type(error).__name__)
            raise
        sys.exit(code if isinstance(code, int) else 0)


def _interrupted(documents: Documents) -> int:
    """Say that the command was interrupted, also as JSON if wanted; return the exit code."""
    click.echo("interrupted", err=True)
    documents.print_error("interrupted", "Interrupted")
    return INTERRUPTED


def _refuse(error: click.ClickException, documents: Documents) -> int:
    """Print what is wrong with the arguments or with stdout, also as JSON if wanted; return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # no arguments: print the help
        click.echo(escaped(error.format_message()), err=True)
        documents.print_error("no command is given", "InvalidRequestError")
        return WRONG_USAGE
    sentence = error.format_message()
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else ""
    if sentence.startswith("Got unexpected extra argument") and command.endswith(" read"):
        sentence = sentence.removesuffix(".") + ": give one url, and put a pattern in quotes or the shell expands it"
    click.echo(escaped(f"error: {sentence}"), err=True)
    if command:
        click.echo(f"help: {command} --help", err=True)
    if isinstance(error, OutputError):
        return error.exit_code
    documents.print_error(sentence, "InvalidRequestError")
    return WRONG_USAGE


_START = """\
Transactional output for Spark: a job's rows appear at once, or not at all.

\b
  holdfast demo                                    watch it survive killed tasks
  holdfast write flights.csv s3://bucket/flights   write a file with Spark
  holdfast read s3://bucket/flights                show the rows
"""


@click.group(
    cls=_Commands,
    sections={
        "Write and read tables": {
            "write": ("write", "Write INPUT to URL with Spark: all of it or nothing."),
            "read": ("read", "Show the first rows of the destination at URL."),
            "history": ("inspection", "Show committed, aborted and undecided jobs."),
            "show": ("inspection", "Show the report of a job, such as _SUCCESS."),
        },
        "Operate them": {
            "verify": ("inspection", "Compare the files at URL with what was committed."),
            "recover": ("recovery", "End every dead job at URL, whichever committer it used."),
            "uploads": ("app", "List or abort pending multipart uploads."),
        },
        "Choose a store and a committer": {
            "committers": ("committers", "Show the commit protocols and their guarantees."),
            "check-store": ("check_store:check_store", "Test which committers are safe on a store."),
        },
        "Keep files and cells in a database": {
            "fs": ("app", "Work with the files of a namespace, as with hadoop fs."),
            "namespace": ("app", "Create, inspect and clean up namespaces."),
            "database": ("app", "Work with tables of cells in a database."),
        },
        "Try it out": {
            "demo": ("trying_out", "Watch data survive killed tasks and a killed driver."),
            "s3-server": ("trying_out:s3_server", "Run an S3 server on this machine, to try Holdfast on."),
        },
    },
    extensible="Choose a store and a committer",
    help=_START,
    epilog="""\
Options and examples: holdfast COMMAND --help. Exit codes: 0 success, 1 a problem was found, 2 wrong usage, 3 store
unavailable or outcome unknown. S3 credentials come from where every AWS tool has them, never from the command line.""",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(package_name="holdfast", prog_name="holdfast", message="%(prog)s %(version)s")
def cli() -> None:
    """Run a command."""


def _group(
    name: str, text: str, sections: Mapping[str, Mapping[str, tuple[str, str]]], examples: str = ""
) -> CommandGroup:
    epilog = f"\b\nExamples:\n{examples}" if examples else None
    return CommandGroup(name=name, help=text, sections=sections, epilog=epilog, no_args_is_help=True)


uploads = _group(
    "uploads",
    "List or abort pending multipart uploads: stored parts that you pay for and that belong to no file.",
    {
        "Commands": {
            "list": ("recovery:list_uploads", "Show the pending uploads below URL."),
            "abort": ("recovery:abort_uploads", "Abort uploads that belong to no unfinished job."),
        }
    },
)

fs = _group(
    "fs",
    "Work with the files of a namespace, as with hadoop fs.",
    {
        "Look": {
            "ls": ("fs.listing", "List directories."),
            "tree": ("fs.listing", "Draw the tree below a directory."),
            "find": ("fs.listing", "Find files and directories by name, type, size or time."),
            "stat": ("fs.listing", "Show everything about files and directories."),
            "test": ("fs.listing", "Check a path, for scripts: the answer is the exit code."),
            "cat": ("fs.contents", "Print files."),
            "head": ("fs.contents", "Print the beginning of files."),
        },
        "Copy": {
            "put": ("fs.copying", "Copy local files into the namespace."),
            "get": ("fs.copying", "Copy files to this machine."),
            "cp": ("fs.copying", "Copy within namespaces, and to and from other stores."),
        },
        "Change": {
            "mkdir": ("fs.changing", "Make directories."),
            "touch": ("fs.changing", "Set times, or create empty files."),
            "mv": ("fs.moving", "Rename or move files and directories, in one step each."),
            "rm": ("fs.moving", "Remove files and directories, however large."),
            "chmod": ("fs.changing", "Change permissions."),
            "chown": ("fs.changing", "Change owner and group."),
            "getfattr": ("fs.changing", "Show extended attributes."),
            "setfattr": ("fs.changing", "Set or remove an extended attribute."),
        },
        "Measure": {
            "du": ("fs.sizes", "Show how much space trees take."),
            "count": ("fs.sizes", "Count directories, files and bytes, and show quotas."),
            "quota": ("app", "Limit the names and the bytes in a directory."),
        },
    },
    """\
  holdfast fs ls -l holdfast://prod/data
  holdfast fs put ./flights holdfast://prod/data
  holdfast fs mv holdfast://prod/data holdfast://prod/archive
  holdfast fs rm -r --trash --glob 'holdfast://prod/archive/2013-*'

A path is holdfast://NAME/path, where holdfast namespace init has created NAME. Every character of a path is literal.
With --glob, paths are patterns: *, ?, [a-c], [!a], {a,b}, and ** for any number of directories. Put them in quotes, so
that the shell does not expand them. Options, such as --user, follow the command: holdfast fs ls --user ann URL.""",
)

quota = _group(
    "quota",
    """Limit the names and the bytes in a directory.

A quota of names counts everything below the directory, and the directory itself. A quota of space counts bytes times
replication. What was deleted counts until holdfast namespace gc has removed it.""",
    {
        "Commands": {
            "set": ("fs.sizes:set_quota", "Set the quotas of directories."),
            "clear": ("fs.sizes:clear_quota", "Remove the quotas of directories."),
            "show": ("fs.sizes:show_quota", "Show the quotas of directories and what counts against them."),
        }
    },
)

namespace = _group(
    "namespace",
    "Create, inspect and clean up namespaces: trees of directories and files, as in HDFS, over any object store.",
    {
        "Commands": {
            "init": ("namespace.configuration", "Create a namespace in a database."),
            "list": ("namespace.configuration:list_namespaces", "List the namespaces that this user knows."),
            "status": ("namespace.configuration", "Show a namespace's configuration and its pending work."),
            "set": ("namespace.configuration:change", "Change the configuration of a namespace."),
            "fsck": ("namespace.upkeep", "Prove that a namespace is whole, or show what is wrong."),
            "gc": ("namespace.upkeep", "Remove what was deleted, and end the leases of dead writers."),
        }
    },
    """\
  holdfast namespace init prod --database sqlite:///var/lib/prod.db \\
      --data s3://bucket/prod
  holdfast namespace status prod
  holdfast namespace gc prod --every 3600""",
)


database = _group(
    "database",
    "Work with tables of typed cells in a database, which computation units share.",
    {
        "Tables": {
            "create": ("database.tables", "Create a table; prepare the database if that is new."),
            "ls": ("database.cells", "List the tables, or the rows of a table."),
            "scan": ("database.cells", "Show rows with their values."),
            "export": ("database.tables", "Write a table to a file: JSON lines, CSV or Parquet."),
            "stats": ("database.tables", "Count rows, cells and bytes, jobs and work lists."),
            "drop": ("database.tables", "Drop a table."),
            "gc": ("database.tables", "Delete what interrupted drops have left."),
        },
        "Cells": {
            "get": ("database.cells", "Print the value of a cell."),
            "put": ("database.cells", "Write a cell."),
            "delete": ("database.cells", "Delete a row, or one cell of it."),
            "history": ("database.cells", "Show the earlier values of a cell."),
        },
        "Jobs of computation units": {
            "jobs": ("database.jobs", "List the jobs and how far they are, or what one has cost."),
            "watch": ("database.jobs", "Show the largest values of a table while units write to it."),
            "forget": ("database.jobs", "Delete what is known of a job."),
        },
    },
    """\
  holdfast database create sqlite:///var/lib/shop.db stock
  holdfast database put sqlite:///var/lib/shop.db stock apples 5 --type int
  holdfast database scan sqlite:///var/lib/shop.db stock

A URL is that of a database: sqlite:///file, postgresql://user@host/database or mysql://user@host/database. A password
does not belong on a command line: set the variable HOLDFAST_DATABASE_<NAME> to the whole URL, and give NAME in its
place.""",
)


def _terminate(number: int, frame: object) -> NoReturn:
    """Handle SIGTERM: exit as after Ctrl-C, which ends child processes and aborts an undecided job."""
    sys.exit(128 + number)


def _repeat_lost_signals() -> None:
    """From now on, send this process a signal again, a moment later, if Python has ignored what its handler raised.

    Python runs the handler of a signal between any two steps of the main thread, also in finalizers and in callbacks of
    weak references, such as those that end an import. What it raises there is only printed: the command would go on.
    """
    report: Callable[[Any], object] = sys.unraisablehook

    def hook(ignored: Any) -> None:
        number = _signal_of(ignored.exc_value)
        if number is None:
            report(ignored)
            return
        signal.signal(signal.SIGALRM, lambda _number, _frame: signal.raise_signal(number))
        signal.setitimer(signal.ITIMER_REAL, 0.01)

    sys.unraisablehook = hook


def _signal_of(error: BaseException | None) -> signal.Signals | None:
    """Return the signal whose handler has raised an error, which it does in the main thread only."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    return signal.SIGTERM if isinstance(error, SystemExit) and error.code == TERMINATED else None


def main() -> None:
    """Run ``holdfast`` with the arguments of this process, and exit."""
    signal.signal(signal.SIGTERM, _terminate)
    _repeat_lost_signals()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escape what the locale's encoding cannot express
            stream.reconfigure(errors="backslashreplace")
    cli.main()
