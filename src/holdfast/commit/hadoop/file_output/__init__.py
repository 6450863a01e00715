"""Hadoop's FileOutputCommitter, algorithms 1 and 2 (papers 000 and 001): `file-v1` and `file-v2`."""
