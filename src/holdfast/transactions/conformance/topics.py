"""List the checks by topic, for readers who decide whether to use a database."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from holdfast.conformance import Check, checks_in
from holdfast.transactions.conformance import (
    absence,
    durability,
    groups,
    lasting,
    limits,
    locks,
    mixtures,
    pairs,
    races,
    ranges,
    reads,
    series,
    snapshots,
    writes,
)
from holdfast.transactions.conformance.subject import Subject


@dataclass(frozen=True, slots=True)
class Topic:
    """A group of checks.

    Attributes:
        name: a few words for a report.
        module: the module with the checks.
        otherwise: the consequence for users if one of the checks fails.
        method: the method that a database needs for the checks, if not all databases have it.
    """

    name: str
    module: ModuleType
    otherwise: str
    method: str = ""


TOPICS = (
    Topic("reads", reads, "transactions see wrong records, or miss some"),
    Topic("writes", writes, "commits have other effects than they were asked for"),
    Topic("ranges", ranges, "records appear in ranges that a transaction has counted, such as removed directories"),
    Topic("absent records", absence, "two transactions each create what the other one must not find"),
    Topic("series", series, "work that is repeated takes effect twice, or never"),
    Topic("groups", groups, "a transaction fails, or takes effect, because of another one"),
    Topic("pairs", pairs, "two transactions on one record have an effect that no order of them has"),
    Topic("random commits", mixtures, "some combination of conditions and writes is not treated as documented"),
    Topic("keys, values, sizes", limits, "records are lost or confused, or large transactions are refused"),
    Topic("reads under load", snapshots, "transactions see states that never existed, and act on them"),
    Topic("races", races, "updates are lost, or transactions fail for no reason"),
    Topic("locked transactions", locks, "the pessimistic mode loses updates", method="locked"),
    Topic("flushes", durability, "what was reported as done is lost or changed", method="make_durable"),
    Topic("lasting snapshots", lasting, "checks of all records report damage that does not exist", method="snapshot"),
)
"""Every check belongs to exactly one topic."""


def checks_of(topic: Topic) -> list[Check[Subject]]:
    """Return the checks of a topic."""
    return checks_in(topic.module)
