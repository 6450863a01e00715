"""Define the circumstances that reverse an answer in the table of guarantees; each becomes a note below the table."""

from __future__ import annotations

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
ALL_UPLOADS = "abort_pending_uploads is on"
