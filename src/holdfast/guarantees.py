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


# When the answers turn round; each is shown once, as a note. Those with public names are explored by name.
BOTH_COMMIT = "two attempts at a task commit"
PARTITIONED = "an attempt is partitioned in task commit"
DISPLACED = "an attempt dies or pauses while its commit replaces another attempt's"
IN_TASK_COMMIT = "it is in its task commit"
DIES_UPLOADING = "its process dies: what it was uploading waits for the job's end"
UNDONE_BY_HAND = "nobody deletes what its abort leaves"
STILL_WRITING = "an attempt writes on while the job commits"
COMMIT_BEGUN = "the job commit had begun"
TWO_DRIVERS = "two drivers, or a slow one and recovery, end the same job"
OTHER_READERS = "other tools read while the job is being published"
ANOTHER_ENDS = "another job, another driver of this one, or recovery ends meanwhile"
STAGED = "an attempt dies: what it staged, or named itself, is not all found"
_ALL_UPLOADS = "abort_pending_uploads is on"

_TABLE_V = (
    _row(
        "speculative-tasks",
        "speculative tasks",
        "two attempts at one task may run side by side",
        two_phase=_yes("attempts write under names of their own, and the driver's messages say which one counts"),
        magic=_yes("the uploads of an attempt that does not count stay pending"),
        staging=_yes(
            "the files of an attempt that does not count stay on its machine, or its uploads pending",
            unless=BOTH_COMMIT,
        ),
        manifest=_yes("attempts have directories of their own, and one manifest a task is left", unless=BOTH_COMMIT),
        v1=_yes("attempts have directories of their own, and one a task is left", unless=BOTH_COMMIT),
        v2=_yes("attempts have directories of their own until they commit", unless=BOTH_COMMIT),
        direct=_no("both write to the same names"),
        stocator=_yes("names carry the attempt", unless=STILL_WRITING),
        emr=_yes("the uploads of an attempt that does not commit stay pending", unless=BOTH_COMMIT),
    ),
    _row(
        "recoverable-job",
        "recoverable job",
        "a new driver goes on with the tasks that a dead one had committed",
        two_phase=_no("an undecided job is aborted and run again; a decided one is finished by anybody"),
        magic=_no("a new driver starts over; what the dead one left is for recover"),
        staging=_no("a new driver starts over; what the dead one left is for recover"),
        manifest=_no("a new driver starts over; what the dead one left is for recover"),
        v1=_yes("the next attempt at the job takes over the directories of committed tasks"),
        v2=_yes("what committed tasks wrote is in place"),
        direct=_no("nobody knows which tasks had ended"),
        stocator=_no("nobody knows which tasks had ended"),
        emr=_yes("what committed tasks wrote is in place"),
    ),
    _row(
        "abortable-task",
        "abortable task",
        "after its abort nothing of an attempt is left",
        two_phase=_yes("what it wrote is hidden, under names of its own", unless=DIES_UPLOADING),
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
        "a job that is given up can be undone",
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
        "readers meet what an attempt writes before its task commit has ended",
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
        "readers meet the output of committed tasks before the job commit",
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
        "a task commit that dies half way has done all or nothing",
        two_phase=_yes("it is one put of a manifest"),
        magic=_yes("it is one put of a pending set"),
        staging=_yes("it is one rename of a directory, behind the uploads", unless=BOTH_COMMIT),
        manifest=_yes("it is one rename of a manifest", unless=BOTH_COMMIT),
        v1=_yes("it is one rename of a directory", unless=BOTH_COMMIT),
        v2=_no("it renames file by file"),
        direct=_yes("there is nothing to do"),
        stocator=_yes("there is nothing to do"),
        emr=_no("it completes upload by upload"),
    ),
    _row(
        "atomic-job-commit",
        "atomic job commit",
        "a job commit that dies half way has done all or nothing, to whoever reads",
        two_phase=_yes("it is one put of a decision", unless=OTHER_READERS),
        magic=_no("it completes upload by upload"),
        staging=_no("it completes upload by upload"),
        manifest=_no("it renames file by file"),
        v1=_no("it renames file by file"),
        v2=_yes("it is one put of _SUCCESS"),
        direct=_yes("it is one put of _SUCCESS"),
        stocator=_yes("it is one put of _SUCCESS, which names the files"),
        emr=_yes("it is one put of _SUCCESS"),
    ),
    _row(
        "partitioned-executor",
        "partitioned executors",
        "an executor that is cut off and goes on does no harm",
        two_phase=_yes("nothing that it writes is named by the decision"),
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

_LAST_WINS = "of two attempts that commit, the later one counts, whichever the driver heard of"
_NO_RECORD = "no record says how the job was decided: commit and abort may both begin"
_APPEARS = "nothing is there before the job commit, which then shows one file after the other"
_ENDED = "the job commit finds its input gone when it is run again after its end"
_EMPTIED = "overwriting empties the destination when the job starts"
_DELETED = "overwriting deletes in the job commit, before the new files are there"
_UNKNOWN = "files are in place while nothing says which tasks or attempts they are of"

_INVARIANTS = (
    _row(
        "C1",
        "C1 complete",
        "after a job commit the destination holds every file of every committed task, byte for byte",
        two_phase=_yes("manifests are named and pinned by the messages, every file is settled"),
        magic=_yes("every task has one pending set, replaced in one step"),
        staging=_yes("every task has one pending set", unless=DISPLACED),
        manifest=_yes("a task that has reported and has no manifest fails the job", unless=TWO_DRIVERS),
        v1=_yes("every task has one directory", unless=f"{DISPLACED}{OR}{TWO_DRIVERS}"),
        v2=_no("who cleans up meanwhile takes away what a task commit has not renamed yet, and it does not notice"),
        direct=_no("a second attempt replaces files, whether it counts or not"),
        stocator=_yes("names carry the attempt, so that none is replaced", unless=TWO_DRIVERS),
        emr=_yes("every committed file is in place", unless=BOTH_COMMIT),
    ),
    _row(
        "C2",
        "C2 exclusive",
        "and nothing from any other attempt",
        two_phase=_yes("only manifests that the messages name are published"),
        magic=_yes("a pending set is of one attempt"),
        staging=_yes("a pending set is of one attempt"),
        manifest=_yes("a manifest is of one attempt"),
        v1=_yes("a directory is of one attempt", unless=DISPLACED),
        v2=_no("a task commit that died leaves files that its repetition need not replace"),
        direct=_no("an attempt that died leaves files that its repetition need not replace"),
        stocator=_yes("the job commit deletes what other attempts have written", unless=STILL_WRITING),
        emr=_no("a task commit that died leaves files that its repetition need not replace"),
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
        two_phase=_yes("the switch is one record; other tools see file after file once it is there"),
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
        two_phase=_yes("the abort is in the log, where every driver looks first"),
        magic=_yes("its uploads are aborted and its pending sets deleted", unless=COMMIT_BEGUN),
        staging=_yes("its uploads are aborted and its pending sets deleted", unless=COMMIT_BEGUN),
        manifest=_yes("its directory is deleted", unless=COMMIT_BEGUN),
        v1=_yes("its directory is deleted", unless=COMMIT_BEGUN),
        v2=_no("what was committed stays, and a slow task may commit afterwards"),
        direct=_no("a slow task writes on"),
        stocator=_no("a slow task writes on"),
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
        "commit, abort and clean-up never touch another job's work",
        two_phase=_yes("sweeps go by the job in the name and by its record"),
        magic=_yes("its directory and its uploads carry the job", unless=_ALL_UPLOADS),
        staging=_yes("its directories and its uploads carry the job", unless=_ALL_UPLOADS),
        manifest=_yes("its directory carries the job"),
        v1=_no("its clean-up deletes _temporary, with what other jobs have there"),
        v2=_no("its clean-up deletes _temporary, with what other jobs have there"),
        direct=_yes("its files carry the job"),
        stocator=_yes("its files carry the job"),
        emr=_yes("its files and uploads carry the job"),
    ),
    _row(
        "C8",
        "C8 decided once",
        "committed or aborted, for ever, whoever decides",
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
        "kill any process at any store call: recovery ends with all or nothing, and no upload remains",
        two_phase=_yes("the log says what was decided, the rest is repeatable"),
        magic=_yes("pending sets, uploads, and files whose names tell the job say how far it came", unless=TWO_DRIVERS),
        staging=_yes("pending sets, uploads and files say how far it came", unless=f"{TWO_DRIVERS}{OR}{STAGED}"),
        manifest=_no("what a job commit that failed has renamed stays, and its abort deletes the manifests"),
        v1=_no("what a file's place was, and whose, is lost with each rename"),
        v2=_no(_UNKNOWN),
        direct=_no(_UNKNOWN),
        stocator=_no(_UNKNOWN),
        emr=_no(_UNKNOWN),
    ),
    _row(
        "C10",
        "C10 repeatable",
        "every step can be run again",
        two_phase=_yes("names are used once, each step finds out what is done"),
        magic=_no(_ENDED),
        staging=_no(_ENDED),
        manifest=_no(_ENDED),
        v1=_no(_ENDED),
        v2=_no("a task commit finds renamed files gone when it is run again"),
        direct=_yes("no step but the writing itself does anything", unless=ANOTHER_ENDS),
        stocator=_no("its commit, run again, deletes what late attempts have added"),
        emr=_no("a task commit finds completed uploads gone when it is run again"),
    ),
    _row(
        "replaced-data",
        "replaced data survive",
        "whatever dies: data that an overwrite replaces are there until their replacement is complete",
        two_phase=_yes("they are deleted after the new files are complete"),
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
