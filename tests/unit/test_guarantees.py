"""The declared guarantees: whole, the paper's where the paper answers, and as strict as the reasons beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.commit import COMMITTERS, TWO_PHASE
from holdfast.guarantees import GUARANTEES, Guarantee, GuaranteeAnswer
from holdfast_checker.specimens import SPECIMENS
from tests.table_v import TABLE_V

ALL = {**COMMITTERS, **SPECIMENS}
NAMES = list(ALL)
INVARIANTS = tuple(f"C{number}" for number in range(1, 11))
S3A = ("magic", "staging-directory", "staging-partitioned")


def test_the_rows_are_table_v_the_invariants_and_replaced_data() -> None:
    assert [row.name for row in GUARANTEES] == [*TABLE_V, *INVARIANTS, "replaced-data"]


@pytest.mark.parametrize("name", TABLE_V)
def test_table_v_is_the_papers(name: str) -> None:
    direct, stocator, s3a, emr = TABLE_V[name]
    answers = {one: committer.guarantees[name].holds for one, committer in ALL.items()}
    assert (answers["direct"], answers["stocator"], answers["emr"]) == (direct, stocator, emr)
    assert {answers[committer] for committer in S3A} == {s3a}


@pytest.mark.parametrize("row", GUARANTEES, ids=lambda row: row.name)
def test_every_committer_answers_with_a_reason(row: Guarantee) -> None:
    for committer in ALL.values():
        answer = committer.guarantees[row.name]
        assert answer.why
        assert "\n" not in answer.why + answer.unless
        assert not answer.why.endswith(".")
    assert len(row.title) <= 24, "a table of 100 columns has room for no more"


def test_no_committer_answers_a_row_that_does_not_exist() -> None:
    assert all(set(committer.guarantees) == {row.name for row in GUARANTEES} for committer in ALL.values())


def test_the_default_holds_what_is_promised() -> None:
    for row in GUARANTEES:
        if row.name.startswith("C") or row.name == "replaced-data":
            answer = TWO_PHASE.guarantees[row.name]
            assert (answer.holds, answer.unless) == (True, "")


def test_no_other_committer_holds_all_of_it() -> None:
    promised = [row for row in GUARANTEES if row.name.startswith("C")]
    for name in NAMES[1:]:
        assert any(not ALL[name].guarantees[row.name].holds for row in promised)


# --- docs/reference/committers.md -------------------------------------------------------------------------------------
def as_markdown() -> str:
    """The table of the document: guarantees as rows, committers as columns, conditions as numbered notes.

    The specimens are left out, like the meanings of C1 to C10, which docs/explanation/model.md has.
    """
    notes: list[str] = []

    def cell(answer: GuaranteeAnswer) -> str:
        word = "yes" if answer.holds else "no"
        notes.extend(one for one in answer.circumstances if one not in notes)
        numbers = ", ".join(str(notes.index(one) + 1) for one in answer.circumstances)
        return f"{word} ({numbers})" if numbers else word

    columns = [name for name in COMMITTERS if name != "staging-partitioned"]
    heads = ["staging-*" if name.startswith("staging") else name for name in columns]
    lines = ["| | " + " | ".join(f"`{head}`" for head in heads) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in GUARANTEES:
        cells = [cell(ALL[name].guarantees[row.name]) for name in columns]
        meaning = "" if row.name in INVARIANTS else f": {row.meaning}"
        lines.append(f"| **{row.title}**{meaning} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"{number}. unless {note}" for number, note in enumerate(notes, start=1))])


def test_the_document_has_this_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "committers.md").read_text(encoding="utf-8")
    assert as_markdown() in text, f"put this into docs/reference/committers.md:\n{as_markdown()}"


def test_both_staging_committers_answer_alike() -> None:
    assert COMMITTERS["staging-directory"].guarantees == COMMITTERS["staging-partitioned"].guarantees
