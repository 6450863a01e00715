"""Report the measurements of committers as tables, a plot and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.committer_runs import CommitterRun, Shape
from benchmarks.measure import machine

__all__ = ["plot_runs", "show_runs", "write_runs"]

_MB = 1e6


def _requests(by_kind: Mapping[str, int]) -> str:
    ranked = sorted(by_kind.items(), key=lambda item: -item[1])
    return ", ".join(f"{kind} {count}" for kind, count in ranked)


def show_runs(runs: Sequence[CommitterRun], shape: Shape, console: Console) -> None:
    """Print one table per environment; the column "requests" shows the job commit's requests per file."""
    for world in dict.fromkeys(run.world for run in runs):
        table = Table(
            title=f"{world}: {shape.tasks} tasks x {shape.files_per_task} files, {shape.threads} threads",
            title_justify="left",
        )
        table.add_column("committer", no_wrap=True)
        for name in ("task commit", "job commit", "clean-up", "requests", "copied"):
            table.add_column(name, justify="right")
        for run in (run for run in runs if run.world == world):
            table.add_row(
                run.committer,
                f"{run.task_commit_s:.2f} s",
                f"{run.job_commit_s:.2f} s",
                f"{run.cleanup_s:.2f} s",
                f"{run.job_requests_per_file(shape):.2f}",
                f"{run.copied_bytes / _MB:.0f} MB",
            )
        console.print(table)
        for run in (run for run in runs if run.world == world):
            what = f"{run.committer}: job commit {_requests(run.job_requests)}; tasks {_requests(run.task_requests)}"
            console.print(f"[dim]{what}[/dim]", highlight=False)


def write_runs(runs: Sequence[CommitterRun], shape: Shape, path: Path) -> None:
    """Write all measurements and the machine as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine(), "shape": asdict(shape), "runs": [asdict(run) for run in runs]}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _clip(axis: Any, runs: Sequence[CommitterRun]) -> None:
    """Cut off a bar that is many times longer than the next one, and write its length beside it."""
    lengths = sorted((run.job_commit_s for run in runs), reverse=True)
    if len(lengths) < 2 or lengths[0] < 3 * lengths[1]:
        return
    edge = 1.5 * max(lengths[1], *(run.task_commit_s for run in runs))
    axis.set_xlim(0, edge)
    row = max(range(len(runs)), key=lambda each: runs[each].job_commit_s)
    label = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axis.text(edge * 0.985, row + 0.2, f"{lengths[0]:.0f} s →", ha="right", va="center", fontsize=8, bbox=label)


def plot_runs(runs: Sequence[CommitterRun], shape: Shape, path: Path) -> None:
    """Plot bars for each environment: the job commit with its clean-up marked, and a task commit beside it."""
    import matplotlib

    matplotlib.use("agg")  # no display
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    worlds = list(dict.fromkeys(run.world for run in runs))
    rows_of = [sum(run.world == world for run in runs) for world in worlds]
    figure, axes = pyplot.subplots(
        len(worlds),
        1,
        figsize=(9, 1.2 + 0.9 * len(worlds) + 0.28 * sum(rows_of)),
        height_ratios=rows_of,
        squeeze=False,
        layout="constrained",
    )
    for axis, world in zip(axes[:, 0], worlds, strict=True):
        shown = [run for run in runs if run.world == world][::-1]
        names = [run.committer for run in shown]
        rows = range(len(shown))
        axis.barh([row + 0.2 for row in rows], [run.job_commit_s - run.cleanup_s for run in shown], 0.38, color="C0")
        axis.barh(
            [row + 0.2 for row in rows],
            [run.cleanup_s for run in shown],
            0.38,
            left=[run.job_commit_s - run.cleanup_s for run in shown],
            color="C9",
        )
        axis.barh([row - 0.2 for row in rows], [run.task_commit_s for run in shown], 0.38, color="C1")
        _clip(axis, shown)
        axis.set_yticks(list(rows), names)
        axis.set_xlabel("seconds")
        axis.set_title(world, loc="left")
        axis.grid(axis="x", alpha=0.3)
    figure.legend(
        handles=[
            Patch(color=color, label=label)
            for color, label in (
                ("C0", "job commit"),
                ("C9", "including clean-up"),
                ("C1", "task commit (median)"),
            )
        ],
        loc="outside upper right",
        ncols=3,
    )
    figure.suptitle(f"{shape.files:,} files of {shape.tasks} tasks", x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
