"""Commit the output of jobs, by one of several protocols.

ARCHITECTURE.md describes the folders; start reading at `two_phase.committer`.
"""

from holdfast.commit.committer import Committer
from holdfast.commit.context import CommitContext, CommitSettings, HadoopSettings, Place, Progress, StagingPlaces
from holdfast.commit.context_factory import open_context
from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.records import JobOutcome, JobRecord, JobReport, Kind, SaveMode, StreamBatch, TaskCommit, Totals
from holdfast.commit.recovery import recover
from holdfast.commit.recovery_report import RecoveredJob, RecoveryReport
from holdfast.commit.registry import COMMITTERS, get_committer, require_fit
from holdfast.commit.task import TaskAttempt
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.commit.two_phase.history import Decision, History, read_history
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.snapshot import Instant, Snapshot, VisibleFile, read_instant, read_snapshot
from holdfast.commit.verification import VerifyReport, verify

__all__ = [
    "COMMITTERS",
    "TWO_PHASE",
    "AttemptId",
    "CommitContext",
    "CommitSettings",
    "Committer",
    "Decision",
    "HadoopSettings",
    "History",
    "Instant",
    "JobId",
    "JobOutcome",
    "JobRecord",
    "JobReport",
    "Kind",
    "LogEntry",
    "Place",
    "Progress",
    "RecoveredJob",
    "RecoveryReport",
    "SaveMode",
    "Snapshot",
    "StagingPlaces",
    "StreamBatch",
    "TaskAttempt",
    "TaskCommit",
    "Totals",
    "VerifyReport",
    "VisibleFile",
    "get_committer",
    "open_context",
    "read_history",
    "read_instant",
    "read_snapshot",
    "recover",
    "require_fit",
    "verify",
]
