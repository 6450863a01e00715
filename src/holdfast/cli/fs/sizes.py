"""Run ``holdfast fs du``, ``count`` and ``quota``: how much space trees take, and may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from holdfast.cli.arguments import parse_byte_count
from holdfast.cli.command import CommandRun, Glob, Human, OutputForm, ResourceKind, Urls, command, option
from holdfast.cli.output import ResultColumn, to_document

if TYPE_CHECKING:
    from holdfast.cli.fs.items import NamespaceItem
    from holdfast.namespace.listing import QuotaUsage


# --- du ---------------------------------------------------------------------------------------------------------------
@command(ResourceKind.NAMESPACES, OutputForm.LINES)
def du(
    run: CommandRun,
    urls: Urls,
    glob: Glob,
    summarize: Annotated[bool, option("-s --summarize", "Show one total for each URL, not its entries.")],
    human: Human,
) -> None:
    """Show how many files and bytes are in directories, entry by entry.

    Examples:
      holdfast fs du -h holdfast://prod/data
      holdfast fs du -s -h --glob 'holdfast://prod/*'

    "space" is the size times the replication, which is what quotas count.
    """
    from holdfast.cli.fs.items import PathErrors, display_names, list_directory, size_formatter

    in_units = size_formatter(human=human)
    columns = (
        ResultColumn("url", None, lambda one: one[0].url),
        ResultColumn("path", None, lambda one: one[0].status.path),
        ResultColumn("directories", "directories", lambda one: one[1].directories),
        ResultColumn("files", "files", lambda one: one[1].files),
        ResultColumn("size", "size", lambda one: one[1].size, in_units),
        ResultColumn("space", "space", lambda one: one[1].space, in_units),
    )
    problems = PathErrors(run.out, lines=True)
    found = []
    with run.out.show_spinner("counting") as show:
        for top in problems.items(run, urls, glob=glob):
            goes_inside = top.status.is_directory and not summarize
            below = (top.at(one) for one in list_directory(top.namespace, top.status.path)) if goes_inside else [top]
            with problems.collect_errors(top.url):
                for item in below:
                    show(f"counting {item.url}")
                    with problems.collect_errors(item.url):
                        found.append((item, item.namespace.content_summary(item.status.path)))
    names = display_names([item for item, _ in found])
    run.out.lines((*columns, ResultColumn("", "path", lambda one: names[one[0].url])), found)
    problems.end(len(found))


# --- quota ------------------------------------------------------------------------------------------------------------
_NO_LIMIT = -1


def _parse_quota_limit(text: str) -> int:
    """Parse a limit, or the word none."""
    return _NO_LIMIT if text == "none" else parse_byte_count(text)


_NAMES = option("--names", "Set the most files and directories.", metavar="N|none", type=_parse_quota_limit)
_SPACE = option("--space", "Set the most bytes, times replication.", metavar="SIZE|none", type=_parse_quota_limit)


@command(ResourceKind.NAMESPACES, OutputForm.LINES)
def quota(
    run: CommandRun,
    urls: Urls,
    glob: Glob,
    human: Human,
    names: Annotated[int | None, _NAMES],
    space: Annotated[int | None, _SPACE],
) -> None:
    """Show or set the quotas of directories.

    Examples:
      holdfast fs quota -h --glob 'holdfast://prod/user/*'
      holdfast fs quota --names 100000 --space 1T holdfast://prod/user/ann
      holdfast fs quota --space none holdfast://prod/user/ann

    A quota of names counts everything below the directory, and the directory itself. A quota of space counts bytes
    times replication. What was deleted counts until holdfast namespace gc has removed it. Only the quotas that you give
    change. Only the superuser may set quotas; a directory without a quota is counted first, and frozen meanwhile.
    """
    from holdfast.cli.fs.items import PathErrors, display_names, find_items

    def choose_new_limit(limit: int | None, present: int | None) -> int | None:
        return present if limit is None else None if limit == _NO_LIMIT else limit

    problems = PathErrors(run.out, lines=True)
    found: list[tuple[NamespaceItem, QuotaUsage]] = []
    with run.out.show_spinner("counting"):
        for item in find_items(run, urls, glob=glob):
            with problems.collect_errors(item.url):
                usage = item.namespace.quota_usage(item.status.path)
                if names is not None or space is not None:
                    limits = {
                        "names": choose_new_limit(names, usage.names_quota),
                        "space": choose_new_limit(space, usage.space_quota),
                    }
                    item.namespace.set_quota(item.status.path, **limits)
                    usage = item.namespace.quota_usage(item.status.path)
                found.append((item, usage))
    shown = display_names([item for item, _ in found])
    run.out.lines((*_quota_columns(human=human), ResultColumn("", "path", lambda one: shown[one[0].url])), found)
    problems.end(len(found))


def _quota_columns(*, human: bool) -> tuple[ResultColumn, ...]:
    """Return what is known of the quotas of a directory, of which an item and its usage are given."""
    from holdfast.cli.fs.items import size_formatter

    in_units = size_formatter(human=human)
    return (
        ResultColumn("url", None, lambda one: one[0].url),
        ResultColumn("names_quota", "names quota", lambda one: one[1].names_quota),
        ResultColumn("names_used", "names used", lambda one: _usage_if_limited(one[1].names_quota, one[1].names)),
        ResultColumn("space_quota", "space quota", lambda one: one[1].space_quota, in_units),
        ResultColumn(
            "space_used", "space used", lambda one: _usage_if_limited(one[1].space_quota, one[1].space), in_units
        ),
    )


def _usage_if_limited(quota: int | None, used: int) -> int | None:
    return None if quota is None else used  # without a quota, nothing is counted


def quota_fields(item: NamespaceItem) -> dict[str, object]:
    """Return the quotas of a directory and its usage, as JSON fields; empty if it has no quota."""
    usage = item.namespace.quota_usage(item.status.path)
    if usage.names_quota is None and usage.space_quota is None:
        return {}
    return to_document(_quota_columns(human=False)[1:], (item, usage))
