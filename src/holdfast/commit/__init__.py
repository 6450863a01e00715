"""Commit the output of jobs with one of several protocols, called committers.

ARCHITECTURE.md describes the folders; start reading at `two_phase.committer`. Each name is imported when it is first
used, so that one module of this package can be imported without all the others. Scenario numbers in docstrings refer to
tests/scenarios.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.commit.committer import Committer as Committer
    from holdfast.commit.context import (
        CommitContext as CommitContext,
    )
    from holdfast.commit.context import (
        CommitSettings as CommitSettings,
    )
    from holdfast.commit.context import (
        Place as Place,
    )
    from holdfast.commit.context import (
        Progress as Progress,
    )
    from holdfast.commit.context import (
        StagingPlaces as StagingPlaces,
    )
    from holdfast.commit.context import (
        open_context as open_context,
    )
    from holdfast.commit.ids import AttemptId as AttemptId
    from holdfast.commit.ids import JobId as JobId
    from holdfast.commit.leftovers import RecoveredJob as RecoveredJob
    from holdfast.commit.leftovers import RecoveryReport as RecoveryReport
    from holdfast.commit.records import (
        JobOutcome as JobOutcome,
    )
    from holdfast.commit.records import (
        JobRecord as JobRecord,
    )
    from holdfast.commit.records import (
        JobReport as JobReport,
    )
    from holdfast.commit.records import (
        Kind as Kind,
    )
    from holdfast.commit.records import (
        SaveMode as SaveMode,
    )
    from holdfast.commit.records import (
        StreamBatch as StreamBatch,
    )
    from holdfast.commit.records import (
        TaskCommit as TaskCommit,
    )
    from holdfast.commit.records import (
        Totals as Totals,
    )
    from holdfast.commit.recovery import recover as recover
    from holdfast.commit.registry import (
        COMMITTERS as COMMITTERS,
    )
    from holdfast.commit.registry import (
        get_committer as get_committer,
    )
    from holdfast.commit.registry import (
        installed_committers as installed_committers,
    )
    from holdfast.commit.registry import (
        require_fit as require_fit,
    )
    from holdfast.commit.task import TaskAttempt as TaskAttempt
    from holdfast.commit.two_phase.committer import TWO_PHASE as TWO_PHASE
    from holdfast.commit.two_phase.records import LogEntry as LogEntry
    from holdfast.commit.two_phase.recovery import (
        Decision as Decision,
    )
    from holdfast.commit.two_phase.recovery import (
        History as History,
    )
    from holdfast.commit.two_phase.recovery import (
        read_history as read_history,
    )
    from holdfast.commit.two_phase.snapshot import (
        Instant as Instant,
    )
    from holdfast.commit.two_phase.snapshot import (
        Snapshot as Snapshot,
    )
    from holdfast.commit.two_phase.snapshot import (
        VisibleFile as VisibleFile,
    )
    from holdfast.commit.two_phase.snapshot import (
        read_instant as read_instant,
    )
    from holdfast.commit.two_phase.snapshot import (
        read_snapshot as read_snapshot,
    )
    from holdfast.commit.verification import VerifyReport as VerifyReport
    from holdfast.commit.verification import verify as verify

_MODULES = {
    "committer": ("Committer",),
    "context": ("CommitContext", "CommitSettings", "Place", "Progress", "StagingPlaces", "open_context"),
    "ids": ("AttemptId", "JobId"),
    "leftovers": ("RecoveredJob", "RecoveryReport"),
    "records": ("JobOutcome", "JobRecord", "JobReport", "Kind", "SaveMode", "StreamBatch", "TaskCommit", "Totals"),
    "recovery": ("recover",),
    "registry": ("COMMITTERS", "get_committer", "installed_committers", "require_fit"),
    "task": ("TaskAttempt",),
    "two_phase.committer": ("TWO_PHASE",),
    "two_phase.records": ("LogEntry",),
    "two_phase.recovery": ("Decision", "History", "read_history"),
    "two_phase.snapshot": ("Instant", "Snapshot", "VisibleFile", "read_instant", "read_snapshot"),
    "verification": ("VerifyReport", "verify"),
}
"""The public names of this package, by the modules that define them."""
_DEFINED_IN = {name: module for module, names in _MODULES.items() for name in names}
__all__ = list(_DEFINED_IN)


def __getattr__(name: str) -> object:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
