"""Run ``holdfast namespace fsck`` and ``gc``: prove that a namespace is whole, and remove what was deleted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import parse_age
from holdfast.cli.command import CommandRun, Name, OutputForm, ResourceKind, command, option
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output, duration_text, size_text
from holdfast.errors import (
    ConflictError,
    FencedError,
    HoldfastError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.wording import format_count

if TYPE_CHECKING:
    from holdfast.namespace import Namespace
    from holdfast.namespace.collector import CollectionResult
    from holdfast.namespace.fsck import Finding, RepairReport, Report
    from holdfast.namespace.maintenance import LeaderElection

_MOST_SHOWN = 20
"""How many findings of a kind a person is shown; --json has more."""


@command(ResourceKind.NAMESPACES)
def fsck(
    run: CommandRun,
    name: Name,
    reads: Annotated[bool, option("--read", "Read all blobs, and check their bytes.")],
    repair: Annotated[bool, option("--repair", "Repair what is found.")],
) -> None:
    """Check that a namespace is undamaged, or show what is wrong.

    Examples:
      holdfast namespace fsck prod
      holdfast namespace fsck prod --json | jq .findings
      holdfast namespace fsck prod --read
      holdfast namespace fsck prod --repair

    Reads every record once, in one snapshot of the database, and lists the blobs in the object store; the namespace may
    be in use. --read reads the blobs too, and finds bytes that differ from those written. The exit code is 1 if
    something is damaged. Leftovers of programs that died are shown, but are not damage.

    --repair moves what has lost its place in the tree to /lost+found/<time>/ and never deletes the content of a file.
    Only the superuser may repair.
    """
    if reads and repair:
        raise click.UsageError("no repair can bring back damaged bytes: give --read or --repair, and then the other")
    namespace, out = run.namespace(name), run.out
    with out.progress() as progress:
        if not repair:
            report = namespace.check(progress, reads=reads)
            repaired = None
        else:
            repaired = namespace.repair(progress)
            report = repaired.report
    name = namespace.configuration.name
    out.document({"name": name, **(report if repaired is None else repaired).to_json()})
    if repaired is not None:
        _show_repairs(repaired, out)
    _show_findings(report.findings, report, out)
    counts = report.counts
    what = (
        f"{format_count(counts.directories, 'directory', 'directories')}, {format_count(counts.files, 'file')} of "
        f"{size_text(counts.file_bytes)}, {format_count(counts.blobs, 'blob')} of {size_text(counts.blob_bytes)}"
        + (", not read: see --read" if counts.blobs and not report.has_read_blobs else "")
    )
    if report.leftover_count:
        out.say(f"{format_count(report.leftover_count, 'leftover')}: harmless, see above")
    if not report.is_healthy:
        out.say(f"DAMAGED: {format_count(report.damage_count, 'finding')} in {name} ({what})")
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


def _show_findings(findings: Sequence[Finding], report: Report, out: Output) -> None:
    """Show the first findings of each kind, and what to do about them."""
    for kind, total in report.totals.items():
        shown = [finding for finding in findings if finding.kind == kind][:_MOST_SHOWN]
        for finding in shown:
            out.say(f"{kind.severity.value}: {finding}")
        if total > len(shown):
            out.say(f"{kind.severity.value}: {total - len(shown):,} more of this kind")
        out.say(f"  next: {kind.next_act}")


# --- gc ---------------------------------------------------------------------------------------------------------------
_RENEWAL_S = 10.0


def _parse_interval(text: str) -> float:
    """Parse a number of seconds, or a duration such as 15m."""
    seconds = parse_age(f"{text}s" if text.isascii() and text.isdigit() else text)
    if seconds < 1:
        raise click.BadParameter("the interval is at least a second")
    return seconds


@command(ResourceKind.NAMESPACES, OutputForm.LINES)
def gc(
    run: CommandRun,
    name: Name,
    every: Annotated[
        float | None, option("--every", "Work again after 60, 15m, 1h …", type=_parse_interval, metavar="AGE")
    ],
    sweep: Annotated[bool, option("--sweep", "Also look for blobs that no file refers to: reads every record.")],
) -> None:
    """Remove what was deleted, and end the leases of dead writers.

    Examples:
      holdfast namespace gc prod
      holdfast namespace gc prod --every 1h
      holdfast namespace gc prod --sweep

    Removes what is below deleted directories, deletes blobs that no file has referred to for the safety age of the
    namespace, and closes the files of writers that have been silent for 20 minutes. Of several processes, one works and
    the others do nothing: so run it on as many machines as you like, from cron or with --every. It is safe to
    interrupt. --sweep also gives up blobs that dead writers had not finished; it is refused while a record is damaged.
    """
    from holdfast.namespace.maintenance import LeaderElection
    from holdfast.runtime import SystemClock, SystemIds

    namespace, clock = run.namespace(name), SystemClock()
    token = f"{os.uname().nodename}:{os.getpid()}:{SystemIds().token()}"
    election = LeaderElection(namespace.database, clock, token)
    _run_maintenance(namespace, election, run.out, sweeps=sweep, is_service=every is not None)
    while every is not None:
        clock.sleep(every)
        try:
            _run_maintenance(namespace, election, run.out, sweeps=sweep, is_service=True)
        except (UnavailableError, OutcomeUnknownError) as error:
            run.out.note(f"error: {error}")
            run.out.line({"error": str(error), "kind": type(error).__name__})


def _run_maintenance(
    namespace: Namespace, election: LeaderElection, out: Output, *, sweeps: bool, is_service: bool
) -> None:
    """Do all that there is to do, unless another process leads; report it.

    Args:
        sweeps: whether to look for blobs that no file refers to, first.
        is_service: whether there will be other rounds: then a sweep that another sweep or a repair prevents is left to
            the next one.
    """
    from holdfast.namespace.keys import kind_range
    from holdfast.namespace.pending import count_records

    if not election.try_to_lead():
        server = _find_leading_server(election)
        out.line({"leads": False, "server": server})
        who = "another process" if server is None else f"the server {server}"
        out.say(f"{who} is at work: nothing was done")
        return
    renew_at_s = election.clock.elapsed_s() + _RENEWAL_S
    swept: dict[str, int] = {}

    def show_and_renew_leadership(done: CollectionResult) -> bool:
        nonlocal renew_at_s
        show(f"collecting: {_describe_collection(done)}")
        now_s = election.clock.elapsed_s()
        if now_s < renew_at_s:
            return True
        renew_at_s = now_s + _RENEWAL_S
        return election.try_to_lead()

    try:
        if sweeps:
            try:
                swept = sweep_namespace(namespace, out)
            except (ConflictError, FencedError) as error:
                if not is_service:
                    raise
                out.note(f"no sweep this time: {error}")
        with out.show_spinner("collecting") as show:
            done = namespace.collect(after_step=show_and_renew_leadership)
    finally:
        with contextlib.suppress(HoldfastError):  # the term ends by itself
            election.resign()
    out.line({"leads": True, **asdict(done)} | ({"swept": swept} if sweeps else {}))
    out.say(_describe_collection(done))
    waiting = count_records(namespace.database, *kind_range(b"g"))
    if waiting:
        age = duration_text(namespace.configuration.safety_age_s)
        out.say(f"kept for the safety age, {age}: {format_count(waiting, 'blob')}")


def _find_leading_server(election: LeaderElection) -> str | None:
    """Return the address of the server that leads, which does this work by itself; None if no server leads."""
    from holdfast.namespace.maintenance import current_leader
    from holdfast.webhdfs.servers import list_servers

    leader = current_leader(election.database, election.clock)
    servers = [] if leader is None else list_servers(election.database)
    return next((one.address for one in servers if leader and one.token == leader.holder), None)


def _describe_collection(done: CollectionResult) -> str:
    parts = [
        (done.trees, f"removed {format_count(done.trees, 'directory', 'directories')}"),
        (done.files, f"removed {format_count(done.files, 'file')}"),
        (done.blobs, f"deleted {format_count(done.blobs, 'blob')}"),
        (done.leases, f"closed {format_count(done.leases, 'file')} of dead writers"),
    ]
    return ", ".join(words for number, words in parts if number) or "nothing to remove"


def sweep_namespace(namespace: Namespace, out: Output) -> dict[str, int]:
    """Record blobs that no file refers to as garbage, and print how many; return the counts.

    The garbage collector deletes them a safety age later.
    """
    with out.progress() as progress:
        swept = namespace.sweep(progress)
    if swept.blobs:
        out.say(f"found {format_count(swept.blobs, 'blob')} of no file, {size_text(swept.blob_bytes)}")
    if swept.records:
        out.say(f"deleted {format_count(swept.records, 'record')} of directories that do not exist")
    if swept.uploads:
        out.say(f"gave up {format_count(swept.uploads, 'blob')} that dead writers had not finished")
    return asdict(swept)
