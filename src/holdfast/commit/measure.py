"""What a job commit cost: time by stage, requests by kind, repeated requests. Ends up in ``_SUCCESS``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.stores.counted import Counted
from holdfast.stores.intercept import InterceptedStore

__all__ = ["JobMeasure"]


class JobMeasure:
    """Measures one job commit.

    Args:
        ctx: the context that is measured; use `ctx` of this object instead of it from then on.

    Attributes:
        ctx: the same context over a store that counts.
    """

    def __init__(self, ctx: CommitContext) -> None:
        self._counted = Counted()
        self._store = ctx.store
        self._retries_before = ctx.store.retries
        self._stages_ms: dict[str, int] = {}
        self.ctx = replace(ctx, store=InterceptedStore(ctx.store, self._counted))

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; the same name adds up."""
        started_s = self.ctx.clock.elapsed_s()
        try:
            yield
        finally:
            spent_ms = int((self.ctx.clock.elapsed_s() - started_s) * 1000)
            self._stages_ms[name] = self._stages_ms.get(name, 0) + spent_ms

    def metrics(self) -> dict[str, int]:
        """What was measured so far, as Hadoop's map of names to whole numbers."""
        return {
            **{f"stage_{name}_ms": spent_ms for name, spent_ms in self._stages_ms.items()},
            **{f"requests_{name}": count for name, count in self._counted.counts().items()},
            "requests": self._counted.total,
            "requests_repeated": self._store.retries - self._retries_before,
        }
