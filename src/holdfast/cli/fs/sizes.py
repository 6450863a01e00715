"""Run ``holdfast fs du``, ``count`` and ``quota``: how much space trees take, and may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import byte_count
from holdfast.cli.command import Glob, Human, Opens, Run, Shape, Urls, command, option
from holdfast.cli.output import Column, document
from holdfast.cli.screen import in_one_line

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item, Problems
    from holdfast.namespace.listing import QuotaUsage


# --- du and count -----------------------------------------------------------------------------------------------------
@command(Opens.NAMESPACES, Shape.LINES)
def du(
    run: Run,
    urls: Urls,
    glob: Glob,
    summarize: Annotated[bool, option("-s --summarize", "Show one total for each URL, not its entries.")],
    human: Human,
) -> None:
    """Show how much space the entries of directories take.

    Examples:
      holdfast fs du -h holdfast://prod/data
      holdfast fs du -s -h --glob 'holdfast://prod/*'

    "space" is the size times the replication, which is what quotas count.
    """
    _measure(run, urls, glob, ["size", "space"], human=human, inside=not summarize)


@command(Opens.NAMESPACES, Shape.LINES)
def count(
    run: Run,
    urls: Urls,
    glob: Glob,
    quotas: Annotated[bool, option("-q --quotas", "Show quotas, and what is left of them.")],
    human: Human,
) -> None:
    """Count the directories, the files and the bytes at and below URL.

    Examples:
      holdfast fs count holdfast://prod/data
      holdfast fs count -q -h --glob 'holdfast://prod/user/*'
    """
    limits = ["names quota", "names left", "space quota", "space left"] if quotas else []
    _measure(run, urls, glob, [*limits, "directories", "files", "size"], human=human, inside=False)


def _measure(run: Run, urls: Sequence[str], glob: bool, shown: Sequence[str], *, human: bool, inside: bool) -> None:
    """Print these columns for each item, or for each entry of a directory."""
    from holdfast.cli.fs.items import Problems, amount, titles

    def left(quota: int | None, used: int) -> int | None:
        return None if quota is None else quota - used

    in_units = amount(human=human)
    columns = (
        Column("url", None, lambda one: one[0].url),
        Column("path", None, lambda one: one[0].status.path),
        Column("names_quota", "names quota", lambda one: one[1].names_quota),
        Column("", "names left", lambda one: left(one[1].names_quota, one[1].directories + one[1].files)),
        Column("space_quota", "space quota", lambda one: one[1].space_quota, in_units),
        Column("", "space left", lambda one: left(one[1].space_quota, one[1].space), in_units),
        Column("directories", "directories", lambda one: one[1].directories),
        Column("files", "files", lambda one: one[1].files),
        Column("size", "size", lambda one: one[1].size, in_units),
        Column("space", "space", lambda one: one[1].space, in_units),
    )
    out = run.out
    problems = Problems(out, lines=True)
    found = []
    with out.waiting("counting") as show:
        for item in _items(run, urls, glob, inside, problems):
            show(f"counting {item.url}")
            with problems.noted(item.url):
                found.append((item, item.namespace.content_summary(item.status.path)))
                out.line(document(columns, found[-1]))
    if found:
        names = titles([item for item, _ in found])
        out.show(
            [*(one for one in columns if one.title in shown), Column("", "path", lambda one: names[one[0].url])], found
        )
    problems.end(len(found))


def _items(run: Run, urls: Sequence[str], glob: bool, inside: bool, problems: Problems) -> Iterator[Item]:
    """Yield what the URLs name or, if wanted, the entries of the directories that they name."""
    from holdfast.cli.fs.items import entries, find_items

    for url in urls:
        with problems.noted(url):
            for item in find_items(run, [url], glob=glob):
                if inside and item.status.is_directory:
                    yield from (item.at(one) for one in entries(item.namespace, item.status.path))
                else:
                    yield item


# --- quota ------------------------------------------------------------------------------------------------------------
@command(Opens.NAMESPACES, name="set")
def set_quota(
    run: Run,
    urls: Urls,
    glob: Glob,
    names: Annotated[int | None, option("--names", "Most files and directories.", type=click.IntRange(min=1))],
    space: Annotated[int | None, option("--space", "Most bytes, times replication.", type=byte_count)],
) -> None:
    """Set the quotas of directories.

    A quota that you do not name stays as it is.

    Examples:
      holdfast fs quota set holdfast://prod/user/ann --names 100000 --space 1T

    Only the superuser may set quotas. The directory is counted first, and cannot change meanwhile.
    """
    if names is None and space is None:
        raise click.UsageError("nothing is limited: give --names, --space or both")

    def limits(usage: QuotaUsage) -> tuple[int | None, int | None]:
        return usage.names_quota if names is None else names, usage.space_quota if space is None else space

    _change(run, urls, glob, limits)


@command(Opens.NAMESPACES, name="clear")
def clear_quota(
    run: Run,
    urls: Urls,
    glob: Glob,
    names: Annotated[bool, option("--names", "Remove only the quota of names.")],
    space: Annotated[bool, option("--space", "Remove only the quota of space.")],
) -> None:
    """Remove the quotas of directories.

    Examples:
      holdfast fs quota clear holdfast://prod/user/ann
      holdfast fs quota clear --space holdfast://prod/user/ann
    """

    def limits(usage: QuotaUsage) -> tuple[int | None, int | None]:
        keeps_names, keeps_space = space and not names, names and not space
        return usage.names_quota if keeps_names else None, usage.space_quota if keeps_space else None

    _change(run, urls, glob, limits)


@command(Opens.NAMESPACES, Shape.LINES, name="show")
def show_quota(run: Run, urls: Urls, glob: Glob, human: Human) -> None:
    """Show the quotas of directories and what counts against them.

    Examples:
      holdfast fs quota show -h --glob 'holdfast://prod/user/*'
    """
    from holdfast.cli.fs.items import Problems, amount, find_items, titles

    problems = Problems(run.out, lines=True)
    items: list[Item] = []
    found: list[dict[str, object]] = []
    for item in find_items(run, urls, glob=glob):
        with problems.noted(item.url):
            found.append({"url": item.url, **quotas_of(item)})
            run.out.line(found[-1])
            items.append(item)
    names = titles(items)

    def used(what: str) -> Callable[[dict[str, object]], object]:
        return lambda one: None if one[f"{what}_quota"] is None else one[f"{what}_used"]

    columns = (
        Column("", "names quota", lambda one: one["names_quota"]),
        Column("", "names used", used("names")),
        Column("", "space quota", lambda one: one["space_quota"], amount(human=human)),
        Column("", "space used", used("space"), amount(human=human)),
        Column("", "path", lambda one: names[one["url"]]),
    )
    run.out.show(columns, found)
    problems.end(len(found))


def quotas_of(item: Item) -> dict[str, object]:
    """Return the quotas of a directory, and what counts against them."""
    usage = item.namespace.quota_usage(item.status.path)
    return {
        "names_quota": usage.names_quota,
        "names_used": usage.names,
        "space_quota": usage.space_quota,
        "space_used": usage.space,
    }


def _change(
    run: Run, urls: Sequence[str], glob: bool, limits: Callable[[QuotaUsage], tuple[int | None, int | None]]
) -> None:
    """Set the quotas of directories to what `limits` returns for the present ones."""
    from holdfast.cli.fs.items import Problems, find_items

    problems = Problems(run.out)
    changed = []
    with run.out.waiting("counting"):
        for item in find_items(run, urls, glob=glob):
            with problems.noted(item.url):
                names, space = limits(item.namespace.quota_usage(item.status.path))
                item.namespace.set_quota(item.status.path, names=names, space=space)
                changed.append({"url": item.url, **quotas_of(item)})
    for one in changed:
        words = [f"{what} {_limit(one[f'{what}_quota'])}" for what in ("names", "space")]
        run.out.say(f"quotas of {in_one_line(str(one['url']))}: {', '.join(words)}")
    run.out.document({"changed": changed, "failed": problems.documents})
    problems.end(len(changed))


def _limit(limit: object) -> str:
    return "without limit" if limit is None else f"{limit:,}"
