"""Amazon S3 and compatible servers."""
