"""Run jobs whose driver dies in the middle of the commit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.commit import TWO_PHASE, SaveMode
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.options.write import parse_write_options
from holdfast.spark.table_job import TableJob
from holdfast.stores.interceptors import InterceptedStore
from tests.interceptors import Faulty, SimulatedCrash, crash_at

__all__ = ["dying_overwrite"]


def dying_overwrite(frame: Any, url: str, nth: int) -> bool:
    """Overwrite with a driver that dies after the nth store call of its commit; return whether it ended first."""
    table = TableJob.of(parse_write_options({"path": url, "partitionBy": "k"}, overwrite=True), frame.schema)
    with table.open_destination() as ctx:
        table = table.fit_to_table(ctx, read_log(ctx))
        job = TWO_PHASE.setup_job(ctx, SaveMode.OVERWRITE, table.details)
        assert job is not None
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            table.write_rows(iter(frame.toArrow().to_batches()), attempt)
            commit = attempt.commit()
        dying = replace(ctx, store=InterceptedStore(ctx.store, Faulty(crash_at(nth, after=True))))
        try:
            TWO_PHASE.commit_job(dying, job, [commit], 1)
        except SimulatedCrash:
            return False
    return True
