"""Draw conclusions from a complete pass: what can be reached from where, and what the quotas count."""

from __future__ import annotations

from holdfast.namespace.fsck.directories import LIVE, LOST, UNSEEN, WAITING
from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.keys import ROOT_ID


def conclude(facts: Facts) -> None:
    """Complete the facts of a pass."""
    if facts.has_root:
        _walk_tree(facts)
    _walk_deleted(facts)
    _walk_lost(facts)


def _walk_tree(facts: Facts) -> None:
    """Visit the tree, and count what each directory with a quota uses: itself, and everything below it."""
    quota_ids = {quota.directory: quota.quota_id for quota in facts.quotas.values()}
    owners = {directory: directory for directory in quota_ids}
    direct: dict[int, tuple[int, int]] = {}
    for number, owner in facts.directories.walk(ROOT_ID, LIVE, owners):
        if owner:
            names, space = facts.directories.entries(number)
            before = direct.get(owner, (0, 0))
            direct[owner] = (before[0] + names, before[1] + space)
    for owner in direct:
        facts.used[quota_ids[owner]] = (1, 0)
    for owner, (names, space) in direct.items():
        _charge(facts, [quota_ids[one] for one in _quotas_above(facts, owner, owners)], names, space)


def _quotas_above(facts: Facts, directory: int, owners: dict[int, int]) -> list[int]:
    """Return the directories with quotas on the path of one that is in the tree, itself included."""
    found = []
    seen = set()
    number: int | None = directory
    while number is not None and number not in seen:
        seen.add(number)
        if number in owners:
            found.append(number)
        number = facts.directories.parent(number)
    return found


def _charge(facts: Facts, quota_ids: list[int], names: int, space: int) -> None:
    for number in quota_ids:
        if number in facts.used:
            before = facts.used[number]
            facts.used[number] = (before[0] + names, before[1] + space)


def _walk_deleted(facts: Facts) -> None:
    """Visit the deleted trees; quotas count them, their roots included, until they are collected."""
    for root in facts.deleted:
        charged = list(facts.charges.get(root, ()))
        _charge(facts, charged, 1, 0)
        for number, _ in facts.directories.walk(root, WAITING, {}):
            if charged:
                _charge(facts, charged, *facts.directories.entries(number))


def _walk_lost(facts: Facts) -> None:
    """Visit what is left: below parents that do not exist, then cycles and what hangs on them."""
    for parent, children in facts.directories.holders():
        if parent not in facts.directories and parent not in facts.deleted:
            if parent != ROOT_ID or facts.has_root:
                facts.lost_parents.add(parent, str(children))
            _mark_lost(facts, parent)
    for number in facts.directories.unseen():
        member = _cycle_above(facts, number)
        if member in facts.directories and facts.directories.region(member) == UNSEEN:
            facts.cycles.add(member)
            _mark_lost(facts, member)


def _mark_lost(facts: Facts, root: int) -> None:
    for _ in facts.directories.walk(root, LOST, {}):
        pass


def _cycle_above(facts: Facts, directory: int) -> int:
    """Return the smallest id of the cycle to which the parents of a directory lead."""
    seen = set()
    number = directory
    while number not in seen:
        seen.add(number)
        number = facts.directories.parent(number) or 0
    members = [number]
    while (number := facts.directories.parent(number) or 0) != members[0]:
        members.append(number)
    return min(members)
