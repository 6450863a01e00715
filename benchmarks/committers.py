"""Every committer on the same job: where its time goes, what it asks of the store, what it copies.

    scripts/run python benchmarks/committers.py [--help]

200 tasks of 5 files each, on a store in memory that answers every request after 50 ms and copies at 10 MB/s (the
paper's figures of S3), and on an S3 server of this machine. Prints a table, leaves the numbers and a plot in
``benchmarks/results/``. Exits 0 if every committer ran; docs/explanation/benchmarks.md says how to read the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, Python looks beside it only

from benchmarks.committer_report import plot_runs, show_runs, write_runs
from benchmarks.committer_runs import FAR_RENAME, FAR_UPLOAD, SERVER, CommitterRun, Shape, World, run_committer
from benchmarks.measure import Say
from holdfast.commit import COMMITTERS

__all__ = ["main", "measure_committers"]

_RESULTS = Path(__file__).resolve().parent / "results"


def measure_committers(shape: Shape, worlds: Sequence[World], say: Say, only: Sequence[str] = ()) -> list[CommitterRun]:
    """Run every committer in every world whose store it runs on; each checks that exactly the job's files are there.

    Args:
        only: names of committers; empty for all.
    """
    runs: list[CommitterRun] = []
    for world in worlds:
        with world.opened() as place:
            for committer in COMMITTERS.values():
                if only and committer.name not in only:
                    continue
                if world.fits(committer, place.capabilities):
                    run = run_committer(committer, world, place, shape)
                    say(f"  {world.name}: {committer.name} job commit {run.job_commit_s:.2f} s")
                    runs.append(run)
    return runs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure every committer on the same job.")
    parser.add_argument("--tasks", type=int, default=200, help="tasks of the job (%(default)s)")
    parser.add_argument("--files", type=int, default=5, help="files of a task (%(default)s)")
    parser.add_argument("--file-kib", type=int, default=64, help="size of a file in KiB (%(default)s)")
    parser.add_argument("--threads", type=int, default=32, help="threads of the driver (%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=50, help="of the store in memory (%(default)s)")
    parser.add_argument("--only", action="append", default=[], choices=list(COMMITTERS), metavar="COMMITTER")
    parser.add_argument("--world", action="append", choices=["far", "server"], help="far, server (both)")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="folder for numbers and plot")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for (None: the process's own)."""
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
