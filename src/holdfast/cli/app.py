"""Define the command ``holdfast``: its subcommands, and how all of them handle errors.

A command's module is imported when the command is looked up, and imports only click and modules that load quickly, so
that ``--help`` is fast and works without PySpark (`command_group`). A command imports everything else when it runs.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from holdfast.cli.command_group import CommandGroup
from holdfast.cli.failures import INTERRUPTED, TERMINATED, WRONG_USAGE
from holdfast.cli.lost_signals import repeat_lost_signals
from holdfast.cli.output import Documents, OutputError, discard_stdout
from holdfast.cli.screen import escaped

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("demo", "Watch data survive killed tasks and a killed driver."),
    "s3-server": ("s3_server", "Run an S3 server on this machine, to try Holdfast on."),
    "write": ("write.command", "Write INPUT to URL with Spark: all of it or nothing."),
    "read": ("read.command", "Show the first rows of the destination at URL."),
    "verify": ("verify", "Compare the files at URL with what was committed."),
    "history": ("history", "Show committed, aborted and undecided jobs."),
    "recover": ("recover", "End every dead job at URL, whichever committer it used."),
    "uploads": ("uploads", "List, count or abort pending multipart uploads."),
    "show": ("show", "Show the report of a job, such as _SUCCESS."),
    "committers": ("committers", "Show the commit protocols and their guarantees."),
    "check-store": ("check_store.command", "Test which committers are safe on a store."),
    "namespace": ("namespace.group", "Create, inspect and clean up namespaces."),
    "fs": ("fs.group", "Work with the files of a namespace."),
    "database": ("database.group", "Work with tables of cells in a database."),
}
"""The commands in order of use, each with its module in `holdfast.cli` and its line in ``holdfast --help``."""


class _Commands(CommandGroup):
    """The commands; however they end, the exit code is a documented one."""

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


_EPILOG = """\b
Examples:
  holdfast demo
  holdfast write flights.csv s3://bucket/flights --partition-by month
  holdfast read s3://bucket/flights -n 5
  holdfast verify s3://bucket/flights
  holdfast recover s3://bucket/flights --dry-run

\b
Exit codes:
  0  success                     3    store unavailable, or outcome unknown
  1  a problem was found         130  interrupted by Ctrl-C
  2  wrong usage or request      143  ended by SIGTERM

S3 credentials come from the environment, ~/.aws or the instance role, as in every AWS tool, and never from the command
line."""


@click.group(
    cls=_Commands,
    extensible=True,
    table=_COMMANDS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(package_name="holdfast", prog_name="holdfast", message="%(prog)s %(version)s")
def cli() -> None:
    """Transactional output for Spark: all of a job's output becomes visible when the job commits, exactly once."""


def _terminate(number: int, frame: object) -> NoReturn:
    """Handle SIGTERM: exit as after Ctrl-C, which ends child processes and aborts an undecided job."""
    sys.exit(128 + number)


def main() -> None:
    """Run ``holdfast`` with the arguments of this process, and exit."""
    signal.signal(signal.SIGTERM, _terminate)
    repeat_lost_signals()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escape what the locale's encoding cannot express
            stream.reconfigure(errors="backslashreplace")
    cli.main()
