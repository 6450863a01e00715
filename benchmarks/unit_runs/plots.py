"""Draw the results: units per second by workers, and the shares of jobs in Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Result

__all__ = ["plot"]

_PEERS = {"naive": "C7", "serializable": "C3", "for update": "C6"}
_PARTS = {"Spark": "C1", "functions": "C4", "client": "C0", "network": "C7", "database": "C2"}


def plot(results: Sequence[Result], path: Path) -> None:
    """Draw one panel for each table of rates, and one for the shares."""
    import matplotlib

    matplotlib.use("agg")  # no display
    from matplotlib import pyplot

    rates = [one for one in results if one.settings["experiment"] == "rates" and one.details]
    shares = [one for one in results if one.settings["experiment"] == "shares"]
    panels = len(rates) + len(shares)
    if not panels:
        return
    height = -(-panels // 2)
    figure, axes = pyplot.subplots(height, 2, figsize=(11, 3.4 * height), squeeze=False, layout="constrained")
    for axis in axes.flat[panels:]:
        axis.set_axis_off()
    for axis, result in zip(axes.flat, rates, strict=False):
        _rates(axis, result)
    for axis, result in zip(axes.flat[len(rates) :], shares, strict=False):
        _shares(axis, result)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def _rates(axis: Any, result: Result) -> None:
    cells: Sequence[Mapping[str, Any]] = result.details["cells"]  # type: ignore[assignment]  # written by `as_dict`
    for variant in dict.fromkeys(one["variant"] for one in cells):
        chosen = [one for one in cells if one["variant"] == variant]
        axis.plot(
            [one["workers"] for one in chosen],
            [one["rate"] for one in chosen],
            ":" if variant in _PEERS else "-",
            color=_PEERS.get(variant),
            marker=".",
            label=variant,
        )
    counts = sorted({one["workers"] for one in cells})
    axis.set_xscale("log", base=2)
    axis.set_xticks(counts, labels=map(str, counts))
    axis.set_yscale("log")
    axis.grid(alpha=0.3)
    network = str(result.settings["network"]).partition(",")[0]
    axis.set_title(
        f"units per second by workers: {result.settings['database']}, {network}, {result.settings['workload']}",
        loc="left",
        fontsize=8,
    )
    axis.legend(fontsize=6, ncols=2)


def _shares(axis: Any, result: Result) -> None:
    rows: Sequence[Mapping[str, Any]] = result.details["rows"]  # type: ignore[assignment]  # written by `as_dict`
    labels = [row["variant"] for row in rows]
    left = [0.0] * len(rows)
    for part, color in _PARTS.items():
        widths = [row["shares"][part] for row in rows]
        axis.barh(labels, widths, left=left, color=color, label=part)
        left = [one + width for one, width in zip(left, widths, strict=True)]
    axis.invert_yaxis()
    axis.set_title(f"shares of a job in Spark: {result.settings['database']}", loc="left", fontsize=8)
    axis.legend(fontsize=6, ncols=len(_PARTS))
