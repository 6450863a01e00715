"""Group the checks by topic, for readers who decide whether to use a store."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from holdfast.conformance import Check
from holdfast.stores.conformance import objects, renames, transactions, uploads
from holdfast.stores.conformance.objects import ODD_KEYS
from holdfast.stores.conformance.subject import Subject


class Weight(enum.Enum):
    """The committers that require the checks of a topic."""

    DATA = "required by every committer"
    DECISION = "required by the decision of two_phase"
    HIDDEN = "required by committers that upload"
    MOVED = "required by committers that rename"
    LIMIT = "not required by any committer: a limit to know"


@dataclass(frozen=True, slots=True)
class Topic:
    """A group of checks.

    Attributes:
        name: a few words for the report.
        weight: the committers that require the topic's checks.
        checks: names of checks; a name that ends in ``:`` stands for all checks with this prefix.
        otherwise: the consequence for users if one of the checks fails.
    """

    name: str
    weight: Weight
    checks: tuple[str, ...]
    otherwise: str

    def covers(self, check: str) -> bool:
        """Check whether a check belongs to this topic."""
        return check in self.checks or f"{check.partition(':')[0]}:" in self.checks


_TREES = ("check_list_order", "check_list_start_after", "check_object_beside_directory", "check_directory_markers")
_LISTINGS = ("check_list_one_directory", "check_list_pages", "check_list_prefix", "check_listing_under_writers")
_COPIES = ("check_copy", "check_put_metadata", "check_upload_metadata")
_DECISIONS = ("check_create", "check_create_after_delete")
_RACES = ("check_create_race", "check_create_delete_race")
_UPDATES = ("check_update", "check_update_missing", "check_update_race")
_PENDING = ("check_list_uploads", "check_list_many_uploads", "check_upload_age", "listed-upload:")
_SMALL = ("check_small_part",)
_OTHERS = {*_TREES, *_LISTINGS, *_COPIES, *_DECISIONS, *_RACES, *_UPDATES, *_PENDING, *_SMALL}


def _rest_of(module: ModuleType) -> tuple[str, ...]:
    return tuple(name for name in vars(module) if name.startswith("check_") and name not in _OTHERS)


TOPICS = (
    Topic("objects", Weight.DATA, _rest_of(objects), "files may be lost or mixed"),
    Topic("listings", Weight.DATA, _LISTINGS, "jobs, files or decisions may be missed"),
    Topic(
        "conditional writes",
        Weight.DECISION,
        _DECISIONS,
        "two drivers may both decide the same job",
    ),
    Topic(
        "conditional writes, many at once",
        Weight.DECISION,
        _RACES,
        "two drivers that decide at the same time may both believe that they won",
    ),
    Topic(
        "transactions",
        Weight.DECISION,
        _rest_of(transactions),
        "a job may become visible in part, or a job that is not committed",
    ),
    Topic(
        "uploads",
        Weight.HIDDEN,
        _rest_of(uploads),
        "files may become visible early, late, twice or never",
    ),
    Topic(
        "renames",
        Weight.MOVED,
        _rest_of(renames),
        "files may be lost during a rename",
    ),
    Topic(
        "listings of pending uploads",
        Weight.LIMIT,
        _PENDING,
        "leftover uploads of other tools are not found; jobs use their own records",
    ),
    Topic(
        "names", Weight.LIMIT, ("key:",), "names with such characters are rejected or listed incorrectly: avoid them"
    ),
    Topic(
        "whole trees",
        Weight.LIMIT,
        _TREES,
        "an object beside a directory of its name, or the order across directories, differs from S3",
    ),
    Topic(
        "conditional updates",
        Weight.LIMIT,
        _UPDATES,
        "if two jobs end at the same time, the _SUCCESS of the earlier one may remain",
    ),
    Topic(
        "copies and metadata",
        Weight.LIMIT,
        _COPIES,
        "committers that copy files do not work, and sizes of magic files are unknown",
    ),
    Topic("small parts", Weight.LIMIT, _SMALL, "it accepts parts that S3 would reject"),
)
"""Every check belongs to exactly one topic."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a topic.

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
    found = []
    for topic in TOPICS:
        of_topic = {name: error for name, error in results.items() if topic.covers(name)}
        if of_topic:
            failed = {name: error for name, error in of_topic.items() if error is not None}
            found.append(Finding(topic, len(of_topic), failed))
    return found


def without_topic(checks: list[Check[Subject]]) -> list[str]:
    """Return the names of checks that do not belong to exactly one topic; there should be none."""
    return [check.name for check in checks if sum(topic.covers(check.name) for topic in TOPICS) != 1]
