"""Make mutants: every function of a package with one edit each, with names that survive changes around them."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType

from tests.mutation.coverage import Place, functions_of, modules_of, parse_module, recompiled
from tests.mutation.operators import Change, Function, changes_of, edited
from tests.mutation.parts import PARTS

__all__ = ["Mutant", "find_mutants", "in_drawn_order", "plant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit of one function.

    Attributes:
        part: the key of its part in `PARTS`.
        name: stays the same while the function and the changed part keep their names and their text.
        function: the function's qualified name in the module.
        source: digest of the shipped function; a verdict stays valid as long as this digest is the same.
    """

    part: str
    name: str
    module: ModuleType
    function: str
    source: str
    change: Change

    @property
    def place(self) -> Place:
        """Return the function."""
        return self.module.__name__, self.function

    @property
    def file(self) -> str:
        """Return the file of the module, within the package."""
        return _short(self.module).replace(".", "/") + ".py"

    def __str__(self) -> str:
        change = self.change
        return f"{self.file}:{change.line} {self.function}: {change.operator}: {change.before} -> {change.after}"


def find_mutants(*parts: str) -> Iterator[Mutant]:
    """Return every mutant of the parts, by default of all, in the order of their modules."""
    for part in parts or PARTS:
        for module in modules_of(*PARTS[part].packages):
            if not module.__name__.startswith(tuple(PARTS[part].spared)):
                for name, function in functions_of(parse_module(module)):
                    yield from _mutants(part, module, name, function)


def _mutants(part: str, module: ModuleType, name: str, function: Function) -> Iterator[Mutant]:
    source = hashlib.sha256(ast.unparse(function).encode()).hexdigest()[:12]
    place = f"{_short(module)}.{name}".lstrip(".")
    seen: dict[str, int] = {}
    for change in changes_of(function):
        digest = hashlib.sha256(f"{change.before} -> {change.after}".encode()).hexdigest()[:6]
        found = f"{place} {change.operator} {digest}"
        seen[found] = seen.get(found, 0) + 1
        again = f" {seen[found]}" if seen[found] > 1 else ""  # the text occurs twice in one function
        mutant = f"{found}{again}"
        yield Mutant(part=part, name=mutant, module=module, function=name, source=source, change=change)


def _short(module: ModuleType) -> str:
    """Return the name of a module without the common prefix: ``two_phase.job``, ``versioned_log``."""
    return module.__name__.removeprefix("holdfast.").removeprefix("commit").lstrip(".")


def in_drawn_order(mutants: Iterable[Mutant], seed: int) -> list[Mutant]:
    """Return all mutants in an order that depends only on the seed and on their names."""
    return sorted(mutants, key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).digest())


def plant(mutant: Mutant) -> bool:
    """Run the mutant instead of the shipped function, in this process and permanently; return False if that fails.

    The function object stays the same and gets other code, so every caller runs the mutant, whichever name or value
    refers to the function. Sources are not touched. It fails if the compiled code is the same.
    """
    tree = parse_module(mutant.module)
    for name, function in functions_of(tree):
        if name == mutant.function:
            changed = edited(function, mutant.change)
            function.body = changed.body
            break
    ast.fix_missing_locations(tree)
    for live, code in recompiled(mutant.module, tree):
        if code != live.__code__:
            unused = set(live.__code__.co_freevars) - set(code.co_freevars)
            if unused:  # code with fewer outer variables does not fit into the function: mention them, where it ends
                function.body += ast.parse(f"if False: {', '.join(unused)}").body
                ast.fix_missing_locations(tree)
                code = dict(recompiled(mutant.module, tree))[live]
            live.__code__ = code
            return True
    return False  # the compiled code is the same
