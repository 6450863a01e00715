"""Check random commits and random groups of commits, one after the other, against `model`."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runtime import SeededRandom
from holdfast.transactions.base import ABSENT, Bound, Commit, Progress, RangeCount, independent
from holdfast.transactions.conformance.model import Model, agree, agree_on_records
from holdfast.transactions.conformance.subject import Subject

_COMMITS = 400
_LARGEST_GROUP = 8


def check_random_commits(subject: Subject) -> None:
    """Check random commits, some made from old versions and with wrong counts, through both handles in turn."""
    model, draw = Model(), _Draw(subject, seed=1, keys=5)
    for number in range(_COMMITS):
        commit = draw.commit(model)
        handle = subject.other if number % 2 else subject.backend
        agree(model, commit, handle.commit(commit), f"random commit {number}, {commit}")
        if number % 20 == 0:
            agree_on_records(model, subject, f"after random commit {number}")
    agree_on_records(model, subject, "after all random commits")


def check_random_groups(subject: Subject) -> None:
    """Check random groups of independent commits: each outcome is as if the commits ran one after the other."""
    model, draw = Model(), _Draw(subject, seed=2, keys=16)
    for number in range(_COMMITS // 4):
        commits = [draw.commit(model, ranges=False) for _ in range(_LARGEST_GROUP)]
        group = commits[: independent(commits)]
        for commit, outcome in zip(group, subject.backend.commit_group(group), strict=True):
            agree(model, commit, outcome, f"random group {number} of {len(group)}, {commit}")
        agree_on_records(model, subject, f"after random group {number}")


class _Draw:
    """Draws commits that are made from the present state, or from an earlier one."""

    def __init__(self, subject: Subject, seed: int, keys: int) -> None:
        self._chance = SeededRandom(seed)
        self._keys = [subject.key(b"%02d" % number) for number in range(keys)]
        self._subject = subject
        self._old: dict[bytes, int] = {}

    def commit(self, model: Model, *, ranges: bool = True) -> Commit:
        """Draw a commit.

        Args:
            ranges: whether it may have conditions on ranges: not in a group, whose other commits read no guard.
        """
        chance = self._chance
        now = {key: model.records[key].version if key in model.records else ABSENT for key in self._keys}
        if chance.happens(0.2):
            self._old = dict(now)
        versions = self._old if self._old and chance.happens(0.2) else now
        reads = {key: versions[key] for key in self._keys if chance.happens(0.2)}
        puts: dict[bytes, bytes] = {}
        inserts: dict[bytes, bytes] = {}
        deletes: list[bytes] = []
        adds: dict[bytes, int] = {}
        progress: Progress | None = None
        for key in chance.shuffled(self._keys)[: chance.pick((0, 1, 1, 2, 3))]:
            kind = chance.pick(("put", "insert", "delete", "add", "add", "progress"))
            if kind == "put":
                puts[key] = chance.pick((b"i", b"i", b"")) + b"%d" % chance.pick(range(100))
            elif kind == "delete":
                deletes.append(key)
            elif kind == "add":
                adds[key] = chance.pick((-2, -1, 0, 1, 2, 3))
            elif kind == "insert" and reads.get(key, ABSENT) == ABSENT:
                inserts[key] = chance.pick((b"inserted", b"another"))
            elif progress is None and key not in reads:
                number = model.records[key].number if key in model.records else 0
                progress = Progress(key, max(1, number + chance.pick((0, 1, 2))))
        return Commit(
            reads=reads,
            puts=puts,
            inserts=inserts,
            deletes=deletes,
            adds=adds,
            ranges=self._ranges(model) if ranges and chance.happens(0.3) else (),
            bounds=[Bound(key, chance.pick((0, 2, 4))) for key in adds if chance.happens(0.3)],
            progress=progress,
        )

    def _ranges(self, model: Model) -> Sequence[RangeCount]:
        chance = self._chance
        start, end = sorted((chance.pick(self._keys), chance.pick([*self._keys, self._subject.end])))
        count = sum(start <= key < end for key in model.records) + chance.pick((0, 0, 0, 1, -1))
        return [RangeCount(self._subject.key(b"guard"), start, end, max(count, 0))]
