"""The command ``holdfast``: its subcommands, and what every one of them does with an error.

Modules of commands import only click and each other at their top, so that ``holdfast --help`` is fast and works without
PySpark; what a command needs it imports when it runs.
"""

from __future__ import annotations

import difflib
import io
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from holdfast.cli.check.command import check
from holdfast.cli.check_store import check_store
from holdfast.cli.committers import committers
from holdfast.cli.demo import demo
from holdfast.cli.failures import INTERRUPTED, TERMINATED, WRONG_USAGE
from holdfast.cli.history import history
from holdfast.cli.output import Documents, OutputError, hush
from holdfast.cli.read import read
from holdfast.cli.recover import recover
from holdfast.cli.screen import shown
from holdfast.cli.show import show
from holdfast.cli.uploads import uploads
from holdfast.cli.verify import verify
from holdfast.cli.write import write

__all__ = ["cli", "main"]


class _Commands(click.Group):
    """A group that offers the nearest command and ends with a documented exit code, also when run by a test."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None and not cmd_name.startswith("-"):
            near = difflib.get_close_matches(cmd_name, self.list_commands(ctx), n=1, cutoff=0.6)
            offer = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(self.list_commands(ctx))}"
            ctx.fail(f"no such command '{cmd_name}': {offer}")
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of use, not of the alphabet

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]  # always exits
        extra.pop("standalone_mode", None)
        given = sys.argv[1:] if args is None else list(args)
        # Whether a document is wanted must be known also where the arguments do not parse.
        documents = Documents(wanted="--json" in given[: given.index("--") if "--" in given else None])
        try:
            code = super().main(given, prog_name or "holdfast", standalone_mode=False, obj=documents, **extra)
        except click.ClickException as error:
            code = _refuse(error, documents)
        except (click.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            documents.print({"error": "interrupted", "kind": "Interrupted"})
            code = INTERRUPTED
        except SystemExit as end:
            if end.code == TERMINATED:
                documents.print({"error": "terminated", "kind": "Interrupted"})
            raise
        except BrokenPipeError:
            hush()
            code = 0
        except Exception as error:  # a defect: it keeps its traceback
            documents.print({"error": str(error), "kind": type(error).__name__})
            raise
        sys.exit(code if isinstance(code, int) else 0)


def _refuse(error: click.ClickException, documents: Documents) -> int:
    """Say what is wrong with the arguments, or with the place that the result should go to."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # nothing was asked: the help is the answer
        click.echo(shown(error.format_message()), err=True)
        documents.print({"error": "no command is given", "kind": "InvalidRequestError"})
        return WRONG_USAGE
    sentence = error.format_message()
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else ""
    if sentence.startswith("Got unexpected extra argument") and command.endswith(" read"):
        sentence = sentence.removesuffix(".") + ": one url is read; put a pattern in quotes, or the shell expands it"
    click.echo(shown(f"error: {sentence}"), err=True)
    if command:
        click.echo(f"help: {command} --help", err=True)
    if isinstance(error, OutputError):
        return error.exit_code
    documents.print({"error": sentence, "kind": "InvalidRequestError"})
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
  0  fine                        3  store unavailable, or outcome unknown
  1  a problem was found         130  interrupted
  2  wrong usage or request

S3 credentials come from the environment, ~/.aws or the instance role, as for every AWS tool; they are never given on
the command line."""


@click.group(
    cls=_Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(package_name="holdfast", prog_name="holdfast", message="%(prog)s %(version)s")
def cli() -> None:
    """Everything that a Spark job produces is held until the job commits, and then all of it is there, exactly once."""


for _command in (demo, write, read, verify, history, recover, uploads, show, committers, check, check_store):
    cli.add_command(_command)


def _terminate(number: int, frame: object) -> NoReturn:
    """End as after Ctrl-C: children are ended, an undecided job is aborted."""
    sys.exit(128 + number)


def main() -> None:
    """Run ``holdfast`` with the arguments of this process, and exit."""
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the locale cannot write is spelled out
            stream.reconfigure(errors="backslashreplace")
    cli.main()
