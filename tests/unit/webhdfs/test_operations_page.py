"""The tables in docs/reference/webhdfs.md say what the server does, and what Hadoop's contract suites come to."""

from __future__ import annotations

import itertools
from pathlib import Path

from holdfast.webhdfs import refusals
from holdfast.webhdfs.operations import OPERATIONS, TRANSFERS
from tests.hadoop_contract.expectations import failure_rows, suite_rows

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "webhdfs.md"


def _table(heading: str) -> list[str]:
    """Return the rows of the table whose head begins so."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(heading)) + 2
    return list(itertools.takewhile(lambda line: line.startswith("|"), lines[start:]))


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def test_every_operation_has_a_row() -> None:
    found = [tuple(_cells(row)[:2]) for row in _table("| method |")]
    expected = [
        (method, f"`{name}`") for method in OPERATIONS for name in sorted([*OPERATIONS[method], *TRANSFERS[method]])
    ]
    assert found == expected


def test_the_rows_say_how_a_repeat_is_recognized() -> None:
    for row in _table("| method |"):
        method, name, _, repeat, _ = _cells(row)
        operation = OPERATIONS[method].get(name.strip("`"))
        if operation is None:
            expected = "-" if method == "GET" else "token"
        else:
            expected = "-" if operation.repeated is None else "receipt"
        assert repeat == expected, name


def test_the_rows_name_what_is_refused() -> None:
    refused = {id(function) for function in vars(refusals).values()}
    for row in _table("| method |"):
        method, name, text, _, _ = _cells(row)
        operation = OPERATIONS[method].get(name.strip("`"))
        assert text.startswith("refused: ") == (operation is not None and id(operation.run) in refused), name


def test_the_outcomes_of_the_contract_suites() -> None:
    assert _table("| suite | cases | passed |") == suite_rows()


def test_each_case_that_does_not_pass_has_its_reason() -> None:
    assert _table("| suite | cases | here |") == failure_rows()
