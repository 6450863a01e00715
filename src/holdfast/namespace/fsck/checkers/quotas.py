"""Check the counters of quotas."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Checker, FindingKind, Severity, Suspect
from holdfast.namespace.keys import id_of, usage_key


def _wrong(facts: Facts) -> Iterator[Suspect]:
    for key, quota in facts.quotas.items():
        if quota.quota_id not in facts.used:
            continue  # not in the tree
        counters = [facts.usage.get(usage_key(quota.quota_id, what)) for what in (b"n", b"s")]
        noted = tuple(0 if counter is None else counter.number for counter in counters)
        used = facts.used[quota.quota_id]
        if noted != used:
            yield Suspect(key=key, detail=f"names {noted[0]}, counted {used[0]}; space {noted[1]}, counted {used[1]}")


def _stray(facts: Facts) -> Iterator[Suspect]:
    known = {quota.quota_id for quota in facts.quotas.values()}
    for key, counter in facts.usage.items():
        if id_of(key) not in known:
            yield Suspect(key=key, version=counter.version)


WRONG_USAGE = Checker(
    FindingKind(
        "wrong-usage",
        Severity.DAMAGE,
        "the usage of a quota is wrong",
        "repair: it is counted again while nobody can change the directory",
    ),
    _wrong,
)
STRAY_USAGE = Checker(
    FindingKind(
        "stray-usage",
        Severity.LEFTOVER,
        "the usage of a quota that does not exist",
        "run holdfast namespace gc --sweep, or repair: it is deleted",
    ),
    _stray,
)
