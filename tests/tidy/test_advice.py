"""Check that advice in messages and in ``--help`` is honest, and possible for a user who has only the wheel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.source_tree import Module, modules

_ADVICE_TO_OVERWRITE = re.compile(r"(?:or|use|with|choose) (?:use )?mode overwrite\b(?!-)|overwrite the destination")
_ONLY_IN_A_CHECKOUT = re.compile(r"\b(?:docs|tests|examples|scripts)/|\.md\b|\bmake (?:demo|servers|test)\b")


def _texts(module: Module) -> Iterator[str]:
    """Yield the texts of a module that users may get to see: all but docstrings."""
    hidden = {
        id(node.body[0].value)
        for node in module.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in module.nodes:
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            hidden |= {id(part) for part in node.values}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _helps(module: Module) -> Iterator[str]:
    """Yield the docstrings of a module's commands, which ``--help`` prints."""
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef) and "command" in map(_name, node.decorator_list):
            yield ast.get_docstring(node) or ""


def _name(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else ""


@pytest.mark.parametrize(("text", "expected"), [("or use mode overwrite", True), ("mode overwrite-partitions", False)])
def test_advice_to_overwrite_is_found(text: str, expected: bool) -> None:
    assert bool(_ADVICE_TO_OVERWRITE.search(text)) is expected


def test_advice_to_overwrite_says_that_it_deletes() -> None:
    texts = [(module.where, text) for module in modules() for text in _texts(module)]
    advice = [(where, text) for where, text in texts if _ADVICE_TO_OVERWRITE.search(text)]
    assert advice
    assert [one for one in advice if "delete" not in one[1]] == []


def test_no_message_points_into_a_checkout() -> None:
    shown = [(module.where, text) for module in modules() for text in _texts(module)]
    shown += [
        (module.where, text)
        for module in modules()
        if module.name.startswith("holdfast.cli")
        for text in _helps(module)
    ]
    assert [one for one in shown if _ONLY_IN_A_CHECKOUT.search(one[1])] == []
