"""Mistakes that earlier worlds could not see, each a function in the place of a shipped one: all of them are found.

Most concern what jobs replace and what readers find while that goes on; the last ones do nothing wrong, and never
anything right either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.checker.committers.features import combine, features_of
from holdfast.checker.committers.verdict import VERDICT, small_verdict
from holdfast.commit.committer import Action
from holdfast.commit.context import CommitContext
from holdfast.commit.layout import SUCCESS
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobOutcome, JobRecord, JobReport
from holdfast.commit.recovery_report import RecoveredJob, RecoveryReport
from holdfast.commit.success_file import encode_report, write_success
from holdfast.commit.two_phase import committer, decision, job, recovery, replacement, roll_forward, snapshot
from holdfast.commit.two_phase.cleanup import clean_up_decided
from holdfast.commit.two_phase.decision_log import read_entry, write_mark
from holdfast.commit.two_phase.manifests import Prepared
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.replacement import delete_replaced, plan_replaced
from holdfast.versioned_log import LogView, VersionedLog


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What goes wrong is logged by the code under test, in every history anew."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


# --- what stands in the place of what ---------------------------------------------------------------------------------
def _done_first(ctx: CommitContext, entry: LogEntry) -> int:
    write_mark(ctx, entry.seq, "done")
    return delete_replaced(ctx, entry)


def _clean_up_first(ctx: CommitContext, seq: int, mark: str, data: bytes = b"{}\n") -> None:
    if mark == "visible":
        clean_up_decided(ctx, read_entry(ctx, seq))
    write_mark(ctx, seq, mark, data)


def _told_as_taken_back(ctx: CommitContext, record: JobRecord, report: RecoveryReport) -> None:
    job.abort_job(Measure(ctx), record)
    report.jobs.append(RecoveredJob(committer=record.committer, job=record.job, action=Action.BACK, reason="none"))


_publish_all = roll_forward._publish_all


def _report_first(ctx: CommitContext, entry: LogEntry, *rest: Any, **more: Any) -> object:
    write_success(ctx, roll_forward._report(Measure(ctx), entry, roll_forward._Seen(), 0), entry.seq)
    return _publish_all(ctx, entry, *rest, **more)


def _report_as_it_comes(ctx: CommitContext, report: JobReport, seq: int) -> None:
    ctx.store.put(ctx.key(SUCCESS), encode_report(report))


_planned: list[tuple[Prepared, Any]] = []


def _plan_once(ctx: CommitContext, record: JobRecord, prepared: Prepared, *rest: Any) -> object:
    for known, plan in _planned[-1:]:
        if known is prepared:
            return plan
    _planned[:] = [(prepared, plan_replaced(ctx, record, prepared, *rest))]
    return _planned[0][1]


def _by_bare_prefix(ctx: CommitContext, record: JobRecord, prepared: Prepared) -> Callable[[str], bool]:
    return lambda path: path.startswith(tuple(prepared.partitions))


def _head_alone(view: LogView) -> object:
    return view.head


def _gives_up_two_files(measure: Measure, record: JobRecord, commits: Sequence[Any], tasks: Any) -> JobOutcome:
    if sum(one.totals.files for one in commits) == 2:
        return job.abort_job(measure, record)
    return job.commit_job(measure, record, commits, tasks)


def _finds_no_entry(log: VersionedLog[LogEntry], seq: int, kind: str = "json") -> bool:
    return kind != "json" and log.records.exists(log.path(seq, kind))


def _never_commits(measure: Measure, record: JobRecord, commits: Sequence[Any], tasks: Any) -> JobOutcome:
    return job.abort_job(measure, record)


@dataclass(frozen=True, kw_only=True)
class _Slip:
    """A mistake.

    Attributes:
        planted: what stands where.
        breaks: what the verdict says of the scene.
    """

    name: str
    scene: str
    planted: Mapping[tuple[object, str], object] = field(default_factory=dict)
    breaks: str = "log-order"


_SLIPS = (
    _Slip(
        name="replaced-data-stay",
        scene="overwrite",
        planted={(roll_forward, "delete_replaced"): lambda ctx, entry: 0},
    ),
    _Slip(name="done-before-the-deletes", scene="overwrite", planted={(roll_forward, "delete_replaced"): _done_first}),
    _Slip(
        name="clean-up-before-visible",
        scene="one-task+recovery+driver-dies",
        planted={(roll_forward, "write_mark"): _clean_up_first},
    ),
    _Slip(name="report-before-publication", scene="one-task", planted={(roll_forward, "_publish_all"): _report_first}),
    _Slip(
        name="report-goes-back",
        scene="appends+at-once",
        planted={(roll_forward, "write_success"): _report_as_it_comes},
    ),
    _Slip(
        name="replaced-list-planned-once",
        scene="overwrite+appends+at-once",
        planted={(decision, "plan_replaced"): _plan_once},
    ),
    _Slip(name="partition-by-bare-prefix", scene="partitions", planted={(replacement, "_scope"): _by_bare_prefix}),
    _Slip(
        name="reader-compares-heads-alone",
        scene="one-task+overwrite+reader",
        planted={(snapshot, "_instant"): _head_alone},
    ),
    _Slip(
        name="gaps-are-believed",
        scene="one-task+busy+at-once+piecemeal",
        planted={(VersionedLog, "exists"): _finds_no_entry},
    ),
    _Slip(
        name="recovery-tells-the-opposite",
        scene="one-task+slow+recovery",
        planted={(recovery, "_end_open_job"): _told_as_taken_back},
    ),
    _Slip(
        name="gives-up-jobs-of-two-files",
        scene="one-task+two-files",
        planted={(committer, "commit_job"): _gives_up_two_files},
        breaks="reached",
    ),
    _Slip(
        name="never-commits", scene="one-task", planted={(committer, "commit_job"): _never_commits}, breaks="reached"
    ),
    _Slip(
        name="never-cleans-up",
        scene="one-task",
        planted={(roll_forward, "clean_up_decided"): lambda ctx, entry: None},
        breaks="reached",
    ),
)


def _each(slow: str) -> list[object]:
    return [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name == slow else []) for one in _SLIPS]


@pytest.mark.parametrize("slip", _each(slow="gaps-are-believed"))
def test_it_is_found(slip: _Slip, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = combine(features_of(slip.scene) or ())
    for (module, name), function in slip.planted.items():
        monkeypatch.setattr(module, name, function)
    found = small_verdict(scenes=[scene], first=slip.breaks != "reached")
    assert (scene.name, slip.breaks) in found.findings


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({slip.scene for slip in _SLIPS}))
def test_the_shipped_code_does_nothing_of_the_kind(name: str) -> None:
    assert small_verdict(scenes=[combine(features_of(name) or ())], first=False).findings == {}


@pytest.mark.slow
@pytest.mark.parametrize("slip", _SLIPS, ids=lambda slip: slip.name)
def test_the_small_verdict_finds_it(slip: _Slip, monkeypatch: pytest.MonkeyPatch) -> None:
    for (module, name), function in slip.planted.items():
        monkeypatch.setattr(module, name, function)
    assert small_verdict().findings


@pytest.mark.slow
def test_the_small_verdict_finds_nothing_in_the_shipped_code() -> None:
    found = small_verdict(first=False)
    assert found.findings == {}
    assert 20_000 < found.states < 100_000
    assert len({scene.name for scene in VERDICT}) == len(VERDICT)
