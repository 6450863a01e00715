"""Inode ids are never used twice, by no process."""

from __future__ import annotations

from itertools import chain

from holdfast.namespace.keys import new_inode_id
from holdfast.runtime import Environment
from tests.children import run_in_children


def test_forked_children_do_not_make_the_ids_of_their_parent() -> None:
    """Two directories with one id would have one list of entries."""
    environment = Environment()

    def make() -> list[int]:
        return [new_inode_id(environment) for _ in range(100)]

    before = make()
    found = [*before, *chain.from_iterable(run_in_children(2, lambda _number: make())), *make()]
    assert len(set(found)) == len(found)
