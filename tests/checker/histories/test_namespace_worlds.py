"""A toy namespace over the toy store: inodes by (parent id, name), each operation one optimistic transaction.

The paths that an operation traverses are read, not written: a commit that does not check them produces cycles and
orphans. A directory stays empty only until another operation inserts: reading a list of children does not prove it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import cast

import pytest

from holdfast.errors import (
    ConflictError,
    DestinationExistsError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
)
from holdfast_checker.histories.history import Operation, Recorder, record
from holdfast_checker.histories.linearizable import Model, linearizable_property
from holdfast_checker.histories.tree import Row, tree_property
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.explore import Exploration, explore
from holdfast_checker.kernel.process import Actor, Port
from holdfast_checker.kernel.world import View, World
from tests.checker.histories.toy_store import (
    STORE,
    Commit,
    Committed,
    OptimisticStore,
    Transaction,
    Validation,
    commit,
    image_of,
    is_commit,
)

ROOT = "0"
DIRECTORIES = {"a": "1", "b": "2", "d": "3"}
ANSWERS = (DestinationExistsError, PreconditionError, NotFoundError, InvalidRequestError)

Program = Callable[[Port], None]
Body = Callable[[Transaction], tuple[str, ...]]
"""Reads and writes; returns the prefixes that have to be empty at the commit."""


# --- operations -------------------------------------------------------------------------------------------------------
def _split(path: str) -> list[str]:
    return path.strip("/").split("/")


def _walk(transaction: Transaction, names: list[str]) -> list[str]:
    """Return the ids on a path, starting with the root's."""
    ids = [ROOT]
    for name in names:
        row = cast("tuple[str, bool] | None", transaction.get(f"{ids[-1]}/{name}"))
        if row is None:
            raise NotFoundError("no such directory: make it first", name=name)
        ids.append(row[0])
    return ids


def _rename(source: str, target: str) -> Body:
    def body(transaction: Transaction) -> tuple[str, ...]:
        *above, old = _split(source)
        *directory, new = _split(target)
        moved_from = f"{_walk(transaction, above)[-1]}/{old}"
        row = cast("tuple[str, bool] | None", transaction.get(moved_from))
        if row is None:
            raise NotFoundError("nothing to rename: check the name", name=source)
        into = _walk(transaction, directory)
        if row[0] in into:
            raise InvalidRequestError("a directory cannot go below itself: choose another target", name=target)
        moved_to = f"{into[-1]}/{new}"
        if transaction.get(moved_to) is not None:
            raise DestinationExistsError("the target is there: choose another name", name=target)
        transaction.put(moved_from, None)
        transaction.put(moved_to, row)
        return ()

    return body


def _make(path: str, *, is_directory: bool, guard: str = "") -> Body:
    def body(transaction: Transaction) -> tuple[str, ...]:
        *above, name = _split(path)
        directory = _walk(transaction, above)[-1]
        key = f"{directory}/{name}"
        if transaction.get(key) is not None:
            raise DestinationExistsError("there is one: choose another name", name=path)
        if guard:
            held = transaction.get(f"guard/{directory}")
            if guard == "written":
                transaction.put(f"guard/{directory}", held)
        transaction.put(key, (transaction.version, is_directory))
        return ()

    return body


def _remove(path: str, *, guard: str = "") -> Body:
    def body(transaction: Transaction) -> tuple[str, ...]:
        *above, name = _split(path)
        key = f"{_walk(transaction, above)[-1]}/{name}"
        row = cast("tuple[str, bool] | None", transaction.get(key))
        if row is None:
            raise NotFoundError("nothing to remove: check the name", name=path)
        if guard in ("read", "written"):
            transaction.put(f"guard/{row[0]}", transaction.get(f"guard/{row[0]}"))
        if transaction.scan(f"{row[0]}/"):
            raise PreconditionError("the directory is not empty: remove what is in it", name=path)
        transaction.put(key, None)
        return (f"{row[0]}/",) if guard == "scanned again" else ()

    return body


def _run(name: str, args: tuple[str, ...], body: Body, tries: int = 2) -> Program:
    """Run the operation as its caller sees it: retried after conflicts; its errors are answers."""

    def act(port: Port) -> None:
        for number in range(1, tries + 1):
            transaction = Transaction(port, f"{port.name} {number}")
            empty = body(transaction)
            try:
                transaction.commit(empty=empty)
            except ConflictError:
                if number == tries:
                    raise
                continue
            return

    def run(port: Port) -> None:
        try:
            record(port, name, args, lambda: act(port), answers=ANSWERS)
        except (*ANSWERS, ConflictError, OutcomeUnknownError):
            return

    return run


def _move(source: str, target: str) -> Program:
    return _run("rename", (source, target), _rename(source, target))


# --- what has to hold -------------------------------------------------------------------------------------------------
def _rows(view: View) -> list[Row]:
    rows = [Row(ROOT, None, "")]
    for key, log in image_of(view).logs:
        parent, _, name = key.partition("/")
        value = log[-1][1]
        if value is not None and parent not in ("guard", "request"):
            number, is_directory = cast("tuple[str, bool]", value)
            rows.append(Row(number, parent, name, is_directory))
    return rows


def _sequential(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Model a namespace as a set of paths."""
    paths = cast("frozenset[str]", state)
    first = cast("str", operation.args[0])
    above = first.rpartition("/")[0]
    below = {path for path in paths if path.startswith(f"{first}/")}
    if operation.name == "make":
        if above and above not in paths:
            return paths, "NotFoundError"
        return (paths, "DestinationExistsError") if first in paths else (paths | {first}, None)
    if first not in paths:
        return paths, "NotFoundError"
    if operation.name == "remove":
        return (paths, "PreconditionError") if below else (paths - {first}, None)
    target = cast("str", operation.args[1])
    into = target.rpartition("/")[0]
    if into and into not in paths:
        return paths, "NotFoundError"
    if f"{into}/".startswith(f"{first}/"):
        return paths, "InvalidRequestError"
    if target in paths:
        return paths, "DestinationExistsError"
    moved = {target + path.removeprefix(first) for path in (first, *below)}
    return (paths - below - {first}) | moved, None


def _explore(
    programs: dict[str, Program], validation: Validation = Validation.ALL, faults: dict[Fault, int] | None = None
) -> Exploration:
    world = World(
        name="namespace",
        summary="",
        actors=tuple(Actor(name, program) for name, program in programs.items()),
        resources={
            STORE: OptimisticStore(
                {f"{ROOT}/{name}": (number, True) for name, number in DIRECTORIES.items()}, validation
            ),
            "history": Recorder(),
        },
        properties=(
            tree_property(rows_of=_rows),
            linearizable_property(
                model=Model(initial=frozenset(f"/{name}" for name in DIRECTORIES), apply=_sequential)
            ),
        ),
        budgets={Fault.CRASH: 1, Fault.LOST_REPLY: 1} if faults is None else faults,
        observed=is_commit,
    )
    return explore(world)


# --- renames ----------------------------------------------------------------------------------------------------------
CROSSING = {"ann": _move("/a", "/b/a"), "bob": _move("/b", "/a/b")}
RING = {"ann": _move("/a", "/b/a"), "bob": _move("/b", "/d/b"), "cy": _move("/d", "/a/d")}


def test_three_renames_make_a_cycle_if_ancestors_are_not_checked() -> None:
    found = _explore(RING, Validation.WRITTEN, faults={})
    assert "'b' (id '2') in 'd' (id '3')" in found.findings["N1"].broke


def test_crossing_renames_make_a_cycle_if_ancestors_are_not_checked() -> None:
    found = _explore(CROSSING, Validation.WRITTEN)
    assert found.findings["N1"].broke == (
        "a cycle that the root does not reach: 'b' (id '2') in 'a' (id '1') in 'b' (id '2')"
    )
    assert "N4" in found.findings


@pytest.mark.parametrize(
    "programs",
    [
        CROSSING,
        RING,
        {"ann": _move("/a", "/b/a"), "bob": _move("/b", "/a/b"), "cy": _move("/a", "/c")},
        {"ann": _move("/a", "/a/b/c"), "bob": _move("/b", "/a/b")},
        {"ann": _move("/a", "/c"), "bob": _move("/b", "/c")},
    ],
    ids=["crossing", "ring", "three", "below itself", "one target"],
)
def test_renames_with_checked_ancestors(programs: dict[str, Program]) -> None:
    found = _explore(programs)
    assert found.complete
    assert not found.findings
    assert found.faults[Fault.CRASH] and found.faults[Fault.LOST_REPLY]


# --- a directory that is removed while something is put into it -------------------------------------------------------
def _orphans(guard: str, validation: Validation = Validation.ALL) -> Exploration:
    create = _run("make", ("/a/x",), _make("/a/x", is_directory=False, guard=guard))
    remove = _run("remove", ("/a",), _remove("/a", guard=guard))
    return _explore({"ann": create, "bob": remove}, validation)


@pytest.mark.parametrize(
    ("guard", "validation"),
    [
        ("", Validation.ALL),
        ("scanned again", Validation.WRITTEN),
        ("read", Validation.ALL),  # the removal cannot see an insert that only reads the guard and commits before it
    ],
)
def test_a_removed_directory_leaves_an_orphan(guard: str, validation: Validation) -> None:
    found = _orphans(guard, validation)
    assert found.findings["N1"].broke == "'x' (id 'ann 1') is an orphan: directory '1' does not exist"


@pytest.mark.parametrize("guard", ["scanned again", "written"])
def test_a_guard_against_orphans(guard: str) -> None:
    found = _orphans(guard)
    assert found.complete
    assert not found.findings


# --- retries ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("request_id", [True, False])
def test_an_operation_is_sent_again_after_a_lost_reply(request_id: bool) -> None:
    """A create that took effect answers "it exists already" when it is retried; a request id gives the right answer."""

    def create(port: Port) -> None:
        inserts = ("request/1",) if request_id else ()
        for number in (1, 2):
            transaction = Transaction(port, f"{port.name} {number}")
            try:
                if not (number == 2 and request_id):
                    _make("/c", is_directory=True)(transaction)
                puts = tuple(transaction.puts.items())
                if commit(port, Commit(version=transaction.version, puts=puts, inserts=inserts)) in (
                    Committed.DONE,
                    Committed.ALREADY_DONE,
                ):
                    return
            except OutcomeUnknownError:
                continue

    def run(port: Port) -> None:
        try:
            record(port, "make", ("/c",), lambda: create(port), answers=ANSWERS)
        except DestinationExistsError:
            return

    found = _explore({"ann": run}, faults={Fault.LOST_REPLY: 1})
    assert found.complete
    assert found.faults[Fault.LOST_REPLY]
    if request_id:
        assert not found.findings
    else:
        assert found.findings["N4"].broke == (
            "ann: make('/c') -> 'DestinationExistsError' is impossible: at that time "
            "it could have answered None (explained: nothing)"
        )
