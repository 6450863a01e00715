"""Record the papers' answers, and why the answers of exploration or Holdfast's declarations differ from them."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast_checker.committers.table_v.attributes import ATTRIBUTES

# Paper 000, Table V, column by column.
_DIRECT = (False, False, False, True, True, True, True, True, False)
_STOCATOR = (True, False, True, True, True, True, True, True, False)
_S3A = (True, False, True, True, False, False, True, False, True)
_EMR = (True, True, True, True, False, True, False, True, False)

# What the text says about committers that are not in the table; None where it says nothing.
_FILE_V1 = (
    None,
    True,  # 000 III.B: a second job attempt can reuse the output of all committed tasks
    True,  # 000 III.B: aborted by deleting its attempt path
    True,  # 000 III.B: cleaned up by deleting the output of all job attempts
    False,  # 000 III.B: what starts with "_" is not visible
    False,  # 002: all is renamed into the destination in the job commit
    True,  # 000 III: "an atomic task commit"
    False,  # 000 X: "itself non-atomic in job commit"
    True,  # 000 IV: its task commit can be repeated, even if the first attempt has become partitioned
)
_FILE_V2 = (
    None,
    None,
    None,
    None,  # 000 III.C and 002: what is committed stays visible, as with EMR, for which Table V says True
    None,
    True,  # 000 III: "intermediate work is visible"
    False,  # 000 III.C: "now a non-atomic operation"
    None,
    False,  # 002, "Why the V2 committer is incorrect/unsafe"
)
_MANIFEST = (
    None,
    False,  # 002: "targets Spark, where there is no attempt at recovery"
    None,
    None,
    None,
    None,
    True,  # 002: "provides an atomic task commit"
    None,
    None,
)
_COLUMNS: Mapping[str, tuple[bool | None, ...]] = {
    "magic": _S3A,
    "staging-directory": _S3A,
    "staging-partitioned": _S3A,
    "manifest": _MANIFEST,
    "file-v1": _FILE_V1,
    "file-v2": _FILE_V2,
    "direct": _DIRECT,
    "stocator": _STOCATOR,
    "emr": _EMR,
}


def paper_answer(committer: str, row: str) -> bool | None:
    """Return the answer of papers 000 and 002; None if they give none, or if the row is not in Table V."""
    column = _COLUMNS.get(committer)
    return None if column is None else dict(zip(ATTRIBUTES, column, strict=True)).get(row)


_STAGING_PARTITIONED = (
    "The pending sets pass through file-v1's task commit, which deletes what another attempt has committed before it "
    "renames its own: a job commit between the two finds no set of the task and does not notice. The paper derives "
    "resilience from v1 (VIII.B) and considers only complete commits."
)

REASONS: Mapping[tuple[str, str], str] = {
    ("magic", "recoverable-job"): (
        "The paper reports what its committers declare: they support no recovery, so the job starts over. The pending "
        "sets of committed tasks still exist, and a driver that continues the same job finds them; nothing in Holdfast "
        "does so, as declared."
    ),
    ("staging-directory", "partitioned-executor"): _STAGING_PARTITIONED,
    ("staging-partitioned", "partitioned-executor"): _STAGING_PARTITIONED,
    ("file-v1", "partitioned-executor"): (
        "An attempt that was cut off during its task commit deletes the directory that another attempt has committed, "
        "before it renames its own; a job commit between the two misses the task and does not notice. The paper "
        "considers only complete task commits, which can be repeated (IV.1)."
    ),
}
"""Why an answer differs from the paper's or the declared one, by committer and row, in one or two sentences."""
