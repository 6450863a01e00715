"""Run ``make mutants``: plant mistakes in the parts of the code, let tests judge them, print the shares of each part.

``python -m tests.mutation --seed 7 --sample 500`` draws 500 mutants of each part; ``--all`` takes every mutant, which
takes days; ``--only commit.job.`` takes the mutants whose names start so. Verdicts are stored in ``build/mutants``, and
stay valid until something on which they depend changes, so a run can be stopped at any time. The exit code is 0 if
enough mutants of each part are caught and all others are listed in ``survivors.ini``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.mutation.court import Court, Verdict
from tests.mutation.mutants import Mutant, find_mutants, in_drawn_order
from tests.mutation.parts import EQUIVALENT, PARTS, REVIEWED, ROOT, judges
from tests.mutation.results import Results
from tests.time_limit import SETTING

__all__ = ["WANTED", "main"]

WANTED = 0.95
"""The share of a part's mutants that must be caught, without those that are equivalent to the shipped code."""

_RESULTS = ROOT / "build" / "mutants" / "results.jsonl"


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


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parse(arguments)
    every = list(find_mutants())
    drawn = [one for part in asked.part or PARTS for one in _draw(every, part, asked)]
    known: dict[str, Verdict] = {}
    for part in asked.part or PARTS:
        known |= _verdicts([one for one in drawn if one.part == part], part, asked)
    judged = [Judged(one, known[one.name]) for one in drawn if one.name in known]
    stale = sorted(set(REVIEWED) - {one.name for one in every})
    return _conclude(judged, stale, whole=len(judged) == len(drawn))


def _draw(every: Sequence[Mutant], part: str, asked: argparse.Namespace) -> list[Mutant]:
    those = [one for one in every if one.part == part and one.name.startswith(asked.only)]
    drawn = in_drawn_order(those, asked.seed)
    return drawn if asked.all else drawn[: asked.sample]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Judge mutants.")
    parser.add_argument("--part", action="append", choices=PARTS, help="a part (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--sample", type=int, default=240, help="number of mutants to draw of a part (default: 240)")
    parser.add_argument("--all", action="store_true", help="judge every mutant; takes days")
    parser.add_argument("--only", default="", metavar="START", help="judge mutants with this start of their names")
    parser.add_argument("--patience", type=float, default=30, help="CPU seconds of tests for each mutant (default: 30)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    return parser.parse_args(arguments)


def _verdicts(drawn: Sequence[Mutant], part: str, asked: argparse.Namespace) -> dict[str, Verdict]:
    """Return the verdicts on the mutants of a part; if the run is stopped, those that are known."""
    results = Results(_RESULTS, judges(part))
    known = {one.name: found for one in drawn if (found := results.of(one)) is not None}
    open_ = [one for one in drawn if one.name not in known]
    _say(f"{part}: {len(drawn)} mutants drawn, {len(known)} of them known, {len(open_)} to judge")
    return known | (_judge(open_, part, results, asked) if open_ else {})


def _judge(mutants: Sequence[Mutant], part: str, results: Results, asked: argparse.Namespace) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}

    def told(mutant: Mutant, verdict: Verdict) -> None:
        results.add(mutant, verdict)
        found[mutant.name] = verdict
        caught = sum(one.is_caught for one in found.values())
        words = "" if verdict.is_caught else f"\n  {verdict.kind}: {mutant}"
        _say(f"{len(found)}/{len(mutants)} judged, {caught} caught{words}")

    packages = PARTS[part].packages
    court = Court(mutants, packages, workers=asked.workers, patience_s=asked.patience, told=told, say=_say)
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        f"{SETTING}=0",
        "-m",
        "not slow or judge",
        "-k",
        PARTS[part].chosen,
    ]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(KeyboardInterrupt):
        pytest.main([*options, *map(str, judges(part))], plugins=[court])
    return found


def _conclude(judged: Sequence[Judged], stale: Sequence[str], whole: bool) -> int:
    shares = []
    kinds: tuple[tuple[str, Callable[[Judged], str]], ...] = (
        ("operator", lambda one: one.mutant.change.operator),
        ("part", lambda one: one.mutant.part),
    )
    for title, kind in kinds:
        for name in sorted({kind(one) for one in judged}):
            caught, total = score([one for one in judged if kind(one) == name])
            share = caught / total if total else 1.0
            _say(f"{title} {name}: {caught} of {total} caught, {share:.1%}")
            shares += [share] if title == "part" else []
    unknown = [one for one in judged if not one.verdict.is_caught and one.mutant.name not in REVIEWED]
    for one in unknown:
        _say(f"not caught, and without a reason in tests/mutation/survivors.ini: {one.mutant.name}\n  {one.mutant}")
    for name in stale:
        _say(f"tests/mutation/survivors.ini names a mutant that no longer exists: {name}")
    if not whole:
        _say("stopped: the same command continues")
    return 0 if min(shares, default=1.0) >= WANTED and whole and not unknown and not stale else 1


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
