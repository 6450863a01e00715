"""Check that a package's `__all__` is importable, and that everything public has a docstring.

Only the faces of packages have an `__all__`; in other modules, what starts with an underscore is private.
"""

from __future__ import annotations

import ast
import importlib

from tests.tidy.source_tree import SOURCES, Module, modules


def _public() -> list[Module]:
    return [module for module in modules() if not any(part.startswith("_") for part in module.name.split("."))]


def _exported(module: Module) -> list[str]:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            names = ast.literal_eval(node.value)
            assert isinstance(names, list)
            return names
    return []


def test_only_packages_have_all() -> None:
    assert [module.name for module in _public() if module.path.name != "__init__.py" and _exported(module)] == []


def test_what_all_lists_is_there() -> None:
    for module in _public():
        imported = importlib.import_module(module.name)
        assert [name for name in _exported(module) if not hasattr(imported, name)] == [], module.name


def test_everything_public_has_a_docstring() -> None:
    silent = []
    for module in _public():
        if not ast.get_docstring(module.tree):
            silent.append(module.name)
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                if ast.get_docstring(node) is None and not _is_overload(node):
                    silent.append(f"{module.name}.{node.name}")
    assert silent == []


def _is_overload(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(ast.unparse(decorator).split(".")[-1] == "overload" for decorator in node.decorator_list)


def test_every_folder_is_a_package() -> None:
    """A folder without __init__.py works in a checkout but is missing from the wheel."""
    folders = {module.path.parent for module in modules()} - set(SOURCES)
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
