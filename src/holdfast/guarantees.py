"""What each committer guarantees: the rows of paper 000, Table V, then C1 to C10, then what a crash does to old data.

Declared here, for people to choose by; the checker explores the committers themselves and compares.
The columns Direct, Stocator, S3A (`magic`, `staging-*`) and EMR of Table V are the paper's own answers; where C1 to C10
ask more precisely than the paper does, the answers there are stricter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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

_STAGING = ("staging-directory", "staging-partitioned")

OR = "; or "
"""Between circumstances of which each is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A committer's answer to a row.

    Attributes:
        holds: the answer.
        unless: when the opposite is true, all the same; empty if never.
        why: one line.
    """

    holds: bool
    unless: str = ""
    why: str

    @property
    def circumstances(self) -> tuple[str, ...]:
        """Those of `unless`, of which each is enough."""
        return tuple(self.unless.split(OR)) if self.unless else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A row.

    Attributes:
        name: short and constant, for programs.
        title: for a table.
        meaning: one sentence.
        wanted: the answer that a user wishes for.
        answers: by name of the committer.
    """

    name: str
    title: str
    meaning: str
    wanted: bool
    answers: Mapping[str, Answer]


def _yes(why: str, unless: str = "") -> Answer:
    return Answer(holds=True, unless=unless, why=why)


def _no(why: str, unless: str = "") -> Answer:
    return Answer(holds=False, unless=unless, why=why)


def _row(
    name: str,
    title: str,
    meaning: str,
    *,
    two_phase: Answer,
    magic: Answer,
    staging: Answer,
    manifest: Answer,
    v1: Answer,
    v2: Answer,
    direct: Answer,
    stocator: Answer,
    emr: Answer,
    wanted: bool = True,
) -> Guarantee:
    answers = {
        "two_phase": two_phase,
        "magic": magic,
        **dict.fromkeys(_STAGING, staging),
        "manifest": manifest,
        "file-v1": v1,
        "file-v2": v2,
        "direct": direct,
        "stocator": stocator,
        "emr": emr,
    }
    return Guarantee(name=name, title=title, meaning=meaning, wanted=wanted, answers=answers)


# Circumstances that reverse an answer; each is shown once, as a note. Those with public names are explored by name.
BOTH_COMMIT = "two attempts at a task commit"
PARTITIONED = "an attempt is cut off during its task commit"
DISPLACED = "an attempt dies or pauses while its commit replaces another attempt's"
IN_TASK_COMMIT = "it is in its task commit"
DIES_UPLOADING = "its process dies: its open uploads remain until the job ends"
UNDONE_BY_HAND = "the files that its abort leaves are not deleted by hand"
STILL_WRITING = "an attempt continues to write while the job commits"
COMMIT_BEGUN = "the job commit had begun"
TWO_DRIVERS = "two drivers, or a slow driver and recovery, end the same job"
OTHER_READERS = "other tools read while the job is being published"
ANOTHER_ENDS = "another job, another driver, or recovery finishes meanwhile"
STAGED = "an attempt dies: files it staged, or named itself, may not be found"
_ALL_UPLOADS = "abort_pending_uploads is on"

_TABLE_V = (
    _row(
        "speculative-tasks",
        "speculative tasks",
        "two attempts at one task may run at the same time",
        two_phase=_yes("each attempt has its own file names, and the commit messages say which attempt counts"),
        magic=_yes("the uploads of an attempt that does not count stay pending"),
        staging=_yes(
            "the files of an attempt that does not count stay on its machine, or its uploads pending",
            unless=BOTH_COMMIT,
        ),
        manifest=_yes("each attempt has its own directory, and one manifest per task remains", unless=BOTH_COMMIT),
        v1=_yes("each attempt has its own directory, and one per task remains", unless=BOTH_COMMIT),
        v2=_yes("each attempt has its own directory until it commits", unless=BOTH_COMMIT),
        direct=_no("both write to the same names"),
        stocator=_yes("names contain the attempt", unless=STILL_WRITING),
        emr=_yes("the uploads of an attempt that does not commit stay pending", unless=BOTH_COMMIT),
    ),
    _row(
        "recoverable-job",
        "recoverable job",
        "a new driver reuses the tasks that a dead driver had committed",
        two_phase=_no("an undecided job is aborted and run again; a decided one can be finished by any process"),
        magic=_no("a new driver starts over; recover handles what the dead one left"),
        staging=_no("a new driver starts over; recover handles what the dead one left"),
        manifest=_no("a new driver starts over; recover handles what the dead one left"),
        v1=_yes("the next attempt at the job reuses the directories of committed tasks"),
        v2=_yes("the output of committed tasks is in place"),
        direct=_no("no record says which tasks had finished"),
        stocator=_no("no record says which tasks had finished"),
        emr=_yes("the output of committed tasks is in place"),
    ),
    _row(
        "abortable-task",
        "abortable task",
        "after an attempt's abort nothing of it is left",
        two_phase=_yes("its output is hidden, under its own names", unless=DIES_UPLOADING),
        magic=_yes("its uploads are aborted", unless=DIES_UPLOADING),
        staging=_yes("its files are on its machine, its uploads are aborted"),
        manifest=_yes("its directory is deleted"),
        v1=_yes("its directory is deleted"),
        v2=_yes("its directory is deleted", unless=IN_TASK_COMMIT),
        direct=_no("its files may have replaced those of another attempt"),
        stocator=_yes("its files are found by their names"),
        emr=_yes("its uploads are aborted", unless=IN_TASK_COMMIT),
    ),
    _row(
        "abortable-job",
        "abortable job",
        "a job that is abandoned can be undone",
        two_phase=_yes("nothing of it is visible before its decision"),
        magic=_yes("nothing of it is visible before its job commit"),
        staging=_yes("nothing of it is visible before its job commit", unless=UNDONE_BY_HAND),
        manifest=_yes("nothing of it is visible before its job commit"),
        v1=_yes("nothing of it is visible before its job commit"),
        v2=_yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
        direct=_yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
        stocator=_yes("its files are deleted by their names"),
        emr=_yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
    ),
    _row(
        "uncommitted-output-observable",
        "uncommitted output seen",
        "readers see the output of an attempt before its task commit has finished",
        wanted=False,
        two_phase=_no("it is a pending upload, or in a hidden directory"),
        magic=_no("it is a pending upload"),
        staging=_no("it is on the task's machine"),
        manifest=_no("it is in a hidden directory"),
        v1=_no("it is in a hidden directory"),
        v2=_no("it is in a hidden directory", unless=IN_TASK_COMMIT),
        direct=_yes("files are written to their final place"),
        stocator=_yes("files are written to their final place"),
        emr=_no("it is a pending upload", unless=IN_TASK_COMMIT),
    ),
    _row(
        "committed-output-observable",
        "committed output seen",
        "readers see the output of committed tasks before the job commit",
        wanted=False,
        two_phase=_no("it stays hidden until the decision"),
        magic=_no("its uploads are completed by the job commit"),
        staging=_no("its uploads are completed by the job commit"),
        manifest=_no("its files are renamed by the job commit"),
        v1=_no("its files are renamed by the job commit"),
        v2=_yes("the task commit renames its files into the destination"),
        direct=_yes("files are written to their final place"),
        stocator=_yes("files are written to their final place"),
        emr=_yes("the task commit completes its uploads"),
    ),
    _row(
        "atomic-task-commit",
        "atomic task commit",
        "a task commit that dies halfway has done everything or nothing",
        two_phase=_yes("it is one put of a manifest"),
        magic=_yes("it is one put of a pending set"),
        staging=_yes("it is one rename of a directory, after the uploads", unless=BOTH_COMMIT),
        manifest=_yes("it is one rename of a manifest", unless=BOTH_COMMIT),
        v1=_yes("it is one rename of a directory", unless=BOTH_COMMIT),
        v2=_no("it renames one file after the other"),
        direct=_yes("there is nothing to do"),
        stocator=_yes("there is nothing to do"),
        emr=_no("it completes one upload after the other"),
    ),
    _row(
        "atomic-job-commit",
        "atomic job commit",
        "a job commit that dies halfway has done everything or nothing, for every reader",
        two_phase=_yes("it is one put of a decision", unless=OTHER_READERS),
        magic=_no("it completes one upload after the other"),
        staging=_no("it completes one upload after the other"),
        manifest=_no("it renames one file after the other"),
        v1=_no("it renames one file after the other"),
        v2=_yes("it is one put of _SUCCESS"),
        direct=_yes("it is one put of _SUCCESS"),
        stocator=_yes("it is one put of _SUCCESS, which names the files"),
        emr=_yes("it is one put of _SUCCESS"),
    ),
    _row(
        "partitioned-executor",
        "partitioned executors",
        "an executor that is cut off and keeps running does no harm",
        two_phase=_yes("the decision names none of its files"),
        magic=_yes("its uploads stay pending", unless=PARTITIONED),
        staging=_yes("its uploads stay pending", unless=PARTITIONED),
        manifest=_yes("its files stay in its directory", unless=PARTITIONED),
        v1=_yes("its files stay in its directory", unless=PARTITIONED),
        v2=_no("its task commit renames into the destination, also after the job's end"),
        direct=_no("it writes into the destination, also after the job's end"),
        stocator=_no("it writes into the destination, also after the job's end"),
        emr=_no("its task commit completes uploads, also after the job's end"),
    ),
)

_LAST_WINS = "of two attempts that commit, the later one counts, even if the driver accepted the other"
_NO_RECORD = "no record says how the job was decided, so commit and abort may both begin"
_APPEARS = "nothing is visible before the job commit, which then publishes one file after the other"
_ENDED = "the job commit deletes its input, so it fails when it is run again"
_EMPTIED = "overwriting empties the destination when the job starts"
_DELETED = "overwriting deletes in the job commit, before the new files exist"
_UNKNOWN = "files are in place and no record says which task or attempt they belong to"

_INVARIANTS = (
    _row(
        "C1",
        "C1 complete",
        "after a job commit the destination holds every file of every committed task, byte for byte",
        two_phase=_yes("the messages name and pin the manifests, and every file is confirmed"),
        magic=_yes("every task has one pending set, replaced in one step"),
        staging=_yes("every task has one pending set", unless=DISPLACED),
        manifest=_yes("a task that has reported but has no manifest fails the job", unless=TWO_DRIVERS),
        v1=_yes("every task has one directory", unless=f"{DISPLACED}{OR}{TWO_DRIVERS}"),
        v2=_no("a cleanup at the same time deletes files that a task commit has not renamed yet, unnoticed"),
        direct=_no("a second attempt replaces files, whether it counts or not"),
        stocator=_yes("names contain the attempt, so none is replaced", unless=TWO_DRIVERS),
        emr=_yes("every committed file is in place", unless=BOTH_COMMIT),
    ),
    _row(
        "C2",
        "C2 exclusive",
        "and nothing from any other attempt",
        two_phase=_yes("only manifests that the messages name are published"),
        magic=_yes("a pending set belongs to one attempt"),
        staging=_yes("a pending set belongs to one attempt"),
        manifest=_yes("a manifest belongs to one attempt"),
        v1=_yes("a directory belongs to one attempt", unless=DISPLACED),
        v2=_no("a task commit that dies leaves files that the next attempt may not replace"),
        direct=_no("an attempt that dies leaves files that the next attempt may not replace"),
        stocator=_yes("the job commit deletes the files of other attempts", unless=STILL_WRITING),
        emr=_no("a task commit that dies leaves files that the next attempt may not replace"),
    ),
    _row(
        "C3",
        "C3 one attempt per task",
        "the attempt whose result the driver received is the one that counts",
        two_phase=_yes("its message names its manifest and pins its bytes"),
        magic=_no(_LAST_WINS),
        staging=_no(_LAST_WINS),
        manifest=_no(_LAST_WINS),
        v1=_no(_LAST_WINS),
        v2=_no("files of two attempts that commit are mixed"),
        direct=_no("files of two attempts are mixed"),
        stocator=_yes("the messages say which attempts' files go into _SUCCESS"),
        emr=_no("files of two attempts that commit are mixed"),
    ),
    _row(
        "C4",
        "C4 hidden",
        "nothing is visible before the decision; through Holdfast all of it at one instant",
        two_phase=_yes("one record switches readers over; other tools see one file after the other once it exists"),
        magic=_no(_APPEARS),
        staging=_no(_APPEARS),
        manifest=_no(_APPEARS),
        v1=_no(_APPEARS),
        v2=_no("files appear with each task commit"),
        direct=_no("files appear while tasks run"),
        stocator=_no("files appear while tasks run"),
        emr=_no("files appear with each task commit"),
    ),
    _row(
        "C5",
        "C5 abortable",
        "after an abort nothing of the job ever appears",
        two_phase=_yes("the abort is in the log, which every driver reads first"),
        magic=_yes("its uploads are aborted and its pending sets deleted", unless=COMMIT_BEGUN),
        staging=_yes("its uploads are aborted and its pending sets deleted", unless=COMMIT_BEGUN),
        manifest=_yes("its directory is deleted", unless=COMMIT_BEGUN),
        v1=_yes("its directory is deleted", unless=COMMIT_BEGUN),
        v2=_no("committed output stays, and a slow task may commit afterwards"),
        direct=_no("a slow task continues to write"),
        stocator=_no("a slow task continues to write"),
        emr=_no("a slow task may commit afterwards"),
    ),
    _row(
        "C6",
        "C6 continuity",
        "after the decision no slow attempt or driver changes the destination",
        two_phase=_yes("names are used once, and the log fences a slow driver"),
        magic=_yes("what a slow attempt uploads stays pending", unless=TWO_DRIVERS),
        staging=_yes("what a slow attempt uploads stays pending", unless=TWO_DRIVERS),
        manifest=_yes("what a slow attempt writes stays in its directory", unless=TWO_DRIVERS),
        v1=_yes("what a slow attempt writes stays hidden", unless=ANOTHER_ENDS),
        v2=_no("a slow task commit renames into the destination"),
        direct=_no("a slow attempt writes into the destination"),
        stocator=_no("a slow attempt writes into the destination"),
        emr=_no("a slow task commit completes its uploads"),
    ),
    _row(
        "C7",
        "C7 isolated",
        "commit, abort and cleanup never touch another job's work",
        two_phase=_yes("cleanup goes by the job in each name and by the job's record"),
        magic=_yes("the names of its directory and uploads contain the job", unless=_ALL_UPLOADS),
        staging=_yes("the names of its directories and uploads contain the job", unless=_ALL_UPLOADS),
        manifest=_yes("the name of its directory contains the job"),
        v1=_no("its cleanup deletes _temporary, including the work of other jobs"),
        v2=_no("its cleanup deletes _temporary, including the work of other jobs"),
        direct=_yes("the names of its files contain the job"),
        stocator=_yes("the names of its files contain the job"),
        emr=_yes("the names of its files and uploads contain the job"),
    ),
    _row(
        "C8",
        "C8 decided once",
        "committed or aborted, permanently, no matter who decides",
        two_phase=_yes("one log, written by put-if-absent"),
        magic=_no(_NO_RECORD),
        staging=_no(_NO_RECORD),
        manifest=_no(_NO_RECORD),
        v1=_no(_NO_RECORD),
        v2=_no(_NO_RECORD),
        direct=_no(_NO_RECORD),
        stocator=_no(_NO_RECORD),
        emr=_no(_NO_RECORD),
    ),
    _row(
        "C9",
        "C9 recoverable",
        "kill any process at any store call: recovery ends with everything or nothing, and no upload remains",
        two_phase=_yes("the log says what was decided, and everything else is repeatable"),
        magic=_yes(
            "pending sets, uploads, and files with the job in their names show how far it came", unless=TWO_DRIVERS
        ),
        staging=_yes("pending sets, uploads and files show how far it came", unless=f"{TWO_DRIVERS}{OR}{STAGED}"),
        manifest=_no("files that a failed job commit has renamed stay, and its abort deletes the manifests"),
        v1=_no("each rename loses where a file was and whose it is"),
        v2=_no(_UNKNOWN),
        direct=_no(_UNKNOWN),
        stocator=_no(_UNKNOWN),
        emr=_no(_UNKNOWN),
    ),
    _row(
        "C10",
        "C10 repeatable",
        "every step can be run again",
        two_phase=_yes("names are used once, and each step finds out what is already done"),
        magic=_no(_ENDED),
        staging=_no(_ENDED),
        manifest=_no(_ENDED),
        v1=_no(_ENDED),
        v2=_no("a task commit that is run again fails, because its files are already renamed"),
        direct=_yes("only the writing itself has an effect", unless=ANOTHER_ENDS),
        stocator=_no("its commit, run again, deletes files that late attempts have added"),
        emr=_no("a task commit that is run again fails, because its uploads are already completed"),
    ),
    _row(
        "replaced-data",
        "replaced data survive",
        "no matter what dies, data that an overwrite replaces exists until its replacement is complete",
        two_phase=_yes("it is deleted after the new files are complete"),
        magic=_no(_EMPTIED),
        staging=_no(_DELETED),
        manifest=_no(_DELETED),
        v1=_no(_EMPTIED),
        v2=_no(_EMPTIED),
        direct=_no(_EMPTIED),
        stocator=_no(_EMPTIED),
        emr=_no(_EMPTIED),
    ),
)

GUARANTEES: tuple[Guarantee, ...] = (*_TABLE_V, *_INVARIANTS)
"""All rows, those of Table V first."""
