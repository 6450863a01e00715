"""Draw the results: rates by mode, growth, and the peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Result

__all__ = ["plot"]

_COLORS = {"global": "C7", "pessimistic": "C1", "optimistic": "C0", "grouped": "C2"}


def plot(results: Sequence[Result], path: Path) -> None:
    """Draw one panel for each kind of result that there is."""
    import matplotlib

    matplotlib.use("agg")  # no display
    from matplotlib import pyplot

    drawn = [(draw, found) for draw, found in ((draw, _of(results, name)) for name, draw in _PANELS.items()) if found]
    if not drawn:
        return
    figure, axes = pyplot.subplots(len(drawn), 1, figsize=(9, 3.4 * len(drawn)), squeeze=False, layout="constrained")
    for axis, (draw, found) in zip(axes[:, 0], drawn, strict=True):
        draw(axis, found)
        axis.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _of(results: Sequence[Result], name: str) -> list[Result]:
    experiment, _, by = name.partition(" ")
    return [
        one
        for one in results
        if one.settings["experiment"] == experiment and one.details and by in ("", one.settings.get("by"))
    ]


def _rates(axis: Any, results: Sequence[Result]) -> None:
    """Draw bars for the layouts of each database, one bar for each mode."""
    labels: list[str] = []
    for result in results:
        cells: Sequence[Mapping[str, Any]] = result.details["cells"]  # type: ignore[assignment]  # written by `as_dict`
        usual = next(one["label"] for one in cells)
        layouts = list(dict.fromkeys(one["layout"] for one in cells))
        for layout in layouts:
            for number, one in enumerate(one for one in cells if (one["layout"], one["label"]) == (layout, usual)):
                place = len(labels) + 0.2 * (number - 1.5)
                axis.bar(place, one["rate"], 0.2, color=_COLORS[one["mode"]])
                axis.text(place, one["rate"], f"{one['rate']:,.0f}", rotation=90, fontsize=6, ha="center", va="bottom")
            is_middle = layout == layouts[len(layouts) // 2]
            labels.append(f"{layout}\n{result.settings['database']}" if is_middle else layout)
    axis.set_xticks(range(len(labels)), labels, fontsize=7)
    axis.set_yscale("log")
    axis.margins(y=0.2)
    axis.set_title("directories per second in one directory, by processes x threads", loc="left")
    handles = [axis.bar(0, 0, 0, color=color, label=mode) for mode, color in _COLORS.items()]
    axis.legend(handles=handles, fontsize=7, ncols=4)


def _entries(axis: Any, results: Sequence[Result]) -> None:
    _lines(axis, results)
    axis.set_xscale("log")
    axis.set_title("microseconds of an operation, by entries of the directory, one client", loc="left")


def _depths(axis: Any, results: Sequence[Result]) -> None:
    _lines(axis, results)
    axis.set_title("microseconds of an operation, by depth of the path, one client", loc="left")


def _lines(axis: Any, results: Sequence[Result]) -> None:
    for style, result in zip("-:", results, strict=False):
        micros: Mapping[str, Mapping[int, float]] = result.details["microseconds"]  # type: ignore[assignment]  # a series
        for number, (operation, of) in enumerate(micros.items()):
            label = f"{operation}, {result.settings['database']}"
            axis.plot(list(of), list(of.values()), style, marker=".", color=f"C{number}", label=label)
    axis.set_yscale("log")
    axis.legend(fontsize=6, ncols=2)


def _peers(axis: Any, results: Sequence[Result]) -> None:
    labels: list[str] = []
    for result in results:
        rows: Sequence[Mapping[str, Any]] = result.details["rows"]  # type: ignore[assignment]  # written by `_peer_result`
        for one in rows:
            axis.barh(len(labels), one["files_per_s"], color="C1" if one["contender"] == "juicefs" else "C2")
            axis.text(one["files_per_s"], len(labels), f" {one['files_per_s']:,.0f}", fontsize=7, va="center")
            labels.append(f"{result.settings['database']}, {result.settings['clients']} clients: {one['contender']}")
    axis.set_yticks(range(len(labels)), labels, fontsize=6)
    axis.invert_yaxis()
    axis.margins(x=0.1)
    axis.set_title("empty files per second, beside JuiceFS", loc="left")


_PANELS: Mapping[str, Callable[[Any, Sequence[Result]], None]] = {
    "same-parent": _rates,
    "growth entries": _entries,
    "growth depth": _depths,
    "peer": _peers,
}
