"""Model a destination: apply the decisions of its log one after another, and say what may be visible meanwhile.

The model knows the output of jobs and the meaning of save modes, but not how the protocol works:

- An append adds the job's files. An overwrite leaves only the job's files. An overwrite of partitions leaves only the
  job's files in the directories that the job writes to, and does not change other directories. With ``fail`` or
  ``ignore``, a job is committed only if the destination is empty.
- A reader that uses Holdfast sees the result of the decisions that are marked visible, in the order of the log, and
  nothing else.
- A plain listing may show more. Before a decision is marked visible, the listing may show any of the job's files, and
  shows all files that the job replaces. Once the decision is marked visible, the listing shows all of the job's files,
  and may still show files that the job replaces. Once the decision is done, the listing shows only its result.
- Jobs may choose file names themselves. If a decision takes a name from an earlier job, no reader that uses Holdfast
  sees a file of that name until the decision is marked visible (docs/how-to/write-files.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit import SaveMode
from holdfast_checker.committers.ledger import Decision, Ledger
from holdfast_checker.committers.output import Origin

Shown = Mapping[str, Origin]
"""The origins of the visible files, by path."""

_NEEDS_NOTHING = (SaveMode.FAIL, SaveMode.IGNORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The output that a job wants to commit.

    Attributes:
        who: the actor that commits the job.
        files: the origin (attempt and number) of each file, by path.
        chosen: whether the caller chose the names, which can then collide with other names.
    """

    who: str
    mode: SaveMode
    files: Shown
    chosen: bool = False

    def replaces(self, before: Shown) -> frozenset[str]:
        """Return the existing paths that this job deletes."""
        if self.mode is SaveMode.OVERWRITE:
            return frozenset(before.keys() - self.files.keys())
        if self.mode is SaveMode.OVERWRITE_PARTITIONS:
            mine = {_directory(path) for path in self.files}
            return frozenset(path for path in before if _directory(path) in mine and path not in self.files)
        return frozenset()

    def onto(self, before: Shown) -> Shown:
        """Return the visible files after this job, given those before it."""
        gone = self.replaces(before)
        return {**{path: origin for path, origin in before.items() if path not in gone}, **self.files}


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def after_decisions(old: Shown, made: Iterable[Decision], submissions: Mapping[str, Submission]) -> Shown:
    """Return the visible files after these decisions, carried out one after another.

    Args:
        old: the visible files before the first decision.
        submissions: what each job submitted, by job id.
    """
    for one in made:
        if one.commits:
            old = submissions[one.job].onto(old)
    return old


def taken_over(waiting: Iterable[Decision], submissions: Mapping[str, Submission]) -> frozenset[str]:
    """Return the chosen paths of waiting decisions: until the visible mark, readers see no file there, old or new."""
    jobs = [submissions[one.job] for one in waiting if one.commits]
    return frozenset(path for job in jobs if job.chosen for path in job.files)


def unfit_decision(old: Shown, made: Sequence[Decision], submissions: Mapping[str, Submission]) -> str:
    """Describe the first decision that must not follow those before it; empty if there is none."""
    batches: dict[tuple[str, int], int] = {}
    for one in made:
        if not one.commits:
            continue
        job = submissions.get(one.job)
        if job is None:
            return f"decision {one.seq} commits a job whose tasks have not all reported"
        taken = sorted(path for path in job.files if path in old)
        if old and job.mode in _NEEDS_NOTHING:
            return f"decision {one.seq} commits {job.who} with mode {job.mode.value}, and the destination holds data"
        if taken and not (job.chosen and job.mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)):
            return f"decision {one.seq} commits {job.who}, and {taken[0]} exists already"
        if one.batch is not None and batches.setdefault(one.batch, one.seq) != one.seq:
            return f"decision {one.seq} commits a batch that decision {batches[one.batch]} committed"
        old = job.onto(old)
    return ""


@dataclass(slots=True)
class Listing:
    """What a plain listing may show at one moment.

    Attributes:
        allowed: for each path, the origins that its file may have, including None if the file may be missing. No other
            path may exist.
        reasons: for each path, a description of the last decision about it.
    """

    allowed: dict[str, frozenset[Origin | None]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def unlike(self, shown: Shown) -> str:
        """Describe how a listing differs from what is allowed; empty if it does not."""
        for path in sorted(shown.keys() | self.allowed.keys()):
            found, allowed = shown.get(path), self.allowed.get(path, frozenset({None}))
            if found in allowed:
                continue
            why = self.reasons.get(path, "no decision commits it")
            wanted = " or ".join(sorted(str(one) for one in allowed if one is not None))
            if found is None:
                return f"{wanted} is missing: {why}"
            return f"{found} is visible" + (f" in place of {wanted}" if wanted else "") + f": {why}"
        return ""


def listing_of(old: Shown, ledger: Ledger, submissions: Mapping[str, Submission]) -> Listing:
    """Return what a plain listing may show after the decisions of a ledger, given their marks."""
    found = Listing({path: frozenset({origin}) for path, origin in old.items()})
    found.reasons.update(dict.fromkeys(old, "no decision replaces it"))
    for one in ledger.decisions:
        if one.commits:
            job = submissions[one.job]
            _allow(found, one.seq, job, job.replaces(old), one.seq in ledger.visible, one.seq in ledger.done)
            old = job.onto(old)
    return found


def _allow(found: Listing, seq: int, job: Submission, gone: frozenset[str], visible: bool, done: bool) -> None:
    there = "done" if done else "marked visible" if visible else "not marked visible"
    for path, origin in job.files.items():
        before = found.allowed.get(path, frozenset({None}))
        found.allowed[path] = frozenset({origin}) if visible or done else before | {origin}
        found.reasons[path] = f"decision {seq}, which brings it, is {there}"
    for path in gone:
        if done:
            found.allowed[path] = frozenset({None})
        elif visible:
            found.allowed[path] |= {None}
        found.reasons[path] = f"decision {seq}, which replaces it, is {there}"
