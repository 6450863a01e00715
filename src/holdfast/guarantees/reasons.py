"""Define the reasons that several committers' answers in the table of guarantees have in common."""

from __future__ import annotations

LAST_WINS = "of two attempts that commit, the later one counts, even if the driver accepted the other"
NO_RECORD = "no record says how the job was decided, so commit and abort may both begin"
APPEARS = "nothing is visible before the job commit, which then publishes one file after the other"
ENDED = "the job commit deletes its input, so it fails when it is run again"
EMPTIED = "overwriting empties the destination when the job starts"
DELETED = "overwriting deletes in the job commit, before the new files exist"
UNKNOWN = "files are in place and no record says which task or attempt they belong to"
