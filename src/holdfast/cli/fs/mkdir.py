"""Run ``holdfast fs mkdir``: make directories."""

from __future__ import annotations

import click

from holdfast.cli.fs.command import fs_command
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, on_namespaces

_EPILOG = """\b
Examples:
  holdfast fs mkdir holdfast://prod/data
  holdfast fs mkdir -p -m 770 holdfast://prod/a/b/c holdfast://prod/d"""


@fs_command("mkdir", epilog=_EPILOG)
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option("-p", "--parents", is_flag=True, help="Make missing parents; accept directories that exist.")
@click.option("-m", "--mode", metavar="MODE", default="755", show_default=True, help="Mode, as for chmod.")
@on_namespaces
def mkdir(urls: tuple[str, ...], parents: bool, mode: str, session: Session, out: Output) -> None:
    """Make directories."""
    from holdfast.cli.fs.items import find_spot
    from holdfast.cli.fs.modes import parse_mode
    from holdfast.cli.fs.problems import Problems

    bits = parse_mode(mode)(0o755, True)
    spots = [find_spot(session, url) for url in urls]
    problems = Problems(out)
    created = []
    existing = 0
    for spot in spots:
        with problems.noted(spot.url):
            if spot.namespace.mkdirs(spot.path, mode=bits, parents=parents):
                created.append(spot.url)
                out.say(f"created {in_one_line(spot.url)}")
            else:
                existing += 1
    out.document({"created": created, "failed": problems.documents})
    problems.end(len(created) + existing)
