"""Write the page about mutants: the score, by part and by operator."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from tests.mutation.court import Verdict
from tests.mutation.mutants import Mutant
from tests.mutation.survivors import EQUIVALENT

__all__ = ["Judged", "score", "write_page"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A mutant and its verdict."""

    mutant: Mutant
    verdict: Verdict


def score(judged: Sequence[Judged]) -> tuple[int, int]:
    """Return how many mutants were caught, and how many a test could distinguish from the shipped code."""
    caught = sum(one.verdict.is_caught for one in judged)
    same = sum(one.mutant.name in EQUIVALENT and not one.verdict.is_caught for one in judged)
    return caught, len(judged) - same


def write_page(judged: Sequence[Judged], every: int, how: str, day: date) -> str:
    """Return the page in Markdown; the same verdicts give the same bytes.

    Args:
        every: how many mutants there are.
        how: the options of the run.
        day: when the mutants were judged.
    """
    caught = [one for one in judged if one.verdict.is_caught]
    hang = sum(one.verdict.kind == "hangs" for one in caught)
    figures = (
        f"The figures are those of the code of {day}, not of later versions. `make mutants MUTANTS='{how}'` drew "
        f"{len(judged):,} of {every:,} mutants; {len(judged) - score(judged)[1]:,} are equivalent to the original. "
        f"**{_share(*score(judged))}** of the others were caught: {len(caught) - hang:,} by a failing test, {hang:,} "
        "by a test that no longer ends. Of another sample, fewer are caught, because tests were written for survivors "
        "of this one."
    )
    lines = [
        _INTRODUCTION,
        *textwrap.wrap(figures, 120, break_on_hyphens=False),
        "",
        *_scores("part", judged, lambda one: one.mutant.part, lambda name: f"`{name}/`"),
        "",
        "`tests/mutation/operators.py` describes the operators.",
        "",
        *_scores("operator", judged, lambda one: one.mutant.change.operator, lambda name: name),
    ]
    return "\n".join(lines) + "\n"


_INTRODUCTION = """\
# Mutants

Would the checker and the tests notice a mistake in `commit/`, `namespace/`, `transactions/`, `units/` or `records/`?
`make mutants` plants one mistake at a time, a small edit of a function's syntax tree, and runs the simulations, the
checker's verdicts and the unit tests of that part, without those that need a database server. It writes this page.
`MUTANTS='--help'` lists its options: `--seed 2 --sample 500` draws 500 mutants of each part, with another seed;
`--part units` and `--only commit.job.` select mutants and write no page; `--all` takes days.

Verdicts stay in `build/mutants` until something on which they depend changes: a run that was stopped continues with the
same command. The exit code is 1 if fewer than 95% of a part's mutants are caught, or if one survives that
`tests/mutation/survivors.py` does not list with a reason.
"""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"


def _scores(
    title: str, judged: Sequence[Judged], key: Callable[[Judged], str], shown: Callable[[str], str]
) -> Iterator[str]:
    yield f"| {title} | not equivalent | caught | |"
    yield "|---|---:|---:|---:|"
    for name in sorted({key(one) for one in judged}):
        those = [one for one in judged if key(one) == name]
        caught, total = score(those)
        yield f"| {shown(name)} | {total} | {caught} | {_share(caught, total)} |"
