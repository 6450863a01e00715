"""Run ``holdfast fs quota``: limit the names and the bytes in a directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import byte_count
from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, lists_from_namespaces, on_namespaces

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item
    from holdfast.namespace.status import QuotaUsage

_SET_EPILOG = """\b
Examples:
  holdfast fs quota set holdfast://prod/user/ann --names 100000 --space 1T

Only the superuser may set quotas. The directory is counted first; nobody can change it meanwhile."""

_CLEAR_EPILOG = """\b
Examples:
  holdfast fs quota clear holdfast://prod/user/ann
  holdfast fs quota clear --space holdfast://prod/user/ann"""

_SHOW_EPILOG = """\b
Examples:
  holdfast fs quota show -h --glob 'holdfast://prod/user/*'"""


@click.group()
def quota() -> None:
    """Limit the names and the bytes in a directory.

    A quota of names counts everything below the directory, and the directory itself. A quota of space counts bytes
    times replication. What was deleted counts until holdfast namespace gc has removed it.
    """


@fs_command("set", epilog=_SET_EPILOG)
@with_urls
@click.option("--names", metavar="N", type=click.IntRange(min=1), help="Most files and directories.")
@click.option("--space", metavar="SIZE", type=byte_count, help="Most bytes, times replication.")
@on_namespaces
def _set(
    urls: tuple[str, ...], glob: bool, names: int | None, space: int | None, session: Session, out: Output
) -> None:
    """Set the quotas of directories; one that you do not name stays as it is."""
    if names is None and space is None:
        raise click.UsageError("nothing is limited: give --names, --space or both")
    _change(
        urls,
        glob,
        lambda usage: (usage.names_quota if names is None else names, usage.space_quota if space is None else space),
        session,
        out,
    )


@fs_command("clear", epilog=_CLEAR_EPILOG)
@with_urls
@click.option("--names", is_flag=True, help="Remove only the quota of names.")
@click.option("--space", is_flag=True, help="Remove only the quota of space.")
@on_namespaces
def _clear(urls: tuple[str, ...], glob: bool, names: bool, space: bool, session: Session, out: Output) -> None:
    """Remove the quotas of directories."""
    _change(
        urls,
        glob,
        lambda usage: (
            usage.names_quota if space and not names else None,
            usage.space_quota if names and not space else None,
        ),
        session,
        out,
    )


@fs_command("show", epilog=_SHOW_EPILOG)
@with_urls
@click.option("-h", "--human", is_flag=True, help="Show sizes in units such as MiB.")
@lists_from_namespaces
def _show(urls: tuple[str, ...], glob: bool, human: bool, session: Session, out: Output) -> None:
    """Show the quotas of directories and what counts against them, without counting."""
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.rows import amount, titles

    problems = Problems(out, lines=True)
    shown: list[Item] = []
    rows = []
    for item in find_items(session, urls, glob=glob):
        with problems.noted(item.url):
            usage = item.namespace.quota_usage(item.status.path)
            out.line({"url": item.url, **_fields(usage)})
            names = ("-", "-") if usage.names_quota is None else (f"{usage.names_quota}", f"{usage.names}")
            space = [
                "-" if usage.space_quota is None else amount(one, human=human)
                for one in (usage.space_quota or 0, usage.space)
            ]
            rows.append((*names, *space))
            shown.append(item)
    columns = ["names quota", "names used", "space quota", "space used", "path"]
    named = [(*cells, name) for cells, name in zip(rows, titles(shown), strict=True)]
    out.table(columns, named, right=columns[:-1])
    problems.end(len(rows))


quota.add_command(_set)
quota.add_command(_clear)
quota.add_command(_show)


def _change(
    urls: tuple[str, ...],
    glob: bool,
    limits: Callable[[QuotaUsage], tuple[int | None, int | None]],
    session: Session,
    out: Output,
) -> None:
    """Set the quotas of directories to what `limits` returns for the present ones."""
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems

    problems = Problems(out)
    changed = []
    with out.waiting("counting"):
        for item in find_items(session, urls, glob=glob):
            with problems.noted(item.url):
                path = item.status.path
                names, space = limits(item.namespace.quota_usage(path))
                item.namespace.set_quota(path, names=names, space=space)
                changed.append({"url": item.url, **_fields(item.namespace.quota_usage(path))})
    for one in changed:
        words = [f"{what} {_word(one[f'{what}_quota'])}" for what in ("names", "space")]
        out.say(f"quotas of {in_one_line(str(one['url']))}: {', '.join(words)}")
    out.document({"changed": changed, "failed": problems.documents})
    problems.end(len(changed))


def _word(limit: object) -> str:
    return "without limit" if limit is None else f"{limit:,}"


def _fields(usage: QuotaUsage) -> dict[str, object]:
    return {
        "names_quota": usage.names_quota,
        "names_used": usage.names,
        "space_quota": usage.space_quota,
        "space_used": usage.space,
    }
