"""Measure work on a store: time by stage, requests by kind, and retries. ``_SUCCESS`` contains the results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.statistics import STORE_STATISTICS, Recorder, Statistics
from holdfast.stores.interceptors import InterceptedStore

_NO_REQUESTS = ("file.write", "file.discard", "check_targets")
_REQUESTS = {name for call, name in STORE_STATISTICS.items() if call not in _NO_REQUESTS}
_STAGES = ("job_stage_", "task_stage_", "committer_commit_job")


class Measure:
    """Measures one task attempt, job commit or job abort.

    Args:
        ctx: the context whose store calls are to be measured. From then on, use the attribute `ctx` instead.

    Attributes:
        ctx: the same context, with a store whose calls are timed.
        recorder: records counts and times that callers add themselves.
        stage_name: the last stage that was entered.
    """

    def __init__(self, ctx: CommitContext) -> None:
        self.recorder = Recorder(ctx.clock)
        self.stage_name = ""
        self.ctx = replace(ctx, store=InterceptedStore(ctx.store, self.recorder.observed))
        self._store = ctx.store
        self._retries_before = ctx.store.retries

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, named as in Hadoop: ``job_stage_…``, ``task_stage_…``. Times under the same name add up."""
        self.stage_name = name
        with self.recorder.timed(name):
            yield

    def statistics(self) -> Statistics:
        """Return the statistics measured so far."""
        return self.recorder.snapshot()

    def metrics(self) -> dict[str, int]:
        """Return the measurements as Hadoop's metrics: a mapping from names to integers."""
        durations = self.recorder.snapshot().durations
        stages = {name: spent for name, spent in durations.items() if name.startswith(_STAGES)}
        return {
            **{f"{name.removeprefix('job_')}_ms": spent.total_ms for name, spent in stages.items()},
            "requests": sum(durations[name].count for name in _REQUESTS if name in durations),
            "requests_repeated": self._store.retries - self._retries_before,
        }
