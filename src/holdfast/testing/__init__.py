"""Embedded S3 servers for the demo and for tests, the caller's own tests included."""
