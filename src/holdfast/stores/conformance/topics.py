"""Group the checks by topic, for readers who decide whether to use a store."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import ModuleType
from typing import NamedTuple

from holdfast.stores.conformance import ODD_KEYS, objects, renames, transactions, uploads


class Weight(enum.Enum):
    """How important the checks of a topic are, by the committers that require them."""

    DATA = "required by every committer"
    DECISION = "required by the decision of two_phase"
    HIDDEN = "required by committers that upload"
    MOVED = "required by committers that rename"
    LIMIT = "not required by any committer: a limit to know"


class Topic(NamedTuple):
    """A group of checks.

    Attributes:
        name: a few words for the report.
        weight: the committers that require the topic's checks.
        otherwise: the consequence for users if one of the checks fails.
        checks: names of checks, or their beginnings up to a colon.
    """

    name: str
    weight: Weight
    otherwise: str
    checks: frozenset[str]


def _parse_check_names(names: str) -> frozenset[str]:
    return frozenset(name if name.endswith(":") else f"check_{name}" for name in names.split())


_SPECIAL = (
    Topic(
        "listings",
        Weight.DATA,
        "jobs, files or decisions may be missed",
        _parse_check_names("list_one_directory list_pages list_prefix listing_under_writers"),
    ),
    Topic(
        "conditional writes",
        Weight.DECISION,
        "two drivers may both decide the same job",
        _parse_check_names("create create_after_delete"),
    ),
    Topic(
        "conditional writes, many at once",
        Weight.DECISION,
        "two drivers that decide at the same time may both believe that they won",
        _parse_check_names("create_race create_delete_race"),
    ),
    Topic(
        "listings of pending uploads",
        Weight.LIMIT,
        "leftover uploads of other tools are not found; jobs use their own records",
        _parse_check_names("list_uploads list_many_uploads upload_age listed-upload:"),
    ),
    Topic(
        "names",
        Weight.LIMIT,
        "names with such characters are rejected or listed incorrectly: avoid them",
        _parse_check_names("key:"),
    ),
    Topic(
        "whole trees",
        Weight.LIMIT,
        "an object beside a directory of its name, or the order across directories, differs from S3",
        _parse_check_names("list_order list_start_after object_beside_directory directory_markers"),
    ),
    Topic(
        "conditional updates",
        Weight.LIMIT,
        "if two jobs end at the same time, the _SUCCESS of the earlier one may remain",
        _parse_check_names("update update_missing update_race"),
    ),
    Topic(
        "copies and metadata",
        Weight.LIMIT,
        "sizes of magic files are unknown",
        _parse_check_names("copy put_metadata upload_metadata"),
    ),
    Topic("small parts", Weight.LIMIT, "it accepts parts that S3 would reject", _parse_check_names("small_part")),
)
_ELSEWHERE = frozenset[str]().union(*(topic.checks for topic in _SPECIAL))


def _list_checks_of_no_special_topic(module: ModuleType) -> frozenset[str]:
    return frozenset(name for name in vars(module) if name.startswith("check_")) - _ELSEWHERE


TOPICS = (
    Topic("objects", Weight.DATA, "files may be lost or mixed", _list_checks_of_no_special_topic(objects)),
    Topic(
        "uploads",
        Weight.HIDDEN,
        "files may become visible early, late, twice or never",
        _list_checks_of_no_special_topic(uploads),
    ),
    Topic("renames", Weight.MOVED, "files may be lost during a rename", _list_checks_of_no_special_topic(renames)),
    Topic(
        "transactions",
        Weight.DECISION,
        "a job may become visible in part, or a job that is not committed",
        _list_checks_of_no_special_topic(transactions),
    ),
    *_SPECIAL,
)
"""Every check belongs to exactly one topic."""


class Finding(NamedTuple):
    """The result of one topic's checks in a run.

    Attributes:
        checks: the number of checks that ran.
        failed: maps the name of each failed check to its error.
    """

    topic: Topic
    checks: int
    failed: Mapping[str, Exception]

    @property
    def odd_names(self) -> list[str]:
        """The kinds of unusual key names (such as ``double-slash``) that failed their checks."""
        return [name.partition(":")[2] for name in self.failed if name.partition(":")[2] in ODD_KEYS]


def findings(results: Mapping[str, Exception | None]) -> list[Finding]:
    """Group the results of a run by topic; omit topics without any check that ran."""
    return [found for topic in TOPICS if (found := _make_topic_result(topic, results)).checks]


def _make_topic_result(topic: Topic, results: Mapping[str, Exception | None]) -> Finding:
    own = {name: error for name, error in results.items() if {name, f"{name.partition(':')[0]}:"} & topic.checks}
    return Finding(topic, len(own), {name: error for name, error in own.items() if error is not None})
