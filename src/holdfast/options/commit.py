"""Parse the options of a commit, including the options of Hadoop's committers."""

from __future__ import annotations

import re
from dataclasses import replace

from holdfast.commit import CommitSettings, HadoopSettings, get_committer
from holdfast.options.values import MIB, as_boolean, as_directory, as_number, as_place, as_size
from holdfast.stores.given import GivenOptions

_HADOOP_FLAGS = (
    "markSuccessfulJobs",
    "abortPendingUploads",
    "uniqueFilenames",
    "etagsAsText",
    "deleteTargetFiles",
    "validateOutput",
    "cleanupSkipped",
    "cleanupFailuresIgnored",
    "cleanupParallelDelete",
    "cleanupBaseFirst",
)
COMMIT_KEYS = (
    "partSize",
    "logRetention",
    "allowUnfenced",
    "allowUnsafe",
    "scratchDir",
    "sharedDir",
    "reportDir",
    "manifestSaveAttempts",
    *_HADOOP_FLAGS,
)
"""Names of the options that `parse_commit_settings` takes."""


def as_committer(text: str) -> str:
    """Parse the name of a committer."""
    return get_committer(text).name


def parse_commit_settings(given: GivenOptions) -> CommitSettings:
    """Parse the settings of a commit. Options that were not given keep the defaults of `CommitSettings`.

    Raises:
        InvalidRequestError: an option is invalid; the error names the option and the values that it takes.
    """
    defaults, hadoop = CommitSettings(), HadoopSettings()
    part_size = given.take("partSize", lambda text: as_size(text, least=5 * MIB))
    retention = given.take("logRetention", lambda text: as_number(text, 1, 100_000))
    attempts = given.take("manifestSaveAttempts", lambda text: as_number(text, 1, 1000))
    hadoop_flags = {_field(name): flag for name in _HADOOP_FLAGS if (flag := given.take(name, as_boolean)) is not None}
    return CommitSettings(
        part_size_bytes=part_size or defaults.part_size_bytes,
        log_retention_entries=retention or defaults.log_retention_entries,
        allow_unfenced=given.take("allowUnfenced", as_boolean) or False,
        allow_unsafe=given.take("allowUnsafe", as_boolean) or False,
        scratch_dir=given.take("scratchDir", as_directory) or "",
        shared_dir=given.take("sharedDir", as_place) or "",
        report_dir=given.take("reportDir", as_place) or "",
        hadoop=replace(hadoop, **hadoop_flags, manifest_save_attempts=attempts or hadoop.manifest_save_attempts),
    )


def _field(name: str) -> str:
    """Return the field of `HadoopSettings` that an option sets: ``cleanup_skipped`` for ``cleanupSkipped``."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
