"""Report on a run of the conformance suite: which checks passed, and which committers are safe on the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from holdfast.cli.committers import verdict
from holdfast.cli.output import Column, Output, documents
from holdfast.commit import COMMITTERS, TWO_PHASE, Committer
from holdfast.commit.committer import CONDITIONAL_WRITES, HIDDEN_WRITES, MULTIPART
from holdfast.stores.base import Capabilities, Support
from holdfast.stores.conformance.topics import Finding, Weight, findings
from holdfast.stores.probe import UploadListing
from holdfast.wording import counted


@dataclass(frozen=True)
class StoreReport:
    """The results of the suite and of a few more probes on a store.

    Attributes:
        url: the destination.
        directory: the directory in which the checks wrote.
        capabilities: what the store declares.
        results: the error of each check, by the name of the check; None if the check passed.
        heeds_conditions: whether the store refused to create a key that already existed.
        upload_listing: how the store lists pending uploads.
        expiry: when the bucket's lifecycle rules abort pending uploads; empty if unknown.
        drivers, rounds: number of concurrent drivers and of rounds in the tests of conditional writes.
    """

    url: str
    directory: str
    capabilities: Capabilities
    results: Mapping[str, Exception | None]
    heeds_conditions: bool
    upload_listing: UploadListing
    expiry: str
    drivers: int
    rounds: int

    @cached_property
    def findings(self) -> list[Finding]:
        """Return the results, grouped by topic."""
        return findings(self.results)

    @property
    def safe(self) -> bool:
        """Check whether everything on which the default committer relies holds."""
        return self.verdicts[TWO_PHASE.name][0] == "safe"

    @cached_property
    def verdicts(self) -> Mapping[str, tuple[str, str]]:
        """Return, for each committer, ``safe`` or another verdict, and the reason."""
        known = replace(self.capabilities, conditional_put=Support.YES if self.heeds_conditions else Support.NO)
        return {one.name: self._verdict(one, known) for one in COMMITTERS.values()}

    def _verdict(self, committer: Committer, known: Capabilities) -> tuple[str, str]:
        word, reason = verdict(committer, known)
        if word != "runs":
            return word, reason
        weights = _weights(committer, known)
        broken = [one for one in self.findings if one.failed and one.topic.weight in weights]
        if broken:
            return "not safe", "; ".join(f"{one.topic.name}: {one.topic.otherwise}" for one in broken)
        return "safe", ""


def _weights(committer: Committer, known: Capabilities) -> set[Weight]:
    """Return the weights of the topics on which a committer relies if the store has these capabilities."""
    found = {Weight.DATA}
    if CONDITIONAL_WRITES in committer.needs:
        found.add(Weight.DECISION)
    by_choice = not known.rename or known.transactions
    uploads = MULTIPART in committer.needs or (HIDDEN_WRITES in committer.needs and by_choice)
    found.add(Weight.HIDDEN if uploads else Weight.MOVED)
    return found


_LISTED = {
    UploadListing.BY_DIRECTORY: "by directory, as S3 does",
    UploadListing.BY_KEY: "by whole keys only (MinIO): jobs use their own records instead; the server may drop idle "
    "uploads after a time that it does not report (MINIO_API_STALE_UPLOADS_EXPIRY, 24 hours by default)",
    UploadListing.NOT_AT_ALL: "not at all: jobs use their own records instead",
}


# --- for a person -----------------------------------------------------------------------------------------------------
def show_report(report: StoreReport, out: Output, *, verbose: bool) -> None:
    """Print the report: the tables and the verdict, or all of it for programs."""
    verdicts = [(name, word, why or None) for name, (word, why) in report.verdicts.items()]
    out.document(
        {
            "url": report.url,
            "safe": report.safe,
            "drivers": report.drivers,
            "rounds": report.rounds,
            "heeds_conditions": report.heeds_conditions,
            "upload_listing": report.upload_listing.value,
            "uploads_expire": report.expiry or None,
            "topics": documents(_TOPIC, report.findings),
            "committers": documents(_VERDICT, verdicts),
            "checks": {name: None if error is None else str(error) for name, error in report.results.items()},
        }
    )
    out.show(_TOPIC, report.findings)
    out.show(_VERDICT, verdicts)
    out.say(
        "safe: the store does all that the committer needs; holdfast committers shows what each committer guarantees"
    )
    if not report.capabilities.rename:
        out.say(f"pending uploads are listed {_LISTED[report.upload_listing]}")
        out.say(f"the bucket's lifecycle rules abort pending uploads: {report.expiry or 'unknown'}")
    if verbose:
        failed = [(name, str(error)) for name, error in report.results.items() if error is not None]
        if failed:
            out.table(["check", "error"], failed)
    races = f"races of {report.drivers} drivers in {counted(report.rounds, 'round')}"
    word, why = report.verdicts[TWO_PHASE.name]
    if report.safe:
        out.say(f"{TWO_PHASE.name} is safe at {report.url}: {counted(len(report.results), 'check')}, {races}")
    else:
        out.say(f"{TWO_PHASE.name} is {word if word == 'not safe' else 'not safe: it ' + word} at {report.url}: {why}")


def _holds(one: Finding) -> str:
    if not one.failed:
        return "yes"
    return "in part" if one.topic.weight is Weight.LIMIT and len(one.failed) < one.checks else "NO"


def _otherwise(one: Finding) -> str:
    if not one.failed:
        return ""
    names = ", ".join(one.odd_names)
    return f"{one.topic.otherwise} ({names})" if names else one.topic.otherwise


_TOPIC = (
    Column("name", "topic", lambda one: one.topic.name),
    Column("rests_on_it", None, lambda one: one.topic.weight.value),
    Column("holds", None, lambda one: not one.failed),
    Column("", "holds", _holds),
    Column("checks", None, lambda one: one.checks),
    Column("", "checks", lambda one: f"{one.checks - len(one.failed)} of {one.checks}"),
    Column("failed", None, lambda one: sorted(one.failed)),
    Column("otherwise", None, lambda one: one.topic.otherwise if one.failed else None),
    Column("", "consequence", _otherwise),
)
_VERDICT = (
    Column("name", "committer", lambda one: one[0]),
    Column("here", "here", lambda one: one[1]),
    Column("reason", "", lambda one: one[2], lambda reason: reason or ""),
)
