"""Find and recover dead jobs of Hadoop's own committers. A user decides how each job ends.

Hadoop's committers log no decision and have no fencing. Paper 001 says which facts can be proved from pending sets.
Facts that cannot be proved (a job's number of tasks, whether its driver is alive) are reported to the user, who must
confirm the risk.
"""
