"""Commit the output of jobs with one of several protocols, called committers.

ARCHITECTURE.md describes the folders; start reading at `two_phase.committer`. Each name is imported when it is first
used, so that one module of this package can be imported without all the others. Scenario numbers in docstrings refer to
tests/scenarios.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.commit.committer import Committer
    from holdfast.commit.context import (
        CommitContext,
        CommitSettings,
        HadoopSettings,
        Place,
        Progress,
        StagingPlaces,
        open_context,
    )
    from holdfast.commit.ids import AttemptId, JobId
    from holdfast.commit.leftovers import RecoveredJob, RecoveryReport
    from holdfast.commit.records import (
        JobOutcome,
        JobRecord,
        JobReport,
        Kind,
        SaveMode,
        StreamBatch,
        TaskCommit,
        Totals,
    )
    from holdfast.commit.recovery import recover
    from holdfast.commit.registry import COMMITTERS, get_committer, installed_committers, require_fit
    from holdfast.commit.task import TaskAttempt
    from holdfast.commit.two_phase.committer import TWO_PHASE
    from holdfast.commit.two_phase.records import LogEntry
    from holdfast.commit.two_phase.recovery import Decision, History, read_history
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
    "installed_committers",
    "open_context",
    "read_history",
    "read_instant",
    "read_snapshot",
    "recover",
    "require_fit",
    "verify",
]

_MODULES = {
    "COMMITTERS": "registry",
    "TWO_PHASE": "two_phase.committer",
    "AttemptId": "ids",
    "CommitContext": "context",
    "CommitSettings": "context",
    "Committer": "committer",
    "Decision": "two_phase.recovery",
    "HadoopSettings": "context",
    "History": "two_phase.recovery",
    "Instant": "two_phase.snapshot",
    "JobId": "ids",
    "JobOutcome": "records",
    "JobRecord": "records",
    "JobReport": "records",
    "Kind": "records",
    "LogEntry": "two_phase.records",
    "Place": "context",
    "Progress": "context",
    "RecoveredJob": "leftovers",
    "RecoveryReport": "leftovers",
    "SaveMode": "records",
    "Snapshot": "two_phase.snapshot",
    "StagingPlaces": "context",
    "StreamBatch": "records",
    "TaskAttempt": "task",
    "TaskCommit": "records",
    "Totals": "records",
    "VerifyReport": "verification",
    "VisibleFile": "two_phase.snapshot",
    "get_committer": "registry",
    "installed_committers": "registry",
    "open_context": "context",
    "read_history": "two_phase.recovery",
    "read_instant": "two_phase.snapshot",
    "read_snapshot": "two_phase.snapshot",
    "recover": "recovery",
    "require_fit": "registry",
    "verify": "verification",
}
"""The module of this package that defines each public name."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
