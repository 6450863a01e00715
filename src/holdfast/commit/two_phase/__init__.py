"""Commit a job by one entry in the decision log, then make its files visible: the default committer."""
