"""A sequential model of a destination: the decisions of its log, carried out one after the other, and what that allows.

The model knows what jobs bring and what modes mean, and nothing of how the protocol gets there:

- an append adds the job's files; an overwrite leaves them alone there; one of partitions leaves them alone in the
  directories that they are in; ``fail`` and ``ignore`` are decided only where nothing is there;
- who reads through Holdfast sees the decisions that are marked visible, in the order of the log, and nothing else;
- who lists the destination may meanwhile see more. Of a decision that is not marked visible any of its files, and all
  that it replaces; of one that is, all of its files, and what it replaces or not; of one that is done, its outcome.
- docs/how-to/write-files.md says of names that jobs choose themselves: one which a decision takes from an earlier job
  is seen by nobody who reads through Holdfast, until the decision is marked visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.checker.committers.ledger import Decision, Ledger
from holdfast.checker.committers.output import Origin
from holdfast.commit import SaveMode

__all__ = ["Brought", "Listing", "Shown", "after_decisions", "listing_of", "taken_over", "unfit_decision"]

Shown = Mapping[str, Origin]
"""Files that a reader sees: by path, whose they are."""

_NEEDS_NOTHING = (SaveMode.FAIL, SaveMode.IGNORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a job hands over to be committed.

    Attributes:
        who: the actor that commits it.
        files: by path, whose they are.
        chosen: whether the caller chose their names: then they may meet others.
    """

    who: str
    mode: SaveMode
    files: Shown
    chosen: bool = False

    def replaces(self, before: Shown) -> frozenset[str]:
        """The paths that are there and go with this job."""
        if self.mode is SaveMode.OVERWRITE:
            return frozenset(before.keys() - self.files.keys())
        if self.mode is SaveMode.OVERWRITE_PARTITIONS:
            mine = {_directory(path) for path in self.files}
            return frozenset(path for path in before if _directory(path) in mine and path not in self.files)
        return frozenset()

    def onto(self, before: Shown) -> Shown:
        """What is there after this job."""
        gone = self.replaces(before)
        return {**{path: origin for path, origin in before.items() if path not in gone}, **self.files}


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def after_decisions(old: Shown, made: Iterable[Decision], brought: Mapping[str, Brought]) -> Shown:
    """What is there after these decisions, one after the other.

    Args:
        old: what was there before the first.
        brought: by job.
    """
    for one in made:
        if one.commits:
            old = brought[one.job].onto(old)
    return old


def taken_over(waiting: Iterable[Decision], brought: Mapping[str, Brought]) -> frozenset[str]:
    """Chosen names that decisions bring which are not marked visible: nobody sees what was there before, either."""
    jobs = [brought[one.job] for one in waiting if one.commits]
    return frozenset(path for job in jobs if job.chosen for path in job.files)


def unfit_decision(old: Shown, made: Sequence[Decision], brought: Mapping[str, Brought]) -> str:
    """A decision that should not have been made after those before it, in words; empty if there is none."""
    batches: dict[tuple[str, int], int] = {}
    for one in made:
        if not one.commits:
            continue
        job = brought.get(one.job)
        if job is None:
            return f"decision {one.seq} commits a job whose tasks have not all reported"
        taken = sorted(path for path in job.files if path in old)
        if old and job.mode in _NEEDS_NOTHING:
            return f"decision {one.seq} commits {job.who} with mode {job.mode.value}, and there are data"
        if taken and not (job.chosen and job.mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)):
            return f"decision {one.seq} commits {job.who}, and {taken[0]} is there already"
        if one.batch is not None and batches.setdefault(one.batch, one.seq) != one.seq:
            return f"decision {one.seq} commits a batch that decision {batches[one.batch]} has committed"
        old = job.onto(old)
    return ""


@dataclass(slots=True)
class Listing:
    """What a plain listing may show at one moment.

    Attributes:
        allowed: by path, whose file may be there; None if there may be none. No other path may be there.
        reasons: by path, the last decision that had to do with it, in words.
    """

    allowed: dict[str, frozenset[Origin | None]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def unlike(self, shown: Shown) -> str:
        """How a listing differs from what it may show, in words; empty if it does not."""
        for path in sorted(shown.keys() | self.allowed.keys()):
            found, allowed = shown.get(path), self.allowed.get(path, frozenset({None}))
            if found in allowed:
                continue
            why = self.reasons.get(path, "no decision commits it")
            wanted = " or ".join(sorted(str(one) for one in allowed if one is not None))
            if found is None:
                return f"{wanted} is missing: {why}"
            return f"there is {found}" + (f" in place of {wanted}" if wanted else "") + f": {why}"
        return ""


def listing_of(old: Shown, ledger: Ledger, brought: Mapping[str, Brought]) -> Listing:
    """What a plain listing may show after the decisions of a ledger, each as far as its marks say that it is."""
    found = Listing({path: frozenset({origin}) for path, origin in old.items()})
    found.reasons.update(dict.fromkeys(old, "nobody has replaced it"))
    for one in ledger.decisions:
        if one.commits:
            job = brought[one.job]
            _allow(found, one.seq, job, job.replaces(old), one.seq in ledger.visible, one.seq in ledger.done)
            old = job.onto(old)
    return found


def _allow(found: Listing, seq: int, job: Brought, gone: frozenset[str], visible: bool, done: bool) -> None:
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
