"""Read a destination like the intended readers of a committer: by listing, by _SUCCESS, or through Holdfast."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from holdfast.commit.layout import SUCCESS
from holdfast.commit.two_phase.snapshot import read_snapshot
from holdfast.stores.memory import MemoryImage
from holdfast_checker.committers.output import DESTINATION, HOME, Origin, files_of, visible
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.committers.table_v.observed_cluster import observed
from holdfast_checker.kernel.world import View


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader sees.

    Attributes:
        files: the files of accepted attempts that the reader sees.
        over: whether the reader considers the job committed.
    """

    files: frozenset[Origin]
    over: bool


def accepted(sandbox: Sandbox, view: View) -> frozenset[Origin]:
    """Return the files of the attempts that the driver accepted."""
    return frozenset(
        origin
        for task, one in enumerate(observed(view).accepted)
        if one is not None
        for origin in files_of("main", task, one[0], sandbox.setting.files)
    )


def _success_names(view: View, job: str) -> frozenset[str] | None:
    """Return the paths in this job's _SUCCESS; None if there is no _SUCCESS of this job."""
    found = cast("MemoryImage", view.states[DESTINATION]).objects.get(f"{HOME}{SUCCESS}")
    if found is None:
        return None
    document = json.loads(found.data)
    if document["jobId"] != job:
        return None
    return frozenset(name.removeprefix(f"/{HOME}") for name in document["filenames"])


def listed(sandbox: Sandbox, view: View) -> Reading:
    """Read by listing the destination and checking for a _SUCCESS of the job."""
    job = observed(view).job
    over = job is not None and _success_names(view, job.job) is not None
    return Reading(frozenset(visible(view).values()) & accepted(sandbox, view), over)


def _named(sandbox: Sandbox, view: View) -> Reading:
    """Read the files that _SUCCESS names."""
    job = observed(view).job
    names = _success_names(view, job.job) if job is not None else None
    found = frozenset(origin for path, origin in visible(view).items() if path in (names or ()))
    return Reading(found & accepted(sandbox, view), names is not None)


def _whole(sandbox: Sandbox, view: View) -> Reading:
    """Read through Holdfast."""
    there = visible(view)
    snapshot = read_snapshot(sandbox.copy(view).context())
    found = frozenset(there[file.path] for file in snapshot.files if file.path in there) & accepted(sandbox, view)
    return Reading(found, bool(found))


READERS: Mapping[str, Callable[[Sandbox, View], Reading]] = {"two_phase": _whole, "stocator": _named}
"""How to read the output of these committers; the output of all others is read by listing."""
