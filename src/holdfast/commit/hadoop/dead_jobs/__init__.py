"""Find and abort dead jobs of Hadoop's own committers. A user decides whether a job is dead.

Hadoop's committers log no decision and have no fencing, so whether a job's driver is alive cannot be proved.
"""
