"""Files of scenes: what their sections mean."""

from __future__ import annotations

import pytest

from holdfast_checker.framework.scene_files import SceneFields, parse_field_list, parse_script, read_sections
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.transactions.scenes import TransactionScene


def test_a_script_is_calls_with_semicolons() -> None:
    assert parse_script('get x; put y "two words"; add z -1; put e ""') == (
        ("get", "x"),
        ("put", "y", "two words"),
        ("add", "z", -1),
        ("put", "e", ""),
    )
    assert parse_script("") == ()


def test_fields_have_values_of_the_types_of_a_dataclass() -> None:
    fields = SceneFields(summary="two race", budgets="crash, lost reply 2", reached="", ann="get x", stepped="yes")
    assert fields.take_fields(TransactionScene) == {
        "summary": "two race",
        "budgets": {Fault.CRASH: 1, Fault.LOST_REPLY: 2},
        "reached": (),
        "stepped": True,
    }
    assert fields == {"ann": "get x"}, "what is left are the actors"
    with pytest.raises(ValueError, match="earthquake"):
        SceneFields(budgets="earthquake").take_fields(TransactionScene)


def test_options_without_a_value_are_yes() -> None:
    assert parse_field_list("group=3, drives") == {"group": "3", "drives": "yes"}


@pytest.mark.parametrize("kind", ["committers", "transactions", "namespace", "units"])
def test_every_section_has_a_summary_or_names(kind: str) -> None:
    for name, fields in read_sections(f"holdfast_checker.{kind}").items():
        assert fields.get("summary") or name == "combinations"
