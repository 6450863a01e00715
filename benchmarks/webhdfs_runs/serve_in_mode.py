"""Serve a namespace in a mode of the benchmark: ``python -m benchmarks.webhdfs_runs.serve_in_mode MODE serve NAME …``.

Without shared commits, requests are carried out one by one, too.
"""

from __future__ import annotations

import functools
import sys

from benchmarks.namespace_runs.worker import open_in_mode
from holdfast.cli import main as run_command
from holdfast.webhdfs import application, server

__all__ = ["main"]


def main() -> None:
    """Serve until a signal ends it."""
    mode, *arguments = sys.argv[1:]
    if mode != "grouped":
        vars(server)["open_namespace"] = functools.partial(open_in_mode, mode)
        application._TOGETHER = application._CHANGED_TOGETHER = frozenset()
    sys.argv[1:] = ["namespace", *arguments]
    run_command()


if __name__ == "__main__":
    main()
