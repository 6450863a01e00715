"""What work on a store costs: time by stage, requests by kind, repeated requests. Ends up in ``_SUCCESS``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.statistics import STORE_STATISTICS, Recorder, Statistics
from holdfast.stores.interceptors.intercepted import InterceptedStore

__all__ = ["Measure"]

_NO_REQUESTS = ("file.write", "file.discard", "check_targets")
_REQUESTS = {name for call, name in STORE_STATISTICS.items() if call not in _NO_REQUESTS}
_STAGES = ("job_stage_", "task_stage_", "committer_commit_job")


class Measure:
    """Measures a task attempt, or one commit or abort of a job.

    Args:
        ctx: the context that is measured; use `ctx` of this object instead of it from then on.

    Attributes:
        ctx: the same context over a store whose calls are timed.
        recorder: takes what else there is to count.
        stage_name: the stage that was entered last.
    """

    def __init__(self, ctx: CommitContext) -> None:
        self.recorder = Recorder(ctx.clock)
        self.stage_name = ""
        self.ctx = replace(ctx, store=InterceptedStore(ctx.store, self.recorder.observed))
        self._store = ctx.store
        self._retries_before = ctx.store.retries

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, named as Hadoop names it: ``job_stage_…``, ``task_stage_…``. The same name adds up."""
        self.stage_name = name
        with self.recorder.timed(name):
            yield

    def statistics(self) -> Statistics:
        """What was measured so far."""
        return self.recorder.snapshot()

    def metrics(self) -> dict[str, int]:
        """The driver's own part in short, as Hadoop's map of names to whole numbers."""
        durations = self.recorder.snapshot().durations
        stages = {name: spent for name, spent in durations.items() if name.startswith(_STAGES)}
        return {
            **{f"{name.removeprefix('job_')}_ms": spent.total_ms for name, spent in stages.items()},
            "requests": sum(durations[name].count for name in _REQUESTS if name in durations),
            "requests_repeated": self._store.retries - self._retries_before,
        }
