"""Check that every `__all__` is exact and importable, and that everything public has a docstring."""

from __future__ import annotations

import ast
import importlib

from tests.tidy.source_tree import SRC, Module, modules


def _public() -> list[Module]:
    return [module for module in modules() if not any(part.startswith("_") for part in module.name.split("."))]


def _exported(module: Module) -> list[str]:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            names = ast.literal_eval(node.value)
            assert isinstance(names, list)
            return names
    return []


def _is_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] in {"TypeVar", "ParamSpec"}


def _defined(module: Module) -> set[str]:
    """Return the public names that a module itself defines."""
    names = set[str]()
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            names |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def _passed_on(module: Module) -> set[str]:
    """Return names that a package may export because it imports them; ruff finds unused ones."""
    if module.path.name != "__init__.py":
        return set()
    imports = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


def test_all_lists_what_the_module_defines() -> None:
    for module in _public():
        exported = _exported(module)
        public = {name for name in exported if not name.startswith("__")}
        assert len(exported) == len(set(exported)), module.name
        unknown = public - _defined(module) - _passed_on(module)
        assert unknown == set(), f"{module.name}: these are defined elsewhere"
        silent = _defined(module) - public
        assert silent == set(), f"{module.name}: export these or start their names with an underscore"


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
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in _exported(module):
                if ast.get_docstring(node) is None and not _is_overload(node):
                    silent.append(f"{module.name}.{node.name}")
    assert silent == []


def _is_overload(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(ast.unparse(decorator).split(".")[-1] == "overload" for decorator in node.decorator_list)


def test_every_folder_is_a_package() -> None:
    """A folder without __init__.py works in a checkout but is missing from the wheel."""
    folders = {module.path.parent for module in modules()} - {SRC}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
