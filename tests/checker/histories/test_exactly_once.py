"""Effects of units, described in words."""

from __future__ import annotations

from holdfast_checker.histories.effects import (
    Effect,
    describe_false_progress,
    describe_repeated_units,
    describe_unmatched_units,
)


def test_each_unit_once() -> None:
    effects = [Effect("a", "one"), Effect("b", "two")]
    assert (
        describe_repeated_units(effects)
        == describe_unmatched_units("ab", effects)
        == describe_false_progress({"a", "b"}, effects)
        == []
    )


def test_what_is_wrong_is_said() -> None:
    effects = [Effect("a", "one"), Effect("z", "one"), Effect("a", "two")]
    assert describe_repeated_units(effects) == ["unit 'a' took effect 2 times: by one, then two"]
    assert describe_unmatched_units("ab", effects) == [
        "unit 'b' did not take effect",
        "unit 'z' does not exist, and one committed it",
    ]
    assert describe_false_progress({"a", "b"}, effects) == [
        "progress says that unit 'b' is done, and it did not take effect",
        "unit 'z' took effect, and progress does not show it",
    ]
