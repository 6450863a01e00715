"""Mutants that are not caught, and why: each was looked at.

A name that fits nothing any more fails ``make mutants``, and so does a mutant that is not caught and not here.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EQUIVALENT", "REVIEWED"]

_EQUIVALENT: Mapping[str, tuple[str, ...]] = {
    "The same program: what is left of the condition refuses the same, or the order of two checks cannot be seen": (
        "codec._read_by_job operand c25a91",
        "codec._read_job swap bf40a8",
        "codec.decode_intents operand 9d11da",
        "classic.magic_file.open_magic_file operand 7107b2",
    ),
    "The same program: both records come before the decision is marked done, and a crash between them repeats both": (
        "finish.finish_decision swap 45ea31",
    ),
    "The same program: nobody calls it with an entry that aborts, since an abort has no write to remember": (
        "write_ids.remember_write operand 5968c4",
    ),
    "The same program: of the top directory manifests say nothing, which is the same answer": (
        "classic.manifest_rename._may_be_taken operand 8d661e",
    ),
    "The same program: what is forgotten a moment earlier is not used again, the object that holds it goes": (
        "sinks.UploadSink.discard drop 784dc5",
        "task.TaskAttempt.abort drop f4d053",
    ),
}

_OTHERS: Mapping[str, tuple[str, ...]] = {
    "Only requests, time or digits of a time: the answer stays right": (
        "classic.manifest_rename._rename_file drop 2ccd1e",
        "classic.manifest_task._probe_directories off-by-one 6fc926 3",
        "job.describe_job off-by-one 8d1d95",
        "job._finish leave-loop c0888c",
        "stream_jobs._is_announced return-early 91dba6",
    ),
    "A second precaution stands behind it: the next step refuses or finds the same, or the job's end sweeps": (
        "classic.file_recovery._note operand 9bd706",
        "classic.judge._decide operand 663f4c",
        "intents.Intents._announce swap f7b028",
        "layout.iter_job_folders off-by-one 6fc926",
    ),
    "A gap: it takes a store that fails or denies at one call more than any test asks for": (
        "alive.OverJobs._exists boundary 9bc02d",
        "classic.manifest_recovery._go_forward constant 30a882 2",
        "classic.staging._delete_scratch unhandled b16440",
    ),
    "A gap: of what it takes two or more (batches of a stream, directories, dead jobs of Hadoop) tests ask for one": (
        "decision._targets first-left-out 6adfaf",
        "hadoop_jobs.set_jobs._note_magic constant 154929",
        "helping._touches constant 154929",
        "pending_uploads.find_uploads first-left-out a3ed93",
    ),
    "A gap: trimming of the log dies between marks and entries, which no test looks at from there on": (
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
