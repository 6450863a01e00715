"""Run ``make mutants``: plant mistakes in `commit/` and `versioned_log/`, let tests judge them, write the page.

``python -m tests.mutation --seed 7 --sample 500`` draws 500 mutants; ``--all`` takes every mutant, which takes hours;
``--only job.`` takes the mutants whose names start with ``job.``. Verdicts are stored in ``build/mutants``, and stay
valid until something on which they depend changes, so a run can be stopped at any time. The exit code is 0 if nine of
ten mutants are caught and all others are listed in `survivors`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutation.court import Court, Verdict
from tests.mutation.mutants import Mutant, find_mutants, in_drawn_order
from tests.mutation.report import Judged, score, write_page
from tests.mutation.results import ROOT, Results
from tests.mutation.survivors import REVIEWED

__all__ = ["WANTED", "judges", "main"]

WANTED = 0.9
"""The share of mutants that must be caught, without those that are equivalent to the shipped code."""

_RESULTS = ROOT / "build" / "mutants" / "results.jsonl"
_PAGE = ROOT / "docs" / "explanation" / "mutants.md"
_NO_JUDGES = frozenset({"test_mutants.py"})  # plants its own mistakes


def judges() -> list[Path]:
    """Return the files of the tests that judge: simulation, the checker's verdicts, unit tests of the mutated code."""
    folders = ("simulation", "checker", "unit/commit", "unit/versioned_log", "unit/cli")
    found = [path for folder in folders for path in (ROOT / "tests" / folder).rglob("test_*.py")]
    return sorted(path for path in found if path.name not in _NO_JUDGES)


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parse(arguments)
    every = list(find_mutants())
    drawn = [one for one in in_drawn_order(every, asked.seed) if one.name.startswith(asked.only)]
    drawn = drawn if asked.all else drawn[: asked.sample]
    results = Results(_RESULTS, judges())
    known = {one.name: found for one in drawn if (found := results.of(one)) is not None}
    open_ = [one for one in drawn if one.name not in known]
    _say(f"{len(every)} mutants; {len(drawn)} drawn, {len(known)} of them known, {len(open_)} to judge")
    if open_:
        known |= _judge(open_, results, asked)
    judged = [Judged(one, known[one.name]) for one in drawn if one.name in known]
    stale = sorted(set(REVIEWED) - {one.name for one in every})
    if not asked.only:
        how = "--all" if asked.all else f"--seed {asked.seed} --sample {asked.sample}"
        _PAGE.write_text(write_page(judged, len(every), how, REVIEWED), encoding="utf-8")
    return _conclude(judged, stale, whole=len(judged) == len(drawn))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Judge mutants of commit/.")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--sample", type=int, default=240, help="number of mutants to draw (default: 240)")
    parser.add_argument("--all", action="store_true", help="judge every mutant; takes hours")
    parser.add_argument(
        "--only", default="", metavar="START", help="judge mutants with this start of their names; write no page"
    )
    parser.add_argument("--patience", type=float, default=30, help="CPU seconds of tests for each mutant (default: 30)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    return parser.parse_args(arguments)


def _judge(mutants: Sequence[Mutant], results: Results, asked: argparse.Namespace) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}

    def told(mutant: Mutant, verdict: Verdict) -> None:
        results.add(mutant, verdict)
        found[mutant.name] = verdict
        caught = sum(one.is_caught for one in found.values())
        words = "" if verdict.is_caught else f"\n  {verdict.kind}: {mutant}"
        _say(f"{len(found)}/{len(mutants)} judged, {caught} caught{words}")

    court = Court(mutants, workers=asked.workers, patience_s=asked.patience, told=told, say=_say)
    options = ["-q", "-p", "no:cacheprovider"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(KeyboardInterrupt):
        pytest.main([*options, *map(str, judges())], plugins=[court])
    return found


def _conclude(judged: Sequence[Judged], stale: Sequence[str], whole: bool) -> int:
    caught, total = score(judged)
    share = caught / total if total else 1.0
    unknown = [one for one in judged if not one.verdict.is_caught and one.mutant.name not in REVIEWED]
    _say(f"{caught} of {total} caught, {len(judged) - total} more are the same program: {share:.1%}")
    for one in unknown:
        _say(f"not caught, and without a reason in tests/mutation/survivors.py: {one.mutant.name}\n  {one.mutant}")
    for name in stale:
        _say(f"tests/mutation/survivors.py names a mutant that no longer exists: {name}")
    if not whole:
        _say("stopped: the same command continues")
    return 0 if share >= WANTED and whole and not unknown and not stale else 1


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
