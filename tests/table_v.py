"""Table V of paper 000, as printed."""

from __future__ import annotations

__all__ = ["TABLE_V"]

TABLE_V = {
    "speculative-tasks": (False, True, True, True),
    "recoverable-job": (False, False, False, True),
    "abortable-task": (False, True, True, True),
    "abortable-job": (True, True, True, True),
    "uncommitted-output-observable": (True, True, False, False),
    "committed-output-observable": (True, True, False, True),
    "atomic-task-commit": (True, True, True, False),
    "atomic-job-commit": (True, True, False, True),
    "partitioned-executor": (False, False, True, False),
}
"""Attribute -> what Direct, Stocator, S3A (magic and staging-*) and EMR have."""
