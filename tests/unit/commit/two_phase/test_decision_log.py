"""Read the decision log from listings, none of which is a snapshot."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, layout, recover, verify
from holdfast.commit.two_phase.decision_log import decision_record_exists, find_decision, read_entry, read_log, trim_log
from holdfast.errors import FencedError, OutcomeUnknownError
from holdfast.stores.base import ObjectPage, ObjectStore
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.versioned_log import LogView
from tests.interceptors import Recorder, SimulatedCrash
from tests.simulation.world import HOME, TASKS, At, World, run_job, run_tasks, start

T = TypeVar("T")


class Blind(InterceptedStore):
    """A listing that misses some names at first; later ones show them."""

    def __init__(self, store: ObjectStore, hidden: Callable[[str], bool]) -> None:
        super().__init__(store, lambda _call, proceed: proceed())
        self._hidden = hidden

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        page = super().list_page(prefix, start_after, max_keys, token)
        return ObjectPage([info for info in page.objects if not self._hidden(info.key)], page.next_token)


def entry(seq: int) -> str:
    return f"{seq:020d}.json"


def grown(decisions: int) -> World:
    world = World("upload")
    for number in range(decisions):
        run_job(world.context(), f"job{number}", tasks=1)
    return world


def blind(world: World, *hidden: int) -> LogView:
    names = tuple(entry(seq) for seq in hidden)
    return read_log(world.context(store=Blind(world.store, lambda key: key.endswith(names))))


@pytest.mark.parametrize("hidden", [(1,), (2,), (3,), (2, 3), (1, 2, 3)])
def test_an_entry_that_a_listing_missed_is_no_gap(hidden: tuple[int, ...]) -> None:
    """C8: a delayed local listing shows N+2 without N+1; the entries before still count."""
    world = grown(4)
    view = blind(world, *hidden)
    assert (view.oldest, view.head, view.stale) == (1, 4, ())


def test_a_log_whose_newest_entry_was_missed_is_a_log_of_before() -> None:
    assert blind(grown(3), 3).head == 2


def test_a_missed_entry_costs_no_decision() -> None:
    """A listing with such a gap once lost 298 decisions and fenced every running job."""
    world = grown(4)
    slow = start(world.context())
    messages = run_tasks(world.context(), slow, "slow")
    view = blind(world, 3)
    trim_log(world.context(), view)
    assert read_log(world.context()).oldest == 1
    assert TWO_PHASE.commit_job(world.context(), slow, messages, TASKS).committed


def test_nothing_within_retention_is_trimmed_although_it_is_after_a_gap() -> None:
    """A record was deleted by hand: the information in the others is kept."""
    world = grown(6)
    world.store.delete(f"{HOME}_holdfast/log/{entry(3)}")
    view = read_log(world.context())
    assert view.oldest == 4
    trim_log(world.context(), view)
    assert decision_record_exists(world.context(), 2, "done") and decision_record_exists(world.context(), 1, "json")
    trim_log(world.context().with_settings(log_retention_entries=4), view)
    assert not decision_record_exists(world.context(), 2, "done") and not decision_record_exists(
        world.context(), 1, "json"
    )


def test_looking_at_a_log_that_was_never_trimmed_is_one_listing() -> None:
    world = grown(3)
    recorded = Recorder()
    read_log(world.context(store=InterceptedStore(world.store, recorded)))
    assert recorded.count(StoreOperation.LIST) == 1 and recorded.count(StoreOperation.HEAD) == 0


# --- what is retained is searched before anything is denied ---
def test_a_decision_that_is_in_the_log_is_found_although_the_log_was_trimmed() -> None:
    """A starts, others decide, A commits: abort reported that A was not committed, and its caller ran it again."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=3)
    slow = start(ctx)
    messages = run_tasks(ctx, slow, "slow")
    for number in range(2):
        run_job(ctx, f"job{number}", tasks=1)
    assert TWO_PHASE.commit_job(ctx, slow, messages, TASKS).committed
    run_job(ctx, "trims", tasks=1)
    assert read_log(ctx).oldest > slow.base_seq + 1
    assert TWO_PHASE.abort_job(ctx, slow).committed
    assert TWO_PHASE.commit_job(ctx, slow, messages, TASKS).committed, "again, also from another process"


def test_a_committed_job_that_the_log_has_trimmed_is_known_by_its_files() -> None:
    """C8: an unknown outcome is not denied; a caller that learns "not committed" runs the job again."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=1)
    job = start(ctx)
    assert TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, "slow"), TASKS).committed
    before = world.listing()
    for number in range(3):
        run_job(ctx, f"job{number}", tasks=1)
    outcome = TWO_PHASE.abort_job(ctx, job)
    assert outcome.committed and outcome.totals.files == len(before)
    assert before.items() <= world.listing().items()


def test_a_job_that_is_over_without_a_trace_is_not_denied() -> None:
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=1)
    job = start(ctx)
    assert TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, "slow"), TASKS).committed
    for path in world.listing():
        world.store.delete(HOME + path)  # as a later overwrite does
    for number in range(3):
        run_job(ctx, f"job{number}", tasks=1)
    with pytest.raises(OutcomeUnknownError, match="history"):
        TWO_PHASE.abort_job(ctx, job)


def test_a_search_continues_when_the_log_is_trimmed_meanwhile() -> None:
    """The trimmed entries were not about the job; the job's own entry still exists."""
    world = grown(3)
    job = start(world.context())
    messages = run_tasks(world.context(), job, "mine", 1)
    view = read_log(world.context())
    assert TWO_PHASE.commit_job(world.context(), job, messages, 1).committed
    after = read_log(world.context())
    trimming = At(1, lambda: world.store.delete(f"{HOME}{layout.log_entry_path(1)}"))
    searching = world.context(store=InterceptedStore(world.store, trimming))
    found = find_decision(searching, after, job.job, 0)
    assert trimming.fired and found is not None and found.job == job.job
    with pytest.raises(FencedError):
        find_decision(searching, view, start(world.context()).job, 0)


# --- decisions in the trimmed past ---
class _HeldUp:
    """A store that delays a driver just before it creates a log entry, while others decide."""

    def __init__(self, others: Callable[[], None]) -> None:
        self._others = others
        self.seq = 0

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        if not self.seq and call.operation is StoreOperation.PUT and "/log/" in call.key and call.key.endswith(".json"):
            self.seq = int(call.key.rpartition("/")[2].partition(".")[0])
            self._others()
        return proceed()


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("others", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_a_driver_that_is_held_up_decides_nothing_in_the_trimmed_past(before: int, others: int, ends: str) -> None:
    """C8: its number is free again, because its entry is trimmed: streams and tables would return to an old state."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=2)
    for number in range(before):
        run_job(ctx, f"before{number}", tasks=1)
    job = start(ctx)
    messages = run_tasks(ctx, job, "slow")

    def decide() -> None:
        for number in range(others):
            run_job(ctx, f"other{number}", tasks=1)

    held_up = _HeldUp(decide)
    slow = dataclasses.replace(ctx, store=InterceptedStore(world.store, held_up))
    committed = False
    if ends == "abort":
        assert not TWO_PHASE.abort_job(slow, job).committed
    else:
        with contextlib.suppress(FencedError):
            committed = TWO_PHASE.commit_job(slow, job, messages, TASKS).committed
        assert TWO_PHASE.abort_job(ctx, job).committed is committed
    assert held_up.seq == before + 1
    run_job(ctx, "after", tasks=1)
    assert recover(ctx).clean and verify(ctx).verified, verify(ctx).problems
    view = read_log(ctx)
    assert view.unfinished == [] and view.stale == ()
    mine = [path for path in world.listing() if job.job in path]
    assert len(mine) == (2 * TASKS if committed else 0) and world.pending() == [] and world.leftovers() == []
    entries = [read_entry(ctx, seq) for seq in range(view.oldest, view.head + 1)]
    assert all(later.after == earlier.token for earlier, later in itertools.pairwise(entries)), "one order"


def test_a_driver_that_dies_right_after_it_decided_in_the_trimmed_past() -> None:
    """Its entry exists next to the others, and readers ignore it."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=2)
    job = start(ctx)
    messages = run_tasks(ctx, job, "slow")
    held_up = _HeldUp(lambda: [run_job(ctx, f"other{number}", tasks=1) for number in range(3)] and None)

    def die(call: StoreCall, proceed: Callable[[], T]) -> T:
        if held_up.seq:
            raise SimulatedCrash
        return held_up(call, proceed)

    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(dataclasses.replace(ctx, store=InterceptedStore(world.store, die)), job, messages, TASKS)
    assert decision_record_exists(ctx, 1, "json"), "it has decided"
    assert read_log(ctx).oldest == 2 and read_log(ctx).unfinished == []
    assert recover(ctx).rolled_back == [job.job]
    run_job(ctx, "after", tasks=1)
    assert not decision_record_exists(ctx, 1, "json") and world.pending() == [] and world.leftovers() == []
    assert verify(ctx).verified


def test_a_driver_that_is_held_up_after_its_decision_learns_that_it_counts() -> None:
    """Others have rolled it forward, and the log has trimmed it since."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=1)
    run_job(ctx, "before", tasks=1)
    job = start(ctx)
    messages = run_tasks(ctx, job, "slow")
    decided = []

    def hold_up(call: StoreCall, proceed: Callable[[], T]) -> T:
        done = proceed()
        if not decided and call.operation is StoreOperation.PUT and call.key.endswith(entry(2)):
            decided.append(True)
            for number in range(4):
                run_job(ctx, f"other{number}", tasks=1)
        return done

    slow = dataclasses.replace(ctx, store=InterceptedStore(world.store, hold_up))
    assert TWO_PHASE.commit_job(slow, job, messages, TASKS).committed
    assert len([path for path in world.listing() if job.job in path]) == 2 * TASKS
    assert verify(ctx).verified and world.leftovers() == []


def test_entries_are_trimmed_one_by_one() -> None:
    """While one exists, none after it is deleted: a driver reads the one before its own."""
    world = grown(8)
    recorded = Recorder()
    ctx = world.context(store=InterceptedStore(world.store, recorded)).with_settings(log_retention_entries=2)
    trim_log(ctx, read_log(ctx))
    gone = [call.key for call in recorded.calls if call.operation is StoreOperation.DELETE]
    assert gone == [f"{HOME}_holdfast/log/{entry(seq)}" for seq in range(1, 7)]
