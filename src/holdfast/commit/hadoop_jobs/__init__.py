"""Jobs of Hadoop's own committers that died: found by what they have left, ended only when a person says how.

Hadoop's committers keep no decision and have no fence. What is provable is what paper 001 says of pending sets; what is
not (how many tasks a job had, whether its driver is alive) is told to the person, who has to insist. Interface::

    for found in find_hadoop_jobs(ctx, Resolution.COMMIT): ...        # what there is, and what may be done about each
    end_hadoop_jobs(ctx, report, Foreign(), ...)                # as part of `recover`
    find_upload_owners(ctx, uploads)                            # whose pending uploads are
"""

from holdfast.commit.hadoop_jobs.recovery import describe, end_hadoop_jobs, find_hadoop_jobs, find_upload_owners
from holdfast.commit.hadoop_jobs.values import QUIET_S, Foreign, HadoopJob, HadoopLeftover, Resolution

__all__ = [
    "QUIET_S",
    "Foreign",
    "HadoopJob",
    "HadoopLeftover",
    "Resolution",
    "describe",
    "end_hadoop_jobs",
    "find_hadoop_jobs",
    "find_upload_owners",
]
