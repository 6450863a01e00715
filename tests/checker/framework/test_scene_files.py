"""Files of scenes: what their sections mean."""

from __future__ import annotations

import pytest

from holdfast_checker.framework.scene_files import Fields, calls_of, read_sections
from holdfast_checker.kernel.calls import Fault


def test_a_script_is_calls_with_semicolons() -> None:
    assert calls_of('get x; put y "two words"; add z -1; put e ""') == (
        ("get", "x"),
        ("put", "y", "two words"),
        ("add", "z", -1),
        ("put", "e", ""),
    )
    assert calls_of("") == ()


def test_the_fields_that_all_scenes_have() -> None:
    fields = Fields(summary="two race", faults="crash, lost reply 2", reached="nothing", ann="get x", looks="yes")
    assert fields.common("race") == {
        "name": "race",
        "summary": "two race",
        "budgets": {Fault.CRASH: 1, Fault.LOST_REPLY: 2},
        "reached": (),
    }
    assert fields.flag("looks") and not fields.flag("crashes") and fields.number("crashes") == 0
    assert fields == {"ann": "get x"}, "what is left are the actors"
    with pytest.raises(ValueError, match="earthquake"):
        Fields(summary="", faults="earthquake").common("odd")


@pytest.mark.parametrize("kind", ["committers", "transactions", "namespace", "units"])
def test_every_section_has_a_summary_or_names(kind: str) -> None:
    for name, fields in read_sections(f"holdfast_checker.{kind}").items():
        assert fields.get("summary") or name in ("combinations", "verdict")
