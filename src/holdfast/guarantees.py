"""Define what committers can guarantee: the rows of the table of guarantees, and the answers that a row can have.

The table has a row for each guarantee and a column for each committer. It helps users choose a committer, and the
checker compares it with what exploration finds. The rows are those of paper 000, Table V, then C1 to C10, and what a
crash does to old data. Each committer declares its own answers (`Committer.guarantees`). Those of Direct, Stocator,
S3A (`magic`, `staging-*`) and EMR to Table V are the paper's; where C1 to C10 are more precise than the paper, their
answers are stricter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# --- answers ----------------------------------------------------------------------------------------------------------
OR = "; or "
"""Separates circumstances in `Answer.unless`, each of which alone reverses the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeAnswer:
    """A statement of whether a committer gives one of the guarantees.

    Attributes:
        holds: whether the committer gives the guarantee in general.
        unless: the circumstances in which the opposite is true, as text; empty if there are none.
        why: the reason, in one line.
    """

    holds: bool
    unless: str = ""
    why: str

    @property
    def circumstances(self) -> tuple[str, ...]:
        """Split `unless` into its parts; each circumstance alone reverses the answer."""
        return tuple(self.unless.split(OR)) if self.unless else ()


def yes(why: str, unless: str = "") -> GuaranteeAnswer:
    """Build the answer that a committer gives a guarantee."""
    return GuaranteeAnswer(holds=True, unless=unless, why=why)


def no(why: str, unless: str = "") -> GuaranteeAnswer:
    """Build the answer that a committer does not give a guarantee."""
    return GuaranteeAnswer(holds=False, unless=unless, why=why)


# --- circumstances that reverse an answer; each becomes a note below the table ----------------------------------------
BOTH_COMMIT = "two attempts at a task commit"
PARTITIONED = "an attempt is cut off during its task commit"
DISPLACED = "an attempt dies or pauses while its commit replaces another attempt's"
IN_TASK_COMMIT = "it is in its task commit"
DIES_UPLOADING = "its process dies: its open uploads remain until the job ends"
UNDONE_BY_HAND = "the files that its abort leaves are not deleted by hand"
STILL_WRITING = "an attempt continues to write while the job commits"
COMMIT_BEGUN = "the job commit had begun"
TWO_DRIVERS = "two drivers, or a slow driver and recovery, end the same job"
OTHER_READERS = "other tools read during publication, on a store without transactions"
ANOTHER_ENDS = "another job, another driver, or recovery finishes meanwhile"
STAGED = "an attempt dies: files it staged, or named itself, may not be found"

# --- reasons that several committers give -----------------------------------------------------------------------------
LAST_WINS = "of two attempts that commit, the later one counts, even if the driver accepted the other"
NO_RECORD = "no record says how the job was decided, so commit and abort may both begin"
APPEARS = "nothing is visible before the job commit, which then publishes one file after the other"
ENDED = "the job commit deletes its input, so it fails when it is run again"
EMPTIED = "overwriting empties the destination when the job starts"
DELETED = "overwriting deletes in the job commit, before the new files exist"
UNKNOWN = "files are in place and no record says which task or attempt they belong to"
STARTS_OVER = "a new driver starts over; recover handles what the dead one left"
NOT_YET_VISIBLE = "nothing of it is visible before its job commit"


# --- answers that several committers give -----------------------------------------------------------------------------
AS_PAPERS: Mapping[str, GuaranteeAnswer] = {
    "abortable-job": yes(NOT_YET_VISIBLE),
    "recoverable-job": no(STARTS_OVER),
    "C3": no(LAST_WINS),
    "C4": no(APPEARS),
    "C8": no(NO_RECORD),
    "C10": no(ENDED),
}
"""The answers of protocols without a decision, whose job commit publishes one file after the other."""


# --- rows -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Guarantee:
    """A guarantee: one row of the table.

    Attributes:
        name: a short name that does not change, for programs.
        title: the heading of the row.
        meaning: a definition in one sentence.
        wanted: the answer that users want.
    """

    name: str
    title: str
    meaning: str
    wanted: bool = True


GUARANTEES = (
    # --- paper 000, Table V ---
    Guarantee("speculative-tasks", "speculative tasks", "two attempts at one task may run at the same time"),
    Guarantee(
        "recoverable-job", "committed tasks reused", "a new driver reuses the tasks that a dead driver had committed"
    ),
    Guarantee("abortable-task", "abortable task", "after an attempt's abort nothing of it is left"),
    Guarantee("abortable-job", "abortable job", "a job that is abandoned can be undone"),
    Guarantee(
        "uncommitted-output-observable",
        "uncommitted output seen",
        "readers see the output of an attempt before its task commit has finished",
        wanted=False,
    ),
    Guarantee(
        "committed-output-observable",
        "committed output seen",
        "readers see the output of committed tasks before the job commit",
        wanted=False,
    ),
    Guarantee(
        "atomic-task-commit", "atomic task commit", "a task commit that dies halfway has done everything or nothing"
    ),
    Guarantee(
        "atomic-job-commit",
        "atomic job commit",
        "a job commit that dies halfway has done everything or nothing, for every reader",
    ),
    Guarantee(
        "partitioned-executor", "partitioned executors", "an executor that is cut off and keeps running does no harm"
    ),
    # --- the invariants ---
    Guarantee(
        "C1",
        "C1 complete",
        "after a job commit the destination holds every file of every committed task, byte for byte",
    ),
    Guarantee("C2", "C2 exclusive", "and nothing from any other attempt"),
    Guarantee("C3", "C3 one attempt per task", "the attempt whose result the driver received is the one that counts"),
    Guarantee("C4", "C4 hidden", "nothing is visible before the decision; through Holdfast all of it at one instant"),
    Guarantee("C5", "C5 abortable", "after an abort nothing of the job ever appears"),
    Guarantee("C6", "C6 continuity", "after the decision no slow attempt or driver changes the destination"),
    Guarantee("C7", "C7 isolated", "commit, abort and cleanup never touch another job's work"),
    Guarantee("C8", "C8 decided once", "committed or aborted, permanently, no matter who decides"),
    Guarantee(
        "C9",
        "C9 recoverable",
        "kill any process at any store call: recovery ends with everything or nothing, and no upload remains",
    ),
    Guarantee("C10", "C10 repeatable", "every step can be run again"),
    Guarantee(
        "replaced-data",
        "replaced data survive",
        "no matter what dies, data that an overwrite replaces exists until its replacement is complete",
    ),
)
"""All rows, those of Table V first."""
