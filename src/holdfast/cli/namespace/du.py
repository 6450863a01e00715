"""Run ``holdfast namespace du``: show what is in the directories of a namespace's root."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command
from holdfast.cli.output import Output, size
from holdfast.cli.session import Session, on_namespaces

if TYPE_CHECKING:
    from holdfast.namespace import ContentSummary, Namespace
    from holdfast.namespace.status import QuotaUsage

_EPILOG = """\b
Examples:
  holdfast namespace du prod
  holdfast namespace du prod -h

Counts the tree below each directory of the root, so it takes longer the more there is. "space" is the size times the
replication. What was deleted counts against quotas until holdfast namespace gc has removed it. Quotas of directories
further down are shown by holdfast fs quota show."""

_COLUMNS = ["directory", "directories", "files", "size", "space", "quota of names", "quota of space"]


@fs_command("du", epilog=_EPILOG)
@click.argument("name")
@click.option("-h", "--human", is_flag=True, help="Show sizes in units such as MiB.")
@on_namespaces
def du(name: str, human: bool, session: Session, out: Output) -> None:
    """Show what is below each directory of the root of the namespace NAME, and how full their quotas are."""
    from holdfast.cli.fs.rows import amount

    namespace = session.open_named(name)
    found: list[tuple[str, ContentSummary, QuotaUsage]] = []
    with out.waiting("counting") as show:
        for path in _tops(namespace):
            show(f"counting {path}")
            found.append((path, namespace.content_summary(path), namespace.quota_usage(path)))
        total = _total(namespace, [summary for _, summary, _ in found])
    found.append(("/", total, namespace.quota_usage("/")))
    documents = [
        {"path": path, **asdict(summary), "names_used": usage.names, "space_used": usage.space}
        for path, summary, usage in found
    ]
    out.document({"name": namespace.configuration.name, "directories": documents[:-1], "total": documents[-1]})
    rows = [
        (
            path,
            f"{summary.directories:,}",
            f"{summary.files:,}",
            amount(summary.size, human=human),
            amount(summary.space, human=human),
            "-" if usage.names_quota is None else _share(usage.names, usage.names_quota, f"{usage.names_quota:,}"),
            "-" if usage.space_quota is None else _share(usage.space, usage.space_quota, size(usage.space_quota)),
        )
        for path, summary, usage in found
    ]
    out.table(_COLUMNS, rows, right=_COLUMNS[1:])


def _tops(namespace: Namespace) -> list[str]:
    """Return the directories of the root."""
    return [entry.path for entry in namespace.list("/") if entry.is_directory]


def _total(namespace: Namespace, parts: list[ContentSummary]) -> ContentSummary:
    """Return the content of the whole namespace, given that of the directories of its root."""
    from holdfast.namespace import ContentSummary

    files = [entry for entry in namespace.list("/") if not entry.is_directory]
    usage = namespace.quota_usage("/")
    return ContentSummary(
        files=sum(part.files for part in parts) + len(files),
        directories=sum(part.directories for part in parts) + 1,
        size=sum(part.size for part in parts) + sum(file.size for file in files),
        space=sum(part.space for part in parts) + sum(file.size * file.replication for file in files),
        names_quota=usage.names_quota,
        space_quota=usage.space_quota,
    )


def _share(used: int, quota: int, shown: str) -> str:
    return f"{used / quota:.0%} of {shown}"
