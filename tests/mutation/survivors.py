"""List the mutants that are not caught, with the reasons: a person inspected each of them.

A name without a mutant fails ``make mutants``, and so does a mutant that is neither caught nor listed here.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EQUIVALENT", "REVIEWED"]

_EQUIVALENT: Mapping[str, tuple[str, ...]] = {
    "Equivalent: the remaining condition refuses the same input, or the order of two steps is not observable": (
        "records.cells.contents_of operand 1ffdf2",
        "records.database.Database._transact swap 3b3a51",
        "two_phase.records._read_by_job operand c25a91",
        "two_phase.records._read_marks operand 2e2616",
        "codec.decode_intents operand 9d11da",
        "hadoop.magic.files.open_magic_file operand 7107b2",
        "units.unit_loop._place_of first-left-out acab52",
        "transactions.sqlite.file.connect swap fe8e75",
        "transactions.steps.check_commit swap fe1a94",
        "namespace.operations.content.Truncate.execute swap 9d3363",
    ),
    "Equivalent: one query for all keys, and one for each part of them, give the same": (
        "transactions.sqlite.backend._get_many boundary 73b063",
    ),
    "Equivalent: the keys of all cells begin with the same byte": ("records.splits._middle first-left-out 791474",),
    "Equivalent: a record is deleted that does not exist": (
        "records.cell_transaction.CellTransaction._put boundary 19d290",
    ),
    "Equivalent: the cleared value is not used again, since its owner is discarded": (
        "sinks.UploadSink.discard drop 784dc5",
        "task.TaskAttempt.abort drop f4d053",
    ),
}

_OTHERS: Mapping[str, tuple[str, ...]] = {
    "Only the number of requests, a duration or the precision of a time changes; the result is still correct": (
        "two_phase.decision.read_log_after quantifier 99ada9",
        "two_phase.job.describe_job off-by-one 8d1d95",
        "two_phase.job._roll_forward_with_retries leave-loop c0888c",
        "two_phase.streams._is_announced return-early 91dba6",
        "records.cell_transaction.CellTransaction._left quantifier c289f8",
        "records.splits._survey boundary 1dfc5f",
        "records.splits._survey off-by-one 13f221",
        "transactions.sqlite.ticket_queue.TicketQueue._await boundary 26d4a2",
        "namespace.collector.Collector._collect_garbage off-by-one 70ff4a 2",
        "namespace.object_store.store.NamespaceStore.list_uploads_page operand f76a33",
        "units.execution.UnitExecution.reads_ahead operand 19709f",
        "units.unit._is_immutable return-early 596361",
        "units.work_task.WorkTask._work_on drop 0cc3ac",
        "units.work_task.WorkTask.run swap f6c4c4",
        "transactions.sqlite.connections.Connections.queue operand 690293",
        "transactions.sqlite.backend._scan off-by-one 6fc926",
        "transactions.sqlite.ticket_queue.TicketQueue._await negate 6a9b32",
        "transactions.sqlite.ticket_queue.TicketQueue._await off-by-one 6fc926 3",
        "transactions.sqlite.ticket_queue.TicketQueue._is_first arithmetic 56482e",
        "units.unit_loop.UnitLoop.drain negate 3d243b",
        "units.work_task.WorkTask._work_on boundary 21a638",
        "records.database._put_all last-left-out 90f390",
    ),
    "There is a second safeguard: the next step refuses or finds the same, or the job's cleanup handles it": (
        "intents.Intents._announce swap f7b028",
        "two_phase.pending_uploads._read_job_folders last-left-out f6f6df",
        "layout.iter_job_folders off-by-one 6fc926",
        "namespace.inode._check drop 7e441f",
        "namespace.inode._check drop cbcf45",
    ),
    "A gap: it needs a store that fails or refuses one more call than in any test": (
        "two_phase.pending_uploads.LiveJobs._exists boundary 9bc02d",
    ),
    "After an error, an idle connection to a file that was removed is closed later": (
        "transactions.sqlite.connections.Connections._lent swap 9b8524",
    ),
    "This machine's build of SQLite takes URIs without being asked": (
        "transactions.sqlite.file.connect constant 154929",
    ),
    "A gap: others cut a file between a lost reply and the call that is repeated": (
        "namespace.operations.files.WriteUnderLease._is_done operand a68830",
    ),
    "Only the order in which a report names several problems": ("verification.verify swap 003aea",),
    "A gap: it needs a record that no release writes": ("codec.crc_field boundary 595083",),
    "A gap: it needs two or more of something (stream batches, directories) where tests have one": (
        "two_phase.decision._targets first-left-out 6adfaf",
        "two_phase.decision._conflicts constant 154929",
        "two_phase.pending_uploads.find_uploads first-left-out a3ed93",
    ),
}

EQUIVALENT = frozenset(name for names in _EQUIVALENT.values() for name in names)
"""Mutants that no test can tell from the shipped code: they do not count."""

REVIEWED: Mapping[str, str] = {
    name: reason for reasons in (_EQUIVALENT, _OTHERS) for reason, names in reasons.items() for name in names
}
"""Why each mutant is not caught, by the mutant's name."""
