"""Commit a job, and die of SIGKILL before the nth store call: ``python kill_driver.py URL S3_JSON NTH OPERATION``.

The job was started and its tasks are committed; their messages come pickled on standard input.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import TypeVar

from holdfast.commit import COMMITTERS, open_context
from holdfast.runtime import SerialRunner
from holdfast.stores.interceptors import InterceptedStore, StoreCall
from holdfast.stores.s3 import S3Options

T = TypeVar("T")


class Killer:
    """An interceptor that kills this process before its nth call of an operation (``any`` counts every call)."""

    def __init__(self, nth: int, operation: str) -> None:
        self._left = nth
        self._operation = operation

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        if self._operation in ("any", call.operation.value):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return proceed()


def main() -> None:
    url, s3_json, nth, operation = sys.argv[1:]
    s3 = S3Options(**json.loads(s3_json)) if s3_json != "null" else None
    opened = open_context(url, store_options=[s3] if s3 else [])
    ctx = dataclasses.replace(
        opened.with_environment(runner=SerialRunner()),
        store=InterceptedStore(opened.store, Killer(int(nth), operation)),
    )
    job, messages = pickle.load(sys.stdin.buffer)  # from the test that started this process
    COMMITTERS[job.committer].commit_job(ctx, job, messages, len(messages))
    opened.store.close()


if __name__ == "__main__":
    main()
