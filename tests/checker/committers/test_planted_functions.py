"""Mistakes that only combinations of features show: all of them are found.

Most concern what jobs replace, and what readers see meanwhile. The last ones never do anything wrong, but never succeed
either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from holdfast.commit.committer import TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.layout import SUCCESS
from holdfast.commit.leftovers import RecoveredJob, RecoveryAction, RecoveryReport
from holdfast.commit.records import JobOutcome, JobRecord, JobReport
from holdfast.commit.success_file import encode_report, write_success_file
from holdfast.commit.two_phase import recovery, replacement, roll_forward, snapshot
from holdfast.commit.two_phase.cleanup import clean_up_decided_job
from holdfast.commit.two_phase.decision_log import write_decision_mark
from holdfast.commit.two_phase.job import abort_job, commit_job
from holdfast.commit.two_phase.manifests import ManifestCache, PreparedOutput
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.replacement import ReplacementPlan, delete_replaced_files, plan_replaced_files
from holdfast.commit.two_phase.roll_forward import JobSummary, make_job_report
from holdfast.versioned_log import LogView, VersionedLog
from holdfast_checker.committers.features import combine_features, parse_features
from tests.checker.committers.planting import Swap, planted, swap
from tests.checker.committers.verdict import VERDICT, small_verdict


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence the code under test, which logs failures in every history."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


# --- the functions that run in place of shipped ones ------------------------------------------------------------------
def _delete_nothing(shipped: Callable[..., int], ctx: CommitContext, entry: LogEntry) -> int:
    return 0


def _done_first(shipped: Callable[..., int], ctx: CommitContext, entry: LogEntry) -> int:
    write_decision_mark(ctx, entry, "done")
    return shipped(ctx, entry)


def _clean_up_first(
    shipped: Callable[..., None], ctx: CommitContext, entry: LogEntry, mark: str, data: bytes = b"{}\n"
) -> None:
    if mark == "visible":
        clean_up_decided_job(ctx, entry)
    shipped(ctx, entry, mark, data)


def _clean_up_nothing(shipped: Callable[..., None], ctx: CommitContext, entry: LogEntry) -> None: ...


def _abort_as_recovery(
    shipped: Callable[..., None], ctx: CommitContext, record: JobRecord, report: RecoveryReport
) -> None:
    abort_job(Measure(ctx), record)
    report.jobs.append(
        RecoveredJob(committer=record.committer, job=record.job, action=RecoveryAction.BACK, reason="none")
    )


def _report_first(
    shipped: Callable[..., JobSummary | None],
    ctx: CommitContext,
    entry: LogEntry,
    cache: ManifestCache | None,
    accept_damage: bool,
) -> JobSummary | None:
    write_success_file(ctx, make_job_report(Measure(ctx), entry, JobSummary()), entry.seq)
    return shipped(ctx, entry, cache, accept_damage)


def _report_as_it_comes(shipped: Callable[..., None], ctx: CommitContext, report: JobReport, seq: int) -> None:
    ctx.store.put(ctx.key(SUCCESS), encode_report(report))


_planned: list[tuple[PreparedOutput, ReplacementPlan]] = []


def _plan_once(
    shipped: Callable[..., ReplacementPlan],
    ctx: CommitContext,
    job: JobRecord,
    prepared: PreparedOutput,
    token: str,
    deleting: Sequence[LogEntry] = (),
) -> ReplacementPlan:
    for known, plan in _planned[-1:]:
        if known is prepared:
            return plan
    _planned[:] = [(prepared, shipped(ctx, job, prepared, token, deleting))]
    return _planned[0][1]


def _by_bare_prefix(
    shipped: Callable[..., Callable[[str], bool]], ctx: CommitContext, job: JobRecord, prepared: PreparedOutput
) -> Callable[[str], bool]:
    return lambda path: path.startswith(tuple(prepared.partitions))


def _head_alone(shipped: Callable[..., object], view: LogView) -> tuple[int, str, frozenset[int]]:
    return view.head, view.etag, frozenset()


def _believe_gaps(shipped: Callable[..., bool], self: VersionedLog[LogEntry], seq: int, kind: str = "json") -> bool:
    return kind != "json" and shipped(self, seq, kind)


def _give_up_two_files(
    shipped: Callable[..., JobOutcome],
    measure: Measure,
    job: JobRecord,
    reports: TaskReports,
) -> JobOutcome:
    if sum(one.totals.files for one in reports.commits if one is not None) == 2:
        return abort_job(measure, job)
    return shipped(measure, job, reports)


def _never_commit(
    shipped: Callable[..., JobOutcome],
    measure: Measure,
    job: JobRecord,
    reports: TaskReports,
) -> JobOutcome:
    return abort_job(measure, job)


@dataclass(frozen=True, kw_only=True)
class _Slip:
    """A mistake.

    Attributes:
        swap: the shipped function, and what runs in its place.
        breaks: what the verdict reports for the scene.
    """

    name: str
    scene: str
    swap: Swap
    breaks: str = "log-order"


_SLIPS = (
    _Slip(
        name="replaced-data-stay",
        scene="overwrite",
        swap=swap(delete_replaced_files, _delete_nothing),
    ),
    _Slip(
        name="done-before-the-deletes",
        scene="overwrite",
        swap=swap(delete_replaced_files, _done_first),
    ),
    _Slip(
        name="clean-up-before-visible",
        scene="one-task+recovery+driver-dies",
        swap=swap(write_decision_mark, _clean_up_first),
    ),
    _Slip(
        name="report-before-publication",
        scene="one-task",
        swap=swap(roll_forward._publish_all, _report_first),
    ),
    _Slip(
        name="report-goes-back",
        scene="appends+at-once",
        swap=swap(write_success_file, _report_as_it_comes),
    ),
    _Slip(
        name="replaced-list-planned-once",
        scene="overwrite+appends+at-once",
        swap=swap(plan_replaced_files, _plan_once),
    ),
    _Slip(
        name="partition-by-bare-prefix",
        scene="partitions",
        swap=swap(replacement._make_scope_test, _by_bare_prefix),
    ),
    _Slip(
        name="reader-compares-heads-alone",
        scene="one-task+overwrite+reader",
        swap=swap(snapshot._summarize_log_state, _head_alone),
    ),
    _Slip(
        name="gaps-are-believed",
        scene="one-task+busy+at-once+piecemeal",
        swap=swap(VersionedLog.exists, _believe_gaps),
    ),
    _Slip(
        name="recovery-tells-the-opposite",
        scene="one-task+slow+recovery",
        swap=swap(recovery._end_open_job, _abort_as_recovery),
    ),
    _Slip(
        name="gives-up-jobs-of-two-files",
        scene="one-task+two-files",
        swap=swap(commit_job, _give_up_two_files),
        breaks="reached",
    ),
    _Slip(
        name="never-commits",
        scene="one-task",
        swap=swap(commit_job, _never_commit),
        breaks="reached",
    ),
    _Slip(
        name="never-cleans-up",
        scene="one-task",
        swap=swap(clean_up_decided_job, _clean_up_nothing),
        breaks="reached",
    ),
)


def _each(slow: str) -> list[object]:
    return [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name == slow else []) for one in _SLIPS]


@pytest.mark.parametrize("slip", _each(slow="gaps-are-believed"))
def test_it_is_found(slip: _Slip) -> None:
    scene = combine_features(parse_features(slip.scene) or ())
    with planted(slip.swap):
        found = small_verdict(scenes=(scene,), first=slip.breaks != "reached")
    assert (scene.name, slip.breaks) in found


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({slip.scene for slip in _SLIPS}))
def test_the_shipped_code_does_nothing_of_the_kind(name: str) -> None:
    assert small_verdict(scenes=(combine_features(parse_features(name) or ()),), first=False) == {}


@pytest.mark.slow
@pytest.mark.parametrize("slip", _SLIPS, ids=lambda slip: slip.name)
def test_the_small_verdict_finds_it(slip: _Slip) -> None:
    with planted(slip.swap):
        assert small_verdict()


@pytest.mark.slow
def test_the_small_verdict_finds_nothing_in_the_shipped_code() -> None:
    assert small_verdict(first=False) == {}
    assert len({scene.name for scene in VERDICT}) == len(VERDICT)
