"""`check --all`: the results beside the paper's answers and the declarations."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from holdfast.cli.output import Output
from holdfast.guarantees import GuaranteeAnswer
from holdfast_checker.cli.report import print_guarantee_table
from holdfast_checker.committers.table_v.table import PAPERS, REASONS, GuaranteeTable, build_table
from tests.unit.cli.destinations import run


@pytest.fixture(scope="module")
def table() -> GuaranteeTable:
    return build_table(("two_phase", "direct"), ("abortable-job", "committed-output-observable"))


def test_each_answer_is_in_the_table(table: GuaranteeTable, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_guarantee_table(table, Output()) == all(cell.agrees_with_declaration for cell in table.cells.values())
    shown = capsys.readouterr().out
    assert "two_" in shown
    assert "direct" in shown
    (line,) = (line for line in shown.splitlines() if line.strip().startswith("committed output seen"))
    assert line.split()[-2:] == ["no", "yes"]
    assert "2 committers" in shown


def test_differences_are_shown_with_their_reason(
    table: GuaranteeTable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = table.cell("committed-output-observable", "direct")
    said = {**cell.committer.guarantees, cell.row.name: GuaranteeAnswer(holds=False, why="said so")}
    odd = replace(cell, committer=replace(cell.committer, guarantees=said), holds=True)
    changed = replace(table, cells={**table.cells, (cell.row.name, "direct"): odd})
    monkeypatch.setitem(PAPERS["direct"], cell.row.name, "no")
    assert not print_guarantee_table(changed, Output())
    capsys.readouterr()
    monkeypatch.setitem(REASONS, ("direct", cell.row.name), "Somebody was wrong.")  # type: ignore[arg-type]  # a dict
    assert print_guarantee_table(changed, Output())
    shown = capsys.readouterr().out
    assert "direct, committed output seen: found yes; the paper says no; declared no" in shown
    assert "  Somebody was wrong." in shown
    (line,) = (line for line in shown.splitlines() if line.strip().startswith("committed output seen"))
    assert line.split()[-2:] == ["no", "yes!"]
    assert "3 of 4 declarations" in shown


def test_incomplete_results_are_marked(table: GuaranteeTable, capsys: pytest.CaptureFixture[str]) -> None:
    cells = {key: replace(cell, complete=False) for key, cell in table.cells.items()}
    print_guarantee_table(replace(table, cells=cells), Output())
    shown = capsys.readouterr().out
    assert "? so far: not all histories were explored" in shown
    assert {"yes?", "no?"} <= set(shown.split())


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    some = partial(build_table, ("two_phase",), ("abortable-job",))
    monkeypatch.setattr("holdfast_checker.cli.report.build_table", some)
    result = run("check", "--all")
    assert result.exit_code == 0
    assert "abortable job" in result.stdout
    assert json.loads(run("check", "--all", "--json").stdout)
