"""Store verdicts from run to run: an interrupted run continues, and only what changed is judged again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tests.mutation.court import Verdict
from tests.mutation.mutants import Mutant
from tests.mutation.parts import ROOT

__all__ = ["Results"]


class Results:
    """A file of verdicts, one JSON document per line; the last verdict on a mutant counts.

    A caught mutant stays caught as long as the function and the file of the test that caught it are unchanged; a
    survivor stays a survivor as long as the function and all tests are unchanged.

    Args:
        judges: the files of the tests that judge.
    """

    def __init__(self, file: Path, judges: Iterable[Path]) -> None:
        self._file = file
        self._tests = {str(path.relative_to(ROOT)): _digest(path.read_bytes()) for path in judges}
        self._suite = _digest(json.dumps(self._tests, sort_keys=True).encode())
        self._known: dict[tuple[str, str], dict[str, object]] = {}
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        for line in lines:
            if line.endswith("}"):  # the last line may be incomplete
                one = json.loads(line)
                self._known[one["mutant"], one["source"]] = one

    def of(self, mutant: Mutant) -> Verdict | None:
        """Return the verdict of a mutant, if it still counts."""
        found = self._known.get((mutant.name, mutant.source))
        if found is None:
            return None
        verdict = Verdict(**found["verdict"])  # type: ignore[arg-type]  # as `add` wrote it
        return verdict if found["tests"] == self._stamp(verdict) else None

    def add(self, mutant: Mutant, verdict: Verdict) -> None:
        one = {
            "mutant": mutant.name,
            "source": mutant.source,
            "tests": self._stamp(verdict),
            "verdict": asdict(verdict),
        }
        self._known[mutant.name, mutant.source] = one
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(one) + "\n")

    def _stamp(self, verdict: Verdict) -> str:
        """Return a digest of the tests on which the verdict depends."""
        return self._tests.get(verdict.test.partition("::")[0], "") if verdict.is_caught else self._suite


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
