"""Effects of units, described in words."""

from __future__ import annotations

from holdfast_checker.histories.effects import Effect, what_is_missing, what_is_repeated, what_strays


def test_each_unit_once() -> None:
    effects = [Effect("a", "one"), Effect("b", "two")]
    assert what_is_repeated(effects) == what_is_missing("ab", effects) == what_strays({"a", "b"}, effects) == []


def test_what_is_wrong_is_said() -> None:
    effects = [Effect("a", "one"), Effect("z", "one"), Effect("a", "two")]
    assert what_is_repeated(effects) == ["unit 'a' took effect 2 times: by one, then two"]
    assert what_is_missing("ab", effects) == [
        "unit 'b' did not take effect",
        "unit 'z' does not exist, and one committed it",
    ]
    assert what_strays({"a", "b"}, effects) == [
        "progress says that unit 'b' is done, and it did not take effect",
        "unit 'z' took effect, and progress does not show it",
    ]
