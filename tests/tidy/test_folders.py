"""Check that test folders mirror the source, and that the order of the test modules names only modules that exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tidy.source_tree import ROOT

_MIRRORS = {
    "tests/unit": "src/holdfast",
    "tests/unit/benchmarks": "benchmarks",
    "tests/checker": "checker/src/holdfast_checker",
}


def _folders_with_tests(root: Path) -> list[Path]:
    """List the folders at or below `root` that hold Python files; recorded data needs no source folder."""
    return sorted({path.parent for path in root.rglob("*.py")})


def _source_folder(folder: Path) -> Path:
    """Return the folder whose code the tests in `folder` cover; the longest entry of the table applies."""
    tests = max((name for name in _MIRRORS if folder.is_relative_to(ROOT / name)), key=len)
    return ROOT / _MIRRORS[tests] / folder.relative_to(ROOT / tests)


@pytest.mark.parametrize("tests", ["tests/unit", "tests/checker"])
def test_every_test_folder_has_a_source_folder(tests: str) -> None:
    """The tests of a folder move together with its source."""
    folders = _folders_with_tests(ROOT / tests)
    assert len(folders) > 3
    without_source = [
        str(folder.relative_to(ROOT)) for folder in folders if not any(_source_folder(folder).glob("*.py"))
    ]
    assert without_source == []


def test_test_folders_hold_tests() -> None:
    """A moved test must not leave other files behind, such as a lone module of fakes."""
    folders = [*_folders_with_tests(ROOT / "tests/unit"), *_folders_with_tests(ROOT / "tests/checker")]
    assert [str(folder.relative_to(ROOT)) for folder in folders if not any(folder.rglob("test_*.py"))] == []


def test_recorded_times_are_those_of_modules() -> None:
    """A renamed module would lose its place in the order."""
    names = json.loads((ROOT / "tests/cpu_times.json").read_text(encoding="utf-8"))
    assert [name for name in names if not (ROOT / name).is_file()] == []
