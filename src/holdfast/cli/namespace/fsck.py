"""Run ``holdfast namespace fsck``: prove that a namespace is whole, and repair it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output, size
from holdfast.cli.session import Session, on_namespaces
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.namespace import Namespace
    from holdfast.namespace.fsck import Finding, RepairReport, Report

_EPILOG = """\b
Examples:
  holdfast namespace fsck prod
  holdfast namespace fsck prod --json | jq .findings
  holdfast namespace fsck prod --read
  holdfast namespace fsck prod --repair

Reads every record once, in one snapshot of the database, and lists the blobs in the object store; the namespace may
be in use. --read reads the blobs too, and finds bytes that are not those that were written. The exit code is 1 if
something is damaged. Leftovers of programs that died are shown, and are no damage.

--repair moves what belongs nowhere to /lost+found/<time>/ and never deletes the content of a file. Only the superuser
may repair."""

_MOST_SHOWN = 20
"""How many findings of a kind a person is shown; --json has more."""


@click.command(epilog=_EPILOG)
@click.argument("name")
@click.option("--read", "reads", is_flag=True, help="Read all blobs, and check their bytes.")
@click.option("--repair", is_flag=True, help="Repair what is found.")
@on_namespaces
def fsck(name: str, reads: bool, repair: bool, session: Session, out: Output) -> None:
    """Prove that the namespace NAME is whole, or show what is wrong."""
    if reads and repair:
        raise click.UsageError("no repair can bring back damaged bytes: give --read or --repair, and then the other")
    run_fsck(session.open_named(name), out, reads=reads, repair=repair)


def run_fsck(namespace: Namespace, out: Output, *, reads: bool = False, repair: bool) -> None:
    """Check a namespace, and repair it if wanted; show the report.

    Raises:
        click.exceptions.Exit: something is damaged, after the repair if there was one.
    """
    name = namespace.configuration.name
    with out.progress() as progress:
        if not repair:
            report = namespace.check(progress, reads=reads)
            repaired = None
        else:
            repaired = namespace.repair(progress)
            report = repaired.report
    out.document({"name": name, **(report if repaired is None else repaired).to_json()})
    if repaired is not None:
        _show_repairs(repaired, out)
    _show(report.findings, report, out)
    counts = report.counts
    what = (
        f"{counted(counts.directories, 'directory', 'directories')}, {counted(counts.files, 'file')} of "
        f"{size(counts.file_bytes)}, {counted(counts.blobs, 'blob')} of {size(counts.blob_bytes)}"
        + (", not read: see --read" if counts.blobs and not report.has_read_blobs else "")
    )
    if report.leftovers:
        out.say(f"{counted(report.leftovers, 'leftover')}: harmless, see above")
    if not report.is_healthy:
        out.say(f"DAMAGED: {counted(report.damage, 'finding')} in {name} ({what})")
        raise click.exceptions.Exit(PROBLEM)
    out.say(f"healthy: {name} ({what})")


def _show_repairs(repaired: RepairReport, out: Output) -> None:
    for finding in repaired.repaired[:_MOST_SHOWN]:
        out.say(f"repaired: {finding}")
    if len(repaired.repaired) > _MOST_SHOWN:
        out.say(f"repaired: {len(repaired.repaired) - _MOST_SHOWN:,} more, see --json")
    for failure in repaired.failed[:_MOST_SHOWN]:
        out.say(f"not repaired: {failure.finding}: {failure.reason}")
    if repaired.shelf:
        out.say(f"what belonged nowhere is in {repaired.shelf}")


def _show(findings: Sequence[Finding], report: Report, out: Output) -> None:
    """Show the first findings of each kind, and what to do about them."""
    for kind, total in report.totals.items():
        shown = [finding for finding in findings if finding.kind == kind][:_MOST_SHOWN]
        for finding in shown:
            out.say(f"{kind.severity.value}: {finding}")
        if total > len(shown):
            out.say(f"{kind.severity.value}: {total - len(shown):,} more of this kind")
        out.say(f"  next: {kind.next_act}")
