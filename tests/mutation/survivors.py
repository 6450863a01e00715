"""Mutants that are not caught, and why: each was looked at.

A name that fits nothing any more fails ``make mutants``, and so does a mutant that is not caught and not here.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EQUIVALENT", "REVIEWED"]

_EQUIVALENT: Mapping[str, tuple[str, ...]] = {
    "Equivalent: the remaining condition refuses the same input, or the order of two checks is not observable": (
        "codec._read_by_job operand c25a91",
        "codec._read_job swap bf40a8",
        "codec.decode_intents operand 9d11da",
        "classic.magic_file.open_magic_file operand 7107b2",
    ),
    "Equivalent: both records come before the decision is marked done, and a crash between them repeats both": (
        "finish.finish_decision swap 45ea31",
    ),
    "Equivalent: it is never called with an abort entry, since an abort has no write to remember": (
        "write_ids.remember_write operand 5968c4",
    ),
    "Equivalent: manifests never mention the top directory, which gives the same answer": (
        "classic.manifest_rename._may_be_taken operand 8d661e",
    ),
    "Equivalent: the cleared value is not used again, since its owner is discarded": (
        "sinks.UploadSink.discard drop 784dc5",
        "task.TaskAttempt.abort drop f4d053",
    ),
}

_OTHERS: Mapping[str, tuple[str, ...]] = {
    "Only the number of requests, a duration or the precision of a time changes; the result is still correct": (
        "classic.manifest_rename._rename_file drop 2ccd1e",
        "classic.manifest_task._probe_directories off-by-one 6fc926 3",
        "job.describe_job off-by-one 8d1d95",
        "job._finish leave-loop c0888c",
        "stream_jobs._is_announced return-early 91dba6",
    ),
    "There is a second safeguard: the next step refuses or finds the same, or the job's cleanup handles it": (
        "classic.file_recovery._note operand 9bd706",
        "classic.judge._decide operand 663f4c",
        "intents.Intents._announce swap f7b028",
        "layout.iter_job_folders off-by-one 6fc926",
    ),
    "A gap: it needs a store that fails or refuses one more call than in any test": (
        "alive.OverJobs._exists boundary 9bc02d",
        "classic.manifest_recovery._go_forward constant 30a882 2",
        "classic.staging._delete_scratch unhandled b16440",
    ),
    "A gap: it needs two or more of something (stream batches, directories, dead Hadoop jobs) where tests have one": (
        "decision._targets first-left-out 6adfaf",
        "hadoop_jobs.s3a_jobs._note_magic constant 154929",
        "helping._touches constant 154929",
        "pending_uploads.find_uploads first-left-out a3ed93",
    ),
    "A gap: a crash of log trimming between marks and entries, which no test continues from": (
        "log.trim_log swap 8cba86",
    ),
    "A gap: a scratch directory whose name looks like a scheme with one slash": ("open._scratch slash 53539f",),
}

EQUIVALENT = frozenset(name for names in _EQUIVALENT.values() for name in names)
"""Mutants that no test can tell from the shipped code: they do not count."""

REVIEWED: Mapping[str, str] = {
    name: reason for reasons in (_EQUIVALENT, _OTHERS) for reason, names in reasons.items() for name in names
}
"""By name of the mutant, why it is not caught."""
