"""What the checks are about, in the words of somebody who has to decide whether to use a store."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.stores.conformance import directories, objects, renames
from holdfast.stores.conformance.keys import ODD_KEYS
from holdfast.stores.conformance.subject import Check

__all__ = ["TOPICS", "Finding", "Topic", "Weight", "findings", "without_topic"]


class Weight(enum.Enum):
    """What follows when a check of a topic fails."""

    DATA = "what every committer rests on"
    DECISION = "what the decision of two_phase rests on"
    HIDDEN = "what committers that upload rest on"
    MOVED = "what committers that rename rest on"
    LIMIT = "no committer rests on it: a limit to know of"


@dataclass(frozen=True, slots=True)
class Topic:
    """Checks that answer one question.

    Attributes:
        name: a few words, as the report shows them.
        weight: what rests on it.
        checks: names of checks; one that ends in ``:`` stands for all that begin so.
        otherwise: what follows if it does not hold.
    """

    name: str
    weight: Weight
    checks: tuple[str, ...]
    otherwise: str

    def covers(self, check: str) -> bool:
        """Whether a check is of this topic."""
        return check in self.checks or f"{check.partition(':')[0]}:" in self.checks


_TREES = ("check_list_order", "check_list_start_after", "check_object_beside_directory", "check_directory_markers")
_LISTINGS = ("check_list_one_directory", "check_list_pages", "check_list_prefix", "check_listing_under_writers")
_COPIES = ("check_copy", "check_copy_missing", "check_put_metadata", "check_upload_metadata")
_OBJECTS = tuple(name for name in objects.__all__ if name not in (*_TREES, *_LISTINGS, *_COPIES))

TOPICS = (
    Topic("objects", Weight.DATA, (*_OBJECTS, "check_overwrite_race"), "files may be lost or mixed"),
    Topic("listings", Weight.DATA, _LISTINGS, "jobs, files or decisions may be overlooked"),
    Topic(
        "conditional writes",
        Weight.DECISION,
        ("check_create", "check_create_after_delete"),
        "two drivers may both decide one job",
    ),
    Topic(
        "conditional writes, many at once",
        Weight.DECISION,
        ("check_create_race", "check_create_delete_race"),
        "two drivers that decide at the same moment may both believe that they did",
    ),
    Topic(
        "uploads",
        Weight.HIDDEN,
        (
            *("check_upload_is_invisible", "check_upload_completed_elsewhere", "check_upload_parts"),
            *("check_upload_parts_at_once", "check_upload_part_again", "check_upload_replaces"),
            *(
                "check_upload_without_bytes",
                "check_two_uploads_of_one_key",
                "check_abort",
                "check_abort_after_complete",
            ),
            *("check_complete_twice", "check_complete_after_overwrite", "check_complete_after_delete"),
            *("check_complete_race", "check_wrong_etag", "check_missing_part"),
        ),
        "files may show early, late, twice or not at all",
    ),
    Topic(
        "renames",
        Weight.MOVED,
        (*renames.__all__, *directories.__all__),
        "files may be lost on their way",
    ),
    Topic(
        "listings of pending uploads",
        Weight.LIMIT,
        (
            *("check_list_uploads", "check_list_uploads_beside_directory", "check_list_many_uploads"),
            *("check_upload_age", "listed-upload:"),
        ),
        "what other tools left is not found; jobs go by their own records",
    ),
    Topic("names", Weight.LIMIT, ("key:",), "names with such characters are refused or listed wrongly: avoid them"),
    Topic("whole trees", Weight.LIMIT, _TREES, "directories beside objects, or their order, are the server's own"),
    Topic(
        "conditional updates",
        Weight.LIMIT,
        ("check_update", "check_update_of_listed", "check_update_missing", "check_update_race"),
        "of two jobs that end at the same moment the earlier one's _SUCCESS may stay",
    ),
    Topic("copies and metadata", Weight.LIMIT, _COPIES, "committers that copy, and sizes of magic files, do without"),
    Topic("small parts", Weight.LIMIT, ("check_small_part",), "it takes parts that S3 would refuse"),
)
"""Every check is of one of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about a topic.

    Attributes:
        checks: how many were run.
        failed: name of each that failed, to what went wrong.
    """

    topic: Topic
    checks: int
    failed: Mapping[str, Exception]

    @property
    def odd_names(self) -> list[str]:
        """Of checks of names, which names those are."""
        return [name.partition(":")[2] for name in self.failed if name.partition(":")[2] in ODD_KEYS]


def findings(results: Mapping[str, Exception | None]) -> list[Finding]:
    """What a run of the suite says about each topic; topics without a check are left out."""
    found = []
    for topic in TOPICS:
        of_topic = {name: error for name, error in results.items() if topic.covers(name)}
        if of_topic:
            failed = {name: error for name, error in of_topic.items() if error is not None}
            found.append(Finding(topic, len(of_topic), failed))
    return found


def without_topic(checks: list[Check]) -> list[str]:
    """Names of checks that no topic has, or several have: there should be none."""
    return [check.name for check in checks if sum(topic.covers(check.name) for topic in TOPICS) != 1]
