"""Check sizes, names, lint and types, for the reasons in docs/decisions/0002-rules-are-tests.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize

import pytest

from tests.patience import PATIENCE_S
from tests.tidy.source_tree import ROOT, Module, modules, text_files

_MAX_FUNCTION_LINES = 70
_MAX_MODULE_LINES = 600

_FOLDERS = ("src", "tests", "benchmarks")

# Assembled from parts so that this file does not match itself.
_MACHINE_PATHS = re.compile(r"(?<![\w.:/-])/(?:wor" + r"k|roo" + r"t|far" + r"m|tmp/tria" + r"l)\b|\.librar" + r"y\b")
_INDEX_HOSTS = re.compile(r"(?:pyp" + r"i\.org|pythonhoste" + r"d\.org|/simpl" + r"e/)")
_IGNORE = re.compile(
    r"#\s*(?:type:\s*ignore|pyright:\s*ignore|noqa)\b"
    r"(?P<rules>\[[\w, -]+\]|:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?(?P<reason>.*)"
)


def _python() -> list[Module]:
    return [module for folder in _FOLDERS for module in modules(folder)]


@pytest.mark.parametrize(
    "command",
    [
        "ruff check --quiet .",
        "ruff format --check --quiet src checker tests benchmarks examples",
        "mypy --no-error-summary",
        pytest.param("mypy --strict examples/sqlite-store/holdfast_sqlite.py", marks=pytest.mark.slow),
        pytest.param("mypy --no-error-summary", marks=pytest.mark.slow),
        pytest.param(
            "mypy --no-error-summary --strict examples/sqlite-store/holdfast_sqlite.py", marks=pytest.mark.slow
        ),
    ],
)
def test_the_tools_are_content(command: str) -> None:
    arguments = [sys.executable, "-m", *command.split()]
    run = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert run.returncode == 0, run.stdout + run.stderr


def test_functions_fit_on_a_page() -> None:
    long = []
    for module in _python():
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > _MAX_FUNCTION_LINES:
                    long.append(f"{module.where}:{node.lineno}: {node.name} has {lines} lines")
    assert long == []


def test_modules_stay_small() -> None:
    lengths = {module.where: module.path.read_text(encoding="utf-8").count("\n") for module in _python()}
    assert {where: lines for where, lines in lengths.items() if lines > _MAX_MODULE_LINES} == {}


def test_names_say_what_a_thing_is() -> None:
    """Names such as utils, helpers, Manager, Abstract and mixin say nothing about the content."""
    bad = []
    for module in _python():
        if {"utils", "util", "helpers", "helper", "common", "misc"} & set(module.name.split(".")):
            bad.append(module.where)
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and re.search(r"Manager$|^_?Abstract|Mixin$|^_?Base[A-Z]", node.name):
                bad.append(f"{module.where}:{node.lineno}: class {node.name}")
    assert bad == []


def test_no_error_is_passed_over() -> None:
    """No handler catches every exception and does nothing, whether with `pass`, `...` or `continue`."""
    bad = []
    for module in _python():
        for node in module.nodes:
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "BaseException"
                if caught in {"Exception", "BaseException"} and all(map(_does_nothing, node.body)):
                    bad.append(f"{module.where}:{node.lineno}")
    assert bad == []


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass | ast.Continue) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def test_nothing_is_left_for_later() -> None:
    """A function that only raises NotImplementedError, or a comment that marks an open end, is unfinished work."""
    unfinished = re.compile(r"raise NotImplemente" + r"dError|\b(?:TOD" + r"O|FIXM" + r"E|XX" + r"X)\b")
    assert _lines_with(unfinished, suffix=".py") == []


def test_files_name_no_path_of_one_machine() -> None:
    assert _lines_with(_MACHINE_PATHS) == []


def test_files_name_no_package_index() -> None:
    """Any mirror of the packages can be used: the lock contains only versions and hashes."""
    assert _lines_with(_INDEX_HOSTS) == []


def _lines_with(pattern: re.Pattern[str], suffix: str = "") -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in text_files()
        if name.endswith(suffix)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_every_ignore_names_its_rule_and_its_reason() -> None:
    bare = []
    for module in _python():
        with tokenize.open(module.path) as source:
            for token in tokenize.generate_tokens(source.readline):
                found = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
                if found and not _is_explained(found):
                    bare.append(f"{module.where}:{token.start[0]}: {token.string}")
    assert bare == []


@pytest.mark.parametrize(
    ("line", "good"),
    [
        ("x = f()  # type: ignore", False),
        ("x = f()  # type: ignore[return-value]", False),
        ("x = f()  # type: ignore[return-value]  # the capability is the promise", True),
        ("x = f()  # noqa", False),
        ("x = f()  # noqa: B008", False),
        ("x = f()  # noqa: B008  # a frozen value", True),
        ("x = f()  # noqa: B008, E501 a frozen value", True),
    ],
)
def test_the_check_of_ignores_sees_what_it_should(line: str, good: bool) -> None:
    found = _IGNORE.search(line)
    assert found
    assert _is_explained(found) is good


def _is_explained(ignore: re.Match[str]) -> bool:
    return bool(ignore["rules"]) and len(ignore["reason"].strip(" #-").split()) >= 2
