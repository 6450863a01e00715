"""The default committer: one record in a log of decisions commits a job, then its files become visible."""
