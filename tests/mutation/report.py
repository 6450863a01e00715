"""Write the page about mutants: the score, by module and by operator, and each survivor with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.mutation.court import Verdict
from tests.mutation.mutants import Mutant
from tests.mutation.operators import OPERATORS
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


def write_page(judged: Sequence[Judged], every: int, how: str, reviewed: Mapping[str, str]) -> str:
    """Return the page in Markdown; the same verdicts give the same bytes."""
    caught = [one for one in judged if one.verdict.is_caught]
    hang = sum(one.verdict.kind == "hangs" for one in caught)
    lines = [
        "# Mutants",
        "",
        "Would the checker and the tests notice a mistake in `commit/`, `namespace/`, `transactions/`, `units/` or",
        "`records/`? `make mutants` plants one mistake at a time, a small edit of a function's syntax tree, and runs",
        "the simulations, the checker's verdicts and the unit tests of that part, without those that need a database",
        "server. It generates this page; a person wrote only the reasons (`tests/mutation/survivors.py`).",
        "",
        f"`{_command(how)}`:",
        f"of {every:,} mutants {len(judged):,} were drawn and run; {len(caught):,} were caught:",
        f"{len(caught) - hang:,} by a failing test, {hang:,} by a test that no longer ends. Of the others,",
        f"{len(judged) - score(judged)[1]:,} are equivalent to the original (below). So",
        f"**{_share(*score(judged))}** of the mutants that a test can distinguish from the original are caught.",
        "Tests were written for mutants of this sample that had survived, so of another sample (`--seed 2`) fewer are",
        "caught.",
        "",
        "## By part",
        "",
        *_table("part", judged, lambda one: one.mutant.part, lambda name: f"`{name}/`"),
        "",
        "## By kind of change",
        "",
        *_table("operator", judged, lambda one: one.mutant.change.operator, lambda name: f"{name}: {OPERATORS[name]}"),
        "",
        "## By module",
        "",
        *_table("module", judged, lambda one: one.mutant.file, lambda name: f"`{name}`"),
        "",
        "## By what caught them",
        "",
        "Only the first failing test counts; many others would have failed too.",
        "",
        *_judges(caught),
        "",
        "## Not caught",
        "",
        *_survivors([one for one in judged if not one.verdict.is_caught], reviewed),
    ]
    return "\n".join(lines) + "\n"


def _command(how: str) -> str:
    return f"make mutants MUTANTS='{how}'"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"


def _table(
    title: str, judged: Sequence[Judged], key: Callable[[Judged], str], shown: Callable[[str], str]
) -> Iterator[str]:
    yield f"| {title} | mutants | equivalent | caught | |"
    yield "|---|---:|---:|---:|---:|"
    for name in sorted({key(one) for one in judged}):
        those = [one for one in judged if key(one) == name]
        caught, total = score(those)
        yield f"| {shown(name)} | {len(those)} | {len(those) - total} | {caught} | {_share(caught, total)} |"


def _judges(caught: Sequence[Judged]) -> Iterator[str]:
    yield "| | mutants |"
    yield "|---|---:|"
    names = {
        "tests/simulation/": "simulation",
        "tests/checker/": "checker",
        "tests/unit/": "unit tests",
        "tests/property/": "random operations, compared with a model",
        "tests/conformance/": "conformance suite",
    }
    for start, name in names.items():
        yield f"| {name} | {sum(one.verdict.test.startswith(start) for one in caught)} |"


def _survivors(those: Sequence[Judged], reviewed: Mapping[str, str]) -> Iterator[str]:
    by_reason: dict[str, list[Judged]] = {}
    for one in sorted(those, key=lambda one: one.mutant.name):
        by_reason.setdefault(reviewed.get(one.mutant.name, ""), []).append(one)
    for reason, same in sorted(by_reason.items()):
        yield f"**{reason or 'Not reviewed yet'}**"
        yield ""
        for one in same:
            change = one.mutant.change
            seen = " (never executed by a test)" if one.verdict.kind == "not run" else ""
            where = f"`{one.mutant.file}`, `{one.mutant.function}`"
            yield f"- {where}, {change.operator}: `{change.before}` → `{change.after}`{seen}"
        yield ""
