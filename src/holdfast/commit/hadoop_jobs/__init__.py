"""Find and recover dead jobs of Hadoop's own committers. A user decides how each job ends.

Hadoop's committers log no decision and have no fencing. Paper 001 says which facts can be proved from pending sets.
Facts that cannot be proved (a job's number of tasks, whether its driver is alive) are reported to the user, who must
confirm the risk. Interface::

    for found in find_hadoop_jobs(ctx, Resolution.COMMIT): ...  # the jobs, and the recovery action of each
    end_hadoop_jobs(ctx, report, ForeignJobPolicy(), ...)       # part of `recover`
    find_upload_owners(ctx, uploads)                            # the job to which each pending upload belongs
"""

from holdfast.commit.hadoop_jobs.hadoop_job import QUIET_S, ForeignJobPolicy, HadoopJob, HadoopLeftover, Resolution
from holdfast.commit.hadoop_jobs.recovery import describe, end_hadoop_jobs, find_hadoop_jobs, find_upload_owners

__all__ = [
    "QUIET_S",
    "ForeignJobPolicy",
    "HadoopJob",
    "HadoopLeftover",
    "Resolution",
    "describe",
    "end_hadoop_jobs",
    "find_hadoop_jobs",
    "find_upload_owners",
]
