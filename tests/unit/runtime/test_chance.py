"""Seeded values are the same everywhere, and cover all choices."""

from __future__ import annotations

from holdfast.runtime import SeededRandom


def test_the_same_seed_gives_the_same_draws() -> None:
    """Also in other versions of Python: saved seeds must stay valid."""
    chance = SeededRandom(7)
    assert [chance.pick("abcdef") for _ in range(12)] == list("badadcadacaa")
    assert chance.shuffled(range(6)) == [2, 5, 0, 1, 4, 3]
    assert SeededRandom.derive(7, 3) == 3647706739097066463


def test_every_choice_can_be_drawn() -> None:
    chance = SeededRandom(1)
    assert {chance.pick("abc") for _ in range(100)} == set("abc")
    assert {tuple(chance.shuffled("abc")) for _ in range(200)} == {
        ("a", "b", "c"),
        ("a", "c", "b"),
        ("b", "a", "c"),
        ("b", "c", "a"),
        ("c", "a", "b"),
        ("c", "b", "a"),
    }
    assert 150 < sum(chance.happens(0.2) for _ in range(1000)) < 250


def test_derived_seeds_differ() -> None:
    assert len({SeededRandom.derive(seed, number) for seed in range(10) for number in range(100)}) == 1000
