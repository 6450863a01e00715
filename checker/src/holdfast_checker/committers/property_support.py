"""Evaluate views for properties: which actor learned which outcome, and which attempt wrote a task's visible files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast_checker.committers.cluster import ClusterState, Told
from holdfast_checker.committers.output import Origin, directory, files_of
from holdfast_checker.committers.sandbox import cluster_of
from holdfast_checker.kernel.world import View


@dataclass(frozen=True, slots=True)
class Winner:
    """The attempt whose files are regarded as the visible output of a task.

    Attributes:
        accepted: the attempt whose report the driver accepted; None if there is none.
        attempt: an attempt whose files are all visible; None if there is none.
        missing: if no attempt is completely visible, the files of the accepted attempt that are not visible.
        strange: visible files of the task that another attempt wrote, or that are damaged, duplicated, or in a wrong
            partition.
    """

    task: int
    accepted: int | None
    attempt: int | None
    missing: frozenset[Origin]
    strange: frozenset[Origin]


def of_main(found: Mapping[str, Origin]) -> dict[str, Origin]:
    """Return the files of the job under test, and all damaged files."""
    return {path: origin for path, origin in found.items() if origin.job == "main" or origin.damaged}


def winners(cluster: ClusterState, visible: Mapping[str, Origin], files: int) -> list[Winner]:
    """Find the attempt of each task whose files are all visible: the accepted one if possible, else any."""
    files_there = of_main(visible)
    there = files_there.values()
    odd = {origin for origin, times in Counter(there).items() if times > 1}
    odd |= {origin for path, origin in files_there.items() if not path.startswith(f"{_partition(origin)}/")}
    found = []
    for task, accepted in enumerate(cluster.accepted):
        of_task = frozenset(origin for origin in there if origin.task == task)
        first = -1 if accepted is None else accepted[0]
        order = sorted(range(len(cluster.attempts[task])), key=first.__ne__)
        whole = [attempt for attempt in order if files_of("main", task, attempt, files) <= of_task]
        attempt = whole[0] if whole else None
        mine = files_of("main", task, order[0] if attempt is None else attempt, files)
        missing = mine - of_task
        found.append(
            Winner(task, None if accepted is None else first, attempt, missing, (of_task - mine) | (of_task & odd))
        )
    return found


def _partition(origin: Origin) -> str:
    return directory(origin.attempt, origin.number)


def just_told(before: View, after: View) -> list[Told]:
    """Return the outcomes that actors learned in this step."""
    old, now = cluster_of(before).told, cluster_of(after).told
    return [] if old is now else list((Counter(now) - Counter(old)).elements())


def told_finished(before: View, after: View) -> str:
    """Return the driver that learned in this step that the job is committed and finished; empty if none did."""
    told = (one for one in just_told(before, after) if "driver" in one.who)
    return next((one.who for one in told if one.outcome == "committed" and one.detail), "")


def was_told(view: View, outcome: str) -> list[Told]:
    """Return the entries of all drivers that learned this outcome."""
    return [told for told in cluster_of(view).told if told.outcome == outcome and "driver" in told.who]


def in_words(origins: Iterable[Origin]) -> str:
    """List origins as a part of a sentence."""
    return ", ".join(map(str, sorted(origins))) or "nothing"
