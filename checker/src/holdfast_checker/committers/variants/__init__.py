"""Derive variants of the published committers: each changes one step to close a hole of docs/explanation/holes.md.

    +messages        the driver's messages say which attempt counts, not a listing
    +own-directory   a job reads and deletes only its own directories
    +remembers       a repeated job commit detects that the job is committed already
    +replaces-last   replaced data are deleted after their replacement is complete
    +takes-back      an abort deletes the visible files of the job
    +claim           only one driver may end a job

The variants exist only for the checker: do not write data with them. None of them gives a committer a decision that
outlives its driver: that is what `two_phase` is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.commit.committer import Committer
from holdfast.commit.file_output.v1 import FILE_V1
from holdfast.commit.magic.committer import MAGIC
from holdfast.commit.manifest.committer import MANIFEST
from holdfast.commit.staging.committer import STAGING_DIRECTORY, STAGING_PARTITIONED
from holdfast_checker.committers.variants.claim import Claims
from holdfast_checker.committers.variants.job_ends import Remembers, ReplacesLast, TakesBack
from holdfast_checker.committers.variants.messages import messages
from holdfast_checker.committers.variants.own_directory import OwnDirectory
from holdfast_checker.committers.variants.variant import Variant

__all__ = ["VARIANTS"]


# --- all of them ------------------------------------------------------------------------------------------------------
_SUMMARIES: Mapping[type[Variant], tuple[str, str]] = {
    Remembers: ("remembers", "whose job commit can be repeated"),
    ReplacesLast: ("replaces-last", "which deletes replaced data after its own files are complete"),
    TakesBack: ("takes-back", "whose abort deletes the job's visible files"),
    Claims: ("claim", "where only one driver may end a job"),
}


def _variants() -> Iterator[Committer]:
    yield OwnDirectory(FILE_V1, "own-directory", "file-v1, which reads and deletes only its own directories")
    for base in (MAGIC, STAGING_DIRECTORY, STAGING_PARTITIONED, MANIFEST, FILE_V1):
        yield messages(base)
        for kind, (suffix, summary) in _SUMMARIES.items():
            yield kind(base, suffix, f"{base.name}, {summary}")


VARIANTS: Mapping[str, Committer] = {variant.name: variant for variant in _variants()}
"""All variants by name, such as ``magic+messages``."""
