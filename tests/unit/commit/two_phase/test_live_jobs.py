"""Test what is concluded about a job whose record may not be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.commit.two_phase.pending_uploads import LiveJobs
from holdfast.errors import AccessDeniedError
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from tests.simulation.world import HOME, World, start

T = TypeVar("T")


def denied(world: World, *folders: str) -> LiveJobs:
    """Return a look-up whose credentials may not read the job records in these folders."""

    def deny(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.HEAD and call.key.partition("_holdfast/")[0] in folders:
            raise AccessDeniedError("the policy forbids it", key=call.key)
        return proceed()

    return LiveJobs(world.context(store=InterceptedStore(world.store, deny)))


def test_a_job_whose_record_may_not_be_read_has_not_ended() -> None:
    """C7: only above the destination does a refusal say that no job writes here."""
    world = World("upload")
    ctx = world.context()
    job = start(ctx).job
    ended = start(ctx).job
    world.store.delete(f"{HOME}_holdfast/jobs/{ended}/job.json")
    above = denied(world, "", "out put/")
    assert not above.has_ended(job, f"{HOME}a") and above.has_ended(ended, f"{HOME}a")
    for folder in (HOME, f"{HOME}b/"):
        with pytest.raises(AccessDeniedError):
            denied(world, folder).has_ended(ended, f"{HOME}b/a")
