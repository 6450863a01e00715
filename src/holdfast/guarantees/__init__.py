"""Declare what each committer guarantees.

The package builds a table with a row for each guarantee and a column for each committer. The table helps users choose a
committer, and the checker compares it with what exploration finds. The rows are those of paper 000, Table V, then C1 to
C10, and what a crash does to old data. The columns Direct, Stocator, S3A (`magic`, `staging-*`) and EMR of Table V are
the paper's own answers; where C1 to C10 are more precise than the paper, their answers are stricter.

Each committer's answers are in a separate module. To add a committer, add its module and one line to `_ANSWERS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guarantees import direct, emr, file_v1, file_v2, magic, manifest, staging, stocator, two_phase
from holdfast.guarantees.answers import OR, Answer, Guarantee
from holdfast.guarantees.circumstances import (
    ANOTHER_ENDS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DIES_UPLOADING,
    DISPLACED,
    IN_TASK_COMMIT,
    OTHER_READERS,
    PARTITIONED,
    STAGED,
    STILL_WRITING,
    TWO_DRIVERS,
    UNDONE_BY_HAND,
)
from holdfast.guarantees.rows import ROWS

__all__ = [
    "ANOTHER_ENDS",
    "BOTH_COMMIT",
    "COMMIT_BEGUN",
    "DIES_UPLOADING",
    "DISPLACED",
    "GUARANTEES",
    "IN_TASK_COMMIT",
    "OR",
    "OTHER_READERS",
    "PARTITIONED",
    "STAGED",
    "STILL_WRITING",
    "TWO_DRIVERS",
    "UNDONE_BY_HAND",
    "Answer",
    "Guarantee",
]

_ANSWERS: Mapping[str, Mapping[str, Answer]] = {
    "two_phase": two_phase.ANSWERS,
    "magic": magic.ANSWERS,
    "staging-directory": staging.ANSWERS,
    "staging-partitioned": staging.ANSWERS,
    "manifest": manifest.ANSWERS,
    "file-v1": file_v1.ANSWERS,
    "file-v2": file_v2.ANSWERS,
    "direct": direct.ANSWERS,
    "stocator": stocator.ANSWERS,
    "emr": emr.ANSWERS,
}
"""The answers, by the name of the committer, then by the name of the row."""

GUARANTEES: tuple[Guarantee, ...] = tuple(
    Guarantee(
        name=row.name,
        title=row.title,
        meaning=row.meaning,
        wanted=row.wanted,
        answers={committer: answers[row.name] for committer, answers in _ANSWERS.items()},
    )
    for row in ROWS
)
"""All rows, those of Table V first."""
