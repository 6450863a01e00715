"""Compare all committers on the same job: duration, requests, copied bytes.

    scripts/run python benchmarks/committers.py [--help]

The job has 200 tasks of 5 files each. It runs on an in-memory store that takes 50 ms per request and copies at 10 MB/s
(the paper's figures for S3), and on an S3 server on this machine. Prints tables, and writes the results and a plot to
``benchmarks/results/``. Exits with 0 if every committer ran. docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_results_option
from benchmarks.committer_report import plot_runs, show_runs, write_runs
from benchmarks.committer_runs import FAR_RENAME, FAR_UPLOAD, SERVER, CommitterRun, Shape, World, run_committer
from benchmarks.measure import Say
from holdfast.commit import COMMITTERS
from holdfast_checker.specimens import SPECIMENS

__all__ = ["COMPARED", "main", "measure_committers"]

COMPARED = {**COMMITTERS, **SPECIMENS}


def measure_committers(shape: Shape, worlds: Sequence[World], say: Say, only: Sequence[str] = ()) -> list[CommitterRun]:
    """Run every committer on every store that it supports; each run checks that exactly the job's files are visible.

    Args:
        shape: the job.
        worlds: the stores.
        say: reports progress.
        only: the names of the committers to run; empty for all.
    """
    runs: list[CommitterRun] = []
    for world in worlds:
        with world.opened() as place:
            for committer in COMPARED.values():
                if only and committer.name not in only:
                    continue
                if world.fits(committer, place.capabilities):
                    run = run_committer(committer, world, place, shape)
                    say(f"  {world.name}: {committer.name} job commit {run.job_commit_s:.2f} s")
                    runs.append(run)
    return runs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure every committer on the same job.")
    parser.add_argument("--tasks", type=int, default=200, help="number of tasks (%(default)s)")
    parser.add_argument("--files", type=int, default=5, help="files per task (%(default)s)")
    parser.add_argument("--file-kib", type=int, default=64, help="file size in KiB (%(default)s)")
    parser.add_argument("--threads", type=int, default=32, help="driver threads (%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=50, help="latency of the in-memory store (%(default)s)")
    parser.add_argument(
        "--only", action="append", default=[], choices=list(COMPARED), metavar="COMMITTER", help="run only this one"
    )
    parser.add_argument(
        "--world", action="append", choices=["far", "server"], help="far: in-memory, server: local S3 server (both)"
    )
    add_results_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark with the given arguments, or with those of the process."""
    arguments = _parser().parse_args(argv)
    console = Console()
    shape = Shape(
        tasks=arguments.tasks,
        files_per_task=arguments.files,
        file_bytes=arguments.file_kib * 1024,
        threads=arguments.threads,
    )
    far = [replace(world, request_s=arguments.latency_ms / 1000) for world in (FAR_UPLOAD, FAR_RENAME)]
    chosen = arguments.world or ["far", "server"]
    worlds = [*(far if "far" in chosen else []), *([SERVER] if "server" in chosen else [])]
    runs = measure_committers(shape, worlds, lambda line: console.print(line, highlight=False), arguments.only)
    write_runs(runs, shape, arguments.results / "committers.json")
    plot_runs(runs, shape, arguments.results / "committers.png")
    show_runs(runs, shape, console)
    console.print(f"[dim]plot: {arguments.results / 'committers.png'}[/dim]", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
