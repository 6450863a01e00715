"""Define the edits that plant a mistake in a function: each a small edit of its syntax tree.

Annotations, docstrings, assertions, logging, and the words of errors are left alone: they cannot be wrong in the same
sense. An edit that every run of the statement would notice (an unbound name) is not made: it would only raise the
score.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

__all__ = ["OPERATORS", "Change", "changes_of", "edited"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Node = TypeVar("_Node", bound=ast.AST)

OPERATORS = {
    "negate": "a condition is negated",
    "operand": "one side of an and, or of an or, is removed",
    "and-or": "and becomes or, or becomes and",
    "boundary": "a comparison includes its limit, or excludes it",
    "comparison": "== and !=, in and not in are exchanged",
    "constant": "True and False are exchanged",
    "off-by-one": "a number is increased by one",
    "arithmetic": "plus and minus are exchanged",
    "quantifier": "any and all, min and max are exchanged",
    "drop": "a statement is removed",
    "swap": "two adjacent statements are swapped",
    "return-early": "a function does nothing and returns success, or an empty result",
    "first-left-out": "a loop skips the first element",
    "last-left-out": "a loop skips the last element",
    "unhandled": "an error is not handled",
    "no-finally": "a finally block is removed",
}
"""What each operator does, by its name."""

_LOGS = {"_log", "log", "logger", "_logger", "warnings"}
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_LIMITS: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_ELSE_WISE = {"any": "all", "all": "any", "min": "max", "max": "min"}


@dataclass(frozen=True, slots=True)
class Change:
    """One edit.

    Attributes:
        operator: name of the operator.
        line: line of the changed part.
        before: the source of the changed part, on one line.
        after: its replacement, or what is done to it.
        node: number of the edited node, in the order of `ast.walk`.
        edit: makes the edit in that node of a copy.
    """

    operator: str
    line: int
    before: str
    after: str
    node: int
    edit: Callable[[ast.AST], None]


def changes_of(function: Function) -> Iterator[Change]:
    """Return all edits of a function and its nested functions, but not of defaults and decorators: these ran before."""
    numbers = {id(node): number for number, node in enumerate(ast.walk(function))}
    for node in _relevant(function):
        for finder in _FINDERS:
            for found in finder(node):
                line = found.line or getattr(found.shown, "lineno", function.lineno)
                yield Change(found.operator, line, _on_a_line(found.shown), found.after, numbers[id(node)], found.edit)
    yield from _early_returns(function)


def edited(function: Function, change: Change) -> Function:
    """Return a copy of the function with the edit."""
    found = copy.deepcopy(function)
    change.edit(list(ast.walk(found))[change.node])
    return found


# --- what is looked at ------------------------------------------------------------------------------------------------
def _relevant(function: Function) -> Iterator[ast.AST]:
    """Iterate over the function and its parts, without those that are left alone."""
    to_do: list[ast.AST] = [function]
    while to_do:
        node = to_do.pop()
        yield node
        to_do += [child for child in reversed(list(_children(node, function))) if not _is_left_alone(child)]


def _children(node: ast.AST, top: Function) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params", "ctx") or (
            node is top and name in ("args", "decorator_list")
        ):
            continue
        if isinstance(node, ast.Raise):
            continue  # the error's words; another edit removes the raise
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST))


def _is_left_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or _is_said(node)


def _is_said(node: ast.AST) -> bool:
    """Check for a string, a log call, or a report of progress."""
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    if isinstance(value, ast.Constant):
        return True
    return isinstance(value, ast.Call) and (_root(value.func) in _LOGS or ast.unparse(value.func).endswith("progress"))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _on_a_line(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else f"{text[:97]}..."


@dataclass(frozen=True, slots=True)
class _Found:
    """A `Change` of the inspected node.

    Attributes:
        shown: the changed part.
        line: the line that has to run for the change to have an effect, if it is not that of `shown`.
    """

    operator: str
    shown: ast.AST
    after: str
    edit: Callable[[ast.AST], None]
    line: int = 0


# --- expressions ------------------------------------------------------------------------------------------------------
def _conditions(node: ast.AST) -> Iterator[_Found]:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_turned_anyway(node.test):
        yield _Found("negate", node.test, _not(node.test), _set("test", _negated))
    if isinstance(node, ast.comprehension):
        for index, test in enumerate(node.ifs):
            if not _is_turned_anyway(test):
                yield _Found("negate", test, _not(test), _set_at("ifs", index, _negated))
    if isinstance(node, ast.Return) and isinstance(node.value, ast.BoolOp):
        yield _Found("negate", node.value, _not(node.value), _set("value", _negated))
    if isinstance(node, ast.BoolOp):
        for index, value in enumerate(node.values):
            yield _Found("operand", node, f"without {_on_a_line(value)}", _without("values", index))
        other = "or" if isinstance(node.op, ast.And) else "and"
        yield _Found("and-or", node, other, _set("op", lambda op: ast.Or() if isinstance(op, ast.And) else ast.And()))


def _is_turned_anyway(test: ast.expr) -> bool:
    """Check for a single ``==`` and the like, which "comparison" inverts."""
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _FLIPPED


def _comparisons(node: ast.AST) -> Iterator[_Found]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            kind = type(operator)
            if kind in _LIMITS:
                other = _LIMITS[kind]
                yield _Found("boundary", node, other.__name__, _set_at("ops", index, lambda _op, other=other: other()))
            else:
                other = _FLIPPED[kind]
                yield _Found(
                    "comparison", node, other.__name__, _set_at("ops", index, lambda _op, other=other: other())
                )


def _values(node: ast.AST) -> Iterator[_Found]:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield _Found("constant", node, str(not value), _set("value", lambda value: not value))
        elif isinstance(value, int):
            yield _Found("off-by-one", node, str(value + 1), _set("value", lambda value: value + 1))
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub) and not _is_text(node):
        other = ast.Sub if isinstance(node.op, ast.Add) else ast.Add
        yield _Found("arithmetic", node, other.__name__, _set("op", lambda _op, other=other: other()))


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Check for strings and lists: a plus joins them, and every run would notice a minus between them."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    return any(isinstance(one, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp) for one in sides) or any(
        isinstance(one, ast.Constant) and isinstance(one.value, str | bytes) for one in sides
    )


def _calls(node: ast.AST) -> Iterator[_Found]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ELSE_WISE:
        other = _ELSE_WISE[node.func.id]
        yield _Found("quantifier", node, other, _set("func", lambda _func: ast.Name(other, ast.Load())))


# --- statements -------------------------------------------------------------------------------------------------------
def _statements(node: ast.AST) -> Iterator[_Found]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if not isinstance(body, list) or not body or not isinstance(body[0], ast.stmt):
            continue
        for index, statement in enumerate(body):
            if _may_be_left_out(statement):
                yield _Found(
                    "drop", statement, "left out", _set_at(name, index, lambda old: ast.copy_location(ast.Pass(), old))
                )
        for index, (one, other) in enumerate(pairwise(body)):
            if _may_change_places(one, other):
                yield _Found("swap", one, f"after {_on_a_line(other)}", _swap(name, index))


def _may_be_left_out(statement: ast.stmt) -> bool:
    if _is_said(statement):
        return False
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets)
    if isinstance(statement, ast.Expr):
        return True
    return isinstance(statement, ast.AugAssign | ast.Delete | ast.Raise)


def _may_change_places(one: ast.stmt, other: ast.stmt) -> bool:
    """Check that both statements do more than bind a name, and neither needs a name that the other one binds."""
    for statement in (one, other):
        if not isinstance(statement, ast.Expr | ast.With | ast.For) or _is_said(statement):
            return False
        if not any(isinstance(node, ast.Call) for node in ast.walk(statement)):
            return False
        if any(isinstance(node, ast.Return | ast.Raise | ast.Yield | ast.YieldFrom) for node in ast.walk(statement)):
            return False
    return not (_names(one, ast.Store) & _names(other, ast.Load) or _names(one, ast.Load) & _names(other, ast.Store))


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}


def _loops(node: ast.AST) -> Iterator[_Found]:
    if isinstance(node, ast.For | ast.comprehension):
        yield _Found("first-left-out", node.iter, "without the first", _set("iter", lambda old: _part(old, "[1:]")))
        yield _Found("last-left-out", node.iter, "without the last", _set("iter", lambda old: _part(old, "[:-1]")))


def _part(old: ast.AST, which: str) -> ast.AST:
    assert isinstance(old, ast.expr)
    return _located(ast.parse(f"list({ast.unparse(old)}){which}", mode="eval").body, old)


def _handlers(node: ast.AST) -> Iterator[_Found]:
    if isinstance(node, ast.Try):
        for index, handler in enumerate(node.handlers):
            if not isinstance(handler.body[0], ast.Raise):
                shown = handler.type or handler
                edit = _set_at("handlers", index, _raised_on)
                yield _Found("unhandled", shown, "raised on", edit, handler.body[0].lineno)
        if node.finalbody:
            nothing = ast.copy_location(ast.Pass(), node.finalbody[0])
            yield _Found("no-finally", node.finalbody[0], "left out", _set("finalbody", lambda _old: [nothing]))
    if isinstance(node, ast.With) and _is_suppress(node.items[0].context_expr):
        yield _Found("unhandled", _header(node), "raised on", _set("items", _suppressing_nothing))


def _raised_on(handler: ast.AST) -> ast.AST:
    assert isinstance(handler, ast.ExceptHandler)
    handler.body = [ast.copy_location(ast.Raise(), handler.body[0])]
    return handler


def _is_suppress(call: ast.expr) -> bool:
    return isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) == "suppress"


def _suppressing_nothing(items: list[ast.withitem]) -> list[ast.withitem]:
    call = items[0].context_expr
    assert isinstance(call, ast.Call)
    call.args = []
    return items


_FINDERS: Sequence[Callable[[ast.AST], Iterator[_Found]]] = (
    _conditions,
    _comparisons,
    _values,
    _calls,
    _statements,
    _loops,
    _handlers,
)


def _early_returns(function: Function) -> Iterator[Change]:
    """Return edits that make a function return an empty result early, if its annotation tells that result."""
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function)):
        nothing = ["return; yield"]
    else:
        nothing = _nothings(ast.unparse(function.returns) if function.returns else "")
    start = int(isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant))
    rest = function.body[start:]
    for value in nothing:
        if not rest or (len(rest) == 1 and ast.unparse(rest[0]) in (value, "pass", "...")):
            continue  # it does nothing anyway

        def edit(node: ast.AST, value: str = value) -> None:
            assert isinstance(node, Function)
            at = node.body[start]
            node.body[start:start] = [_located(one, at) for one in _parsed(value)]

        yield Change("return-early", function.lineno, function.name, value, 0, edit)


def _nothings(annotation: str) -> list[str]:
    known = {"None": ["return None"], "bool": ["return True", "return False"], "int": ["return 0"]}
    if annotation in known:
        return known[annotation]
    for start, value in (("list[", "[]"), ("tuple[", "()"), ("dict[", "{}"), ("set[", "set()")):
        if annotation.startswith(start) and not (start == "tuple[" and not annotation.endswith("...]")):
            return [f"return {value}"]
    return ["return None"] if annotation.endswith("| None") else []


# --- edits ------------------------------------------------------------------------------------------------------------
def _set(name: str, change: Callable[..., object]) -> Callable[[ast.AST], None]:
    return lambda node: setattr(node, name, change(getattr(node, name)))


def _set_at(name: str, index: int, change: Callable[..., object]) -> Callable[[ast.AST], None]:
    def edit(node: ast.AST) -> None:
        values = getattr(node, name)
        values[index] = change(values[index])

    return edit


def _without(name: str, index: int) -> Callable[[ast.AST], None]:
    def edit(node: ast.AST) -> None:
        values = getattr(node, name)
        del values[index]
        if len(values) == 1 and isinstance(node, ast.BoolOp):
            values.append(ast.copy_location(ast.Constant(isinstance(node.op, ast.And)), values[0]))

    return edit


def _swap(name: str, index: int) -> Callable[[ast.AST], None]:
    def edit(node: ast.AST) -> None:
        values = getattr(node, name)
        values[index], values[index + 1] = values[index + 1], values[index]

    return edit


def _negated(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _not(test: ast.expr) -> str:
    return f"not ({_on_a_line(test)})"


def _header(statement: ast.With) -> ast.AST:
    return ast.copy_location(ast.Tuple([item.context_expr for item in statement.items], ast.Load()), statement)


def _parsed(statements: str) -> list[ast.stmt]:
    function = ast.parse(f"def f():\n {statements}").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.body


def _located(made: _Node, place: ast.AST) -> _Node:
    for node in ast.walk(made):
        ast.copy_location(node, place)
    return made
