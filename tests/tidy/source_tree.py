"""Find and parse the project's own files for the tidy tests."""

from __future__ import annotations

import ast
import functools
import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "SOURCES", "Module", "iter_imports", "modules", "text_files"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "src", ROOT / "checker/src")

_FOLDERS = (".ci", ".github", "benchmarks", "checker", "docs", "examples", "scripts", "src", "tests")
_TOP_SUFFIXES = (".lock", ".md", ".toml", ".yaml", ".yml")
_TOP_NAMES = (".gitignore", "LICENSE", "Makefile")
_BINARY = (".parquet", ".orc", ".arrow", ".avro", ".gz", ".zip", ".png")
_GENERATED = re.compile(r"__pycache__|\.\w+_cache|\.hypothesis|results|.*\.egg-info")


@dataclass(frozen=True)
class Module:
    """A Python file under a source root, its dotted name and its syntax tree."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def where(self) -> str:
        return str(self.path.relative_to(ROOT))

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the syntax tree, outer ones first: a walk takes as long as parsing."""
        return tuple(ast.walk(self.tree))


def _parse(path: Path, root: Path) -> Module:
    parts = path.relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, ast.parse(path.read_text(encoding="utf-8"), str(path)))


@functools.cache
def modules(folder: str = "src") -> tuple[Module, ...]:
    """Return every Python file below a folder of the project; with ``src``, those of all distributions."""
    roots = SOURCES if folder == "src" else (ROOT / folder,)
    gc.disable()  # these millions of objects stay: to look for garbage among them takes four times as long as parsing
    try:
        return tuple(_parse(path, root) for root in roots for path in sorted(root.rglob("*.py")))
    finally:
        gc.freeze()
        gc.enable()


def iter_imports(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of each import of a module: at the top, in functions, and under TYPE_CHECKING."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def text_files() -> Iterator[tuple[str, str]]:
    """Yield name and text of every file that belongs to the project."""
    paths = [path for path in ROOT.iterdir() if path.suffix in _TOP_SUFFIXES or path.name in _TOP_NAMES]
    for folder in _FOLDERS:
        paths += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(paths):
        generated = any(map(_GENERATED.fullmatch, path.relative_to(ROOT).parts))
        if not generated and not path.name.endswith(_BINARY):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
