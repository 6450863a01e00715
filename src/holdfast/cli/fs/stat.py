"""Run ``holdfast fs stat``: show everything about files and directories."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output, when
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, lists_from_namespaces

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item

_EPILOG = """\b
Examples:
  holdfast fs stat holdfast://prod/data/one.csv
  holdfast fs stat --format '%s %n' --glob 'holdfast://prod/data/*.csv'

\b
Letters of --format:
  %n  name            %F  file or directory     %y  modified
  %p  path            %s  size in bytes         %Y  modified, ms since 1970
  %N  URL             %o  block size            %x  last read
  %i  id              %r  replication           %X  last read, ms since 1970
  %u  owner           %a  mode, such as 0644    %%  a percent sign
  %g  group           %A  mode, such as -rw-r--r--"""

_LETTERS: Mapping[str, Callable[[Item], object]] = {
    "n": lambda item: item.status.name,
    "p": lambda item: item.status.path,
    "N": lambda item: item.url,
    "i": lambda item: item.status.id,
    "u": lambda item: item.status.owner,
    "g": lambda item: item.status.group,
    "F": lambda item: "directory" if item.status.is_directory else "file",
    "s": lambda item: item.status.size,
    "o": lambda item: item.status.block_size,
    "r": lambda item: item.status.replication,
    "a": lambda item: f"{item.status.mode:04o}",
    "A": lambda item: item.status.permissions,
    "y": lambda item: when(item.status.mtime_ms / 1000),
    "Y": lambda item: item.status.mtime_ms,
    "x": lambda item: when(item.status.atime_ms / 1000),
    "X": lambda item: item.status.atime_ms,
    "%": lambda item: "%",
}


def _checked(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    for found in re.finditer(r"%(.?)", text or "", re.DOTALL):
        if found[1] not in _LETTERS:
            raise click.BadParameter(
                f"'{found[0]}' means nothing: use one of {' '.join('%' + one for one in _LETTERS)}"
            )
    return text


@fs_command("stat", epilog=_EPILOG)
@with_urls
@click.option("--format", "template", metavar="FORMAT", callback=_checked, help="Print a line like this instead.")
@lists_from_namespaces
def stat(urls: tuple[str, ...], glob: bool, template: str | None, session: Session, out: Output) -> None:
    """Show everything that is known about files and directories."""
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.rows import fields

    problems = Problems(out, lines=True)
    shown = 0
    for url in urls:
        with problems.noted(url):
            for item in find_items(session, [url], glob=glob):
                found = fields(item) | _quotas(item)
                out.line(found)
                if template is not None:
                    out.say(in_one_line(_formatted(template, item)))
                else:
                    if shown:
                        out.say("")
                    out.table(["field", "value"], [(name.replace("_", " "), _text(one)) for name, one in found.items()])
                shown += 1
    problems.end(shown)


def _formatted(template: str, item: Item) -> str:
    return re.sub(r"%(.)", lambda found: str(_LETTERS[found[1]](item)), template)


def _quotas(item: Item) -> dict[str, object]:
    """Return the quotas of a directory that has any, and what counts against them."""
    if not item.status.is_directory:
        return {}
    usage = item.namespace.quota_usage(item.status.path)
    if usage.names_quota is None and usage.space_quota is None:
        return {}
    return {
        "names_quota": usage.names_quota,
        "names_used": usage.names,
        "space_quota": usage.space_quota,
        "space_used": usage.space,
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
