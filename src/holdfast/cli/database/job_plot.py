"""Draw what a job of computation units has cost."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import InvalidRequestError
from holdfast.units.report import JobReport, TimeShares

_COLORS = {"functions": "C2", "reads": "C0", "commits": "C1", "rest": "C7"}


def write_plot(report: JobReport, path: Path) -> None:
    """Write a picture: units and conflicts of each task, where its time went, and how long commits took.

    Raises:
        InvalidRequestError: the file cannot be written.
    """
    import matplotlib

    matplotlib.use("agg")  # no display
    from matplotlib import pyplot

    if path.suffix.lower() != ".png":
        raise InvalidRequestError("a plot is a PNG file: let its name end with .png", plot=str(path))
    figure, (units, times, commits) = pyplot.subplots(3, 1, figsize=(9, 10), layout="constrained")
    try:
        numbers = range(len(report.tasks))
        units.bar(numbers, [task.units for task in report.tasks], color="C0", label="units")
        units.bar(numbers, [task.reruns for task in report.tasks], color="C3", width=0.4, label="runs repeated")
        units.set_title(
            f"{report.job}: {report.total.units - report.earlier:,} units, {report.units_per_s:,.0f}/s, "
            f"{report.conflict_share:.1%} of the commits conflicted",
            loc="left",
        )
        units.legend(fontsize=8)
        shares = [TimeShares.of(task) for task in report.tasks]
        bottom = [0.0] * len(shares)
        for name, color in _COLORS.items():
            heights = [getattr(one, name) for one in shares]
            times.bar(numbers, heights, bottom=bottom, color=color, label="other" if name == "rest" else name)
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        times.set_title("where the time of each task went", loc="left")
        times.legend(fontsize=8, ncols=4)
        times.set_xlabel("task")
        steps = report.total.commits.steps()
        if steps:
            commits.bar(
                [low_s * 1000 for low_s, _high_s, _count in steps],
                [count for _low_s, _high_s, count in steps],
                width=[(high_s - low_s) * 1000 for low_s, high_s, _count in steps],
                align="edge",
            )
            commits.set_xscale("log")
        commits.set_title("how long commits took, in milliseconds", loc="left")
        for axis in (units, times, commits):
            axis.grid(alpha=0.3)
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise InvalidRequestError(
            "the plot cannot be written: check its path", plot=str(path), reason=error.strerror
        ) from error
    finally:
        pyplot.close(figure)
