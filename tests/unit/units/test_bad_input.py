"""Functions and inputs that are wrong: a clear error names the unit, nothing is half done, and the job can go on."""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from types import FunctionType
from typing import Any

import pytest

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    InvalidRequestError,
    TransactionConflictError,
    UnavailableError,
)
from holdfast.records.row_keys import Row
from holdfast.runtime import Alarm
from holdfast.transactions.base import MAX_NUMBER, MAX_VALUE_BYTES
from holdfast.units.execution import UnitExecution
from holdfast.units.job_input import digest_task_units
from holdfast.units.progress import Statistics, TaskProgress
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import MAX_ID_BYTES, MOST_DEFERRED, SERVER, Unit, UnitSettings, encode_unit_id
from tests.children import Child
from tests.patience import PATIENCE_S
from tests.units_world import Shaky, UnitWorld, replayed, units

_KEYS = ("a", "b", "c", "d", "e")
_BAD = "d"
_LIMIT_S = 0.3  # a good unit takes much less, also on a busy machine

_SETTINGS = [
    pytest.param(UnitSettings(group=1), id="one by one"),
    pytest.param(UnitSettings(group=32), id="groups"),
    pytest.param(UnitSettings(buffering=SERVER), id="server"),
]


def good(txn: Any, key: Row, value: object) -> None:
    txn.put("t", key, txn.get("t", "before", default="") + "+")
    txn.add("t", "count")


def with_bad(bad: Callable[[Any], object]) -> Callable[[Any, Row, object], None]:
    """Return a function that does something wrong in one unit, after writes."""

    def step(txn: Any, key: Row, value: object) -> None:
        good(txn, key, value)
        if key == _BAD:
            txn.put("t", "half", "done")
            bad(txn)

    return step


def raises(txn: Any) -> None:
    raise KeyError("oops")


def ends_a_generator(txn: Any) -> None:
    raise GeneratorExit


def is_cancelled(txn: Any) -> None:
    raise CancelledError("by the loop")


class _WithoutText(Exception):
    def __str__(self) -> str:
        raise KeyError("a field of the error")


def raises_what_has_no_text(txn: Any) -> None:
    raise _WithoutText


def swallows_a_wrong_call(txn: Any) -> None:
    with suppress(Exception):
        txn.get_many("t", 5)


def swallows_a_missing_table(txn: Any) -> None:
    try:
        txn.get("missing", 1)
    except InvalidRequestError:
        txn.put("t", "table", "there is none")


def reads_forever(txn: Any) -> None:
    for number in count():
        txn.get("t", number)


def adds_too_much(txn: Any) -> None:
    txn.add("t", "sum", MAX_NUMBER)
    txn.add("t", "sum", MAX_NUMBER)


def _without_lines(function: FunctionType) -> FunctionType:
    """Return a function of instructions that are on no line of its file, as a compiler's own are."""
    return FunctionType(function.__code__.replace(co_linetable=b""), function.__globals__)


_BADS: dict[str, tuple[Callable[[Any], object], str]] = {
    "raises": (raises, r"error=\"KeyError: 'oops'\" at='.*test_bad_input.py:\d+'"),
    "raises on no line": (_without_lines(raises), rf"at='.*test_bad_input.py:{raises.__code__.co_firstlineno}'"),
    "a library raises": (lambda txn: int("x"), "ValueError: invalid literal"),
    "ends the process": (lambda txn: sys.exit("enough"), r"error='SystemExit: enough' at='.*test_bad_input.py:\d+'"),
    "ends a generator": (ends_a_generator, r"error='GeneratorExit' at='.*test_bad_input.py:\d+'"),
    "is cancelled": (is_cancelled, r"error='CancelledError: by the loop' at='.*test_bad_input.py:\d+'"),
    "ends an iterator": (lambda txn: next(iter(())), "error='StopIteration'"),
    "raises what has no text": (raises_what_has_no_text, r"error='_WithoutText' at='.*test_bad_input.py:\d+'"),
    "a set": (lambda txn: txn.put("t", 1, {1}), "a value is bytes.*at='.*test_bad_input.py"),
    "none": (lambda txn: txn.put("t", 1, None), "None is no value"),
    "a large value": (lambda txn: txn.put("t", 1, bytes(MAX_VALUE_BYTES)), "a value is limited"),
    "a large value with history": (lambda txn: txn.put("h", 1, bytes(MAX_VALUE_BYTES - 1)), "a value is limited"),
    "a missing table": (lambda txn: txn.get("missing", 1), "no such table"),
    "a missing table that it catches": (swallows_a_missing_table, "no such table"),
    "a wrong call that it catches": (swallows_a_wrong_call, "TypeError: 'int' object is not iterable"),
    "a wrong row": (lambda txn: txn.get("t", 1.5), "a row is a text"),
    "too many reads": (reads_forever, "reads more cells than it may.*max_reads=50"),
    "too many rows": (lambda txn: txn.get_many("t", count()), "reads more cells than it may"),
    "too large a sum": (adds_too_much, "a number is limited to"),
    "a full counter": (lambda txn: txn.add("t", "full", 5), "a counter would leave the range"),
    "a full counter that it reads": (
        lambda txn: (txn.get("t", "full"), txn.add("t", "full", 5)),
        "a counter would leave the range",
    ),
    "adds to a text": (lambda txn: txn.add("t", "text"), "only an integer can be added to.*row='text' column='value'"),
    "adds to a text that it reads": (
        lambda txn: (txn.get("t", "text"), txn.add("t", "text")),
        "only an integer can be added to.*row='text'",
    ),
    "adds to a text, and reads it": (
        lambda txn: (txn.add("t", "text"), txn.get("t", "text")),
        "only an integer can be added to.*row='text' column='value'",
    ),
    "emits to nothing": (lambda txn: txn.emit("x"), "the job has no work list"),
}


@pytest.mark.parametrize("settings", _SETTINGS)
@pytest.mark.parametrize("name", _BADS)
def test_a_bad_unit(name: str, settings: UnitSettings) -> None:
    bad, words = _BADS[name]
    world = UnitWorld()
    world.db.create_table("h", history=True)
    world.db.add("t", "full", MAX_NUMBER)
    world.db.put("t", "text", "five")
    limited = UnitSettings(group=settings.group, buffering=settings.buffering, max_reads=50)
    with pytest.raises(InvalidRequestError, match=rf"^the function of a unit failed.*{words}.*unit='d'"):
        world.run(with_bad(bad), _KEYS, limited)
    done = {("full", "value"): MAX_NUMBER, ("text", "value"): "five"}
    assert world.cells == replayed(good, _KEYS[:3]) | done
    assert world.progress.done == 3 and not world.progress.is_finished
    assert world.run(good, _KEYS, limited).skipped == 3
    assert world.cells == replayed(good, _KEYS) | done


def test_a_table_that_was_dropped_between_two_runs_is_not_just_created() -> None:
    """The units that are done have written to it, and do not run again; nothing tells a new table from one of old."""
    world = UnitWorld()
    with pytest.raises(InvalidRequestError, match=r"of the unit was written: mend it, and run .* error=.KeyError"):
        world.run(with_bad(raises), _KEYS)
    world.db.drop_table("t")
    advice = r"mend it, or create the table; if it was dropped since the job began, write again what .*do not run again"
    with pytest.raises(InvalidRequestError, match=rf"{advice} error=.*no such table.*table='t'"):
        world.run(good, _KEYS)
    assert world.progress.done == 3


def test_the_line_is_that_of_the_function() -> None:
    world = UnitWorld()
    with pytest.raises(InvalidRequestError) as caught:
        world.run(with_bad(raises), _KEYS)
    line = raises.__code__.co_firstlineno + 1
    assert caught.value.variables["at"] == f"{__file__}:{line}"
    assert isinstance(caught.value.__cause__, KeyError)


class _BrokenOff(Exception):
    """What a signal handler of the function raises inside a call of the database."""


def test_a_function_that_breaks_off_a_call_of_the_database_is_named() -> None:
    """A transaction with locks is over then, and refuses to check what the unit has read."""
    world = UnitWorld()
    broken = False

    def before(_number: int, name: str) -> None:
        nonlocal broken
        if name == "read":
            broken = True
            raise _BrokenOff
        if name == "apply" and broken:
            raise InvalidRequestError("the transaction is over: begin another one")

    def goes_on(txn: Any, key: Row, value: object) -> None:
        with suppress(_BrokenOff):
            txn.get("t", key)

    task = world.task(goes_on, UnitSettings(buffering=SERVER), database=Shaky(world.inner, before))
    with pytest.raises(InvalidRequestError, match=r"error='_BrokenOff'.*unit='a'"):
        task.run(units(_KEYS))
    assert world.cells == {} and world.progress.done == 0


# --- transactions that are used where they are not valid --------------------------------------------------------------
@pytest.mark.parametrize("settings", _SETTINGS)
def test_a_transaction_that_was_kept_writes_nothing(settings: UnitSettings) -> None:
    """Neither as a part of the unit that runs, nor after the commit."""
    world = UnitWorld()
    kept: list[Any] = []
    refused: list[str] = []

    def keeps(txn: Any, key: Row, value: object) -> None:
        good(txn, key, value)
        kept.append(txn)
        if len(kept) > 1:
            with suppress(InvalidRequestError):
                kept[0].put("t", "late", key)
            with pytest.raises(InvalidRequestError, match="the unit of this transaction has ended"):
                kept[0].get("t", "late")
            refused.append(str(key))

    world.run(keeps, _KEYS, settings)
    assert world.cells == replayed(good, _KEYS)
    assert refused == list(_KEYS[1:])


@pytest.mark.parametrize("settings", _SETTINGS)
def test_a_transaction_belongs_to_one_thread(settings: UnitSettings) -> None:
    world = UnitWorld()

    def elsewhere(txn: Any) -> None:
        with ThreadPoolExecutor(1) as pool, suppress(InvalidRequestError):
            pool.submit(txn.add, "t", "elsewhere").result(PATIENCE_S)

    with pytest.raises(InvalidRequestError, match=r"belongs to the thread in which its function was called.*unit='d'"):
        world.run(with_bad(elsewhere), _KEYS, settings)
    assert world.cells == replayed(good, _KEYS[:3])


@pytest.mark.parametrize("settings", _SETTINGS)
def test_a_transaction_belongs_to_one_process(settings: UnitSettings) -> None:
    """What a forked child writes, its parent never commits: so it is refused in the child."""
    world = UnitWorld()
    told: list[list[str]] = []

    def in_a_child(txn: Any, key: Row, value: object) -> None:
        calls: list[Callable[[], object]] = [
            lambda: txn.get("t", key),
            lambda: txn.put("t", key, 1),
            lambda: txn.add("t", "sum"),
            lambda: txn.delete("t", key),
            lambda: txn.scan("t"),
        ]
        told.append(Child(lambda: [_refusal(call) for call in calls]).result())
        good(txn, key, value)

    world.run(in_a_child, _KEYS[:1], settings)
    assert [["let the child return what it has found" in one for one in found] for found in told] == [[True] * 5]
    assert world.cells == replayed(good, _KEYS[:1])


def _refusal(call: Callable[[], object]) -> str:
    try:
        return f"no error: {call()!r}"
    except InvalidRequestError as error:
        return error.message


# --- the database fails, and the function goes on ---------------------------------------------------------------------
def careless(txn: Any, key: Row, value: object) -> None:
    """Take a failed read for an absent cell, and try elsewhere: what failed first counts."""
    try:
        seen = txn.get("t", "seen", default=0)
    except BaseException:  # noqa: BLE001 # that code of users may do so is what is tested
        seen = -1
        with ThreadPoolExecutor(1) as pool:
            pool.submit(txn.get, "t", "seen")
    txn.put("t", "seen", seen + 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnavailableError("the database is away"), None),
        (AccessDeniedError("the password is wrong"), AccessDeniedError),
        (CorruptDataError("a record is damaged"), CorruptDataError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
@pytest.mark.parametrize("settings", _SETTINGS)
def test_a_failure_that_the_function_swallows(
    settings: UnitSettings, error: BaseException, expected: type[BaseException] | None
) -> None:
    world = UnitWorld()
    left = [error]

    def before(number: int, name: str) -> None:
        if name in ("get_many", "read") and number == 3 and left:
            raise left.pop()

    shaky = Shaky(world.inner, before)
    if expected is not None:
        with pytest.raises(expected):
            world.task(careless, settings, database=shaky).run(units(_KEYS))
    world.task(careless, settings, database=shaky).run(units(_KEYS))
    assert world.cells == replayed(careless, _KEYS)


# --- what is not there any more ---------------------------------------------------------------------------------------
def mixed(txn: Any, key: Row, value: object) -> None:
    """Fail if two cells differ that are always written together."""
    if txn.get("t", "left") != txn.get("t", "right"):
        raise KeyError("left and right differ")
    txn.add("t", key)


def mixed_exit(txn: Any, key: Row, value: object) -> None:
    """End the process if two cells differ that are always written together."""
    if txn.get("t", "left") != txn.get("t", "right"):
        sys.exit("left and right differ")
    txn.add("t", key)


def endless(txn: Any, key: Row, value: object) -> None:
    """Loop as long as two cells differ that are always written together."""
    txn.add("t", key)
    left, right = txn.get("t", "left"), txn.get("t", "right")
    while left != right:
        pass


@pytest.mark.parametrize("settings", _SETTINGS[:2])
@pytest.mark.parametrize("function", [mixed, mixed_exit, endless])
def test_a_failure_because_of_a_mixed_state_is_no_failure(
    function: Callable[..., None], settings: UnitSettings
) -> None:
    """Another transaction writes both cells between the two reads of a unit: it runs again."""
    world = UnitWorld()
    left = [1, 2]

    def before(number: int, name: str) -> None:
        if left and number in (4, 9):
            both = left.pop()
            world.db.transact(lambda cells: [cells.put("t", row, both) for row in ("left", "right")])

    database = Shaky(world.inner, before)
    limited = UnitSettings(group=settings.group, timeout_s=_LIMIT_S)
    execution = UnitExecution(function, database, limited, world.environment, alarm=Alarm())
    statistics = ShardTask(execution, database, world.job, 0).run(units(_KEYS))
    assert statistics.stale >= 1 and statistics.units == len(_KEYS)
    assert all(world.cells[key, "value"] == 1 for key in _KEYS)


def once(txn: Any, key: Row, value: object) -> None:
    """Fail if the unit has run before, as an insert does that finds its own row."""
    if txn.get("t", key) is not None:
        raise KeyError("this unit has run before")
    txn.put("t", key, 1)


@pytest.mark.parametrize("settings", _SETTINGS)
def test_a_unit_that_sees_what_its_twin_has_done_does_not_fail(settings: UnitSettings) -> None:
    calls = Shaky(UnitWorld().inner)
    UnitWorld().task(once, settings, database=calls).run(units(_KEYS))
    for call in range(2, 16):
        world = UnitWorld()

        def before(number: int, name: str, call: int = call, world: UnitWorld = world) -> None:
            if number == call and settings.buffering != SERVER:
                world.run(once, _KEYS, settings)

        world.task(once, settings, database=Shaky(world.inner, before)).run(units(_KEYS))
        assert world.cells == replayed(once, _KEYS)


# --- time -------------------------------------------------------------------------------------------------------------
def never_ends(txn: Any) -> None:
    while True:
        pass


def never_ends_reading(txn: Any) -> None:
    while True:
        txn.get("t", "before")


def swallows_all(txn: Any) -> None:
    for _ in range(10**9):
        with suppress(Exception):
            txn.get("t", "before")


@pytest.mark.parametrize("settings", _SETTINGS)
@pytest.mark.parametrize("bad", [never_ends, never_ends_reading, swallows_all])
def test_a_unit_that_never_ends(bad: Callable[[Any], object], settings: UnitSettings) -> None:
    world = UnitWorld()
    limited = UnitSettings(group=settings.group, buffering=settings.buffering, timeout_s=_LIMIT_S, max_reads=10**9)
    execution = UnitExecution(with_bad(bad), world.inner, limited, world.environment)
    with pytest.raises(
        InvalidRequestError, match=rf"did not end in time.*timeout_s={_LIMIT_S}.*at='.*test_bad_input.py:\d+' unit='d'"
    ):
        ShardTask(execution, world.inner, world.job, 0).run(units(_KEYS))
    assert world.cells == replayed(good, _KEYS[:3])
    world.run(good, _KEYS)
    assert world.cells == replayed(good, _KEYS)


def test_an_unreachable_database_is_waited_for_as_long_as_was_asked() -> None:
    world = UnitWorld()

    def before(number: int, name: str) -> None:
        if number > 3:
            raise UnavailableError("the database is away")

    before_s = world.clock.at_s
    with pytest.raises(UnavailableError, match="away"):
        world.task(good, UnitSettings(patience_s=30), database=Shaky(world.inner, before)).run(units(_KEYS))
    assert 30 <= world.clock.at_s - before_s < 33
    world.run(good, _KEYS)
    assert world.cells == replayed(good, _KEYS)


# --- conflicts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("group", [1, 32])
def test_a_unit_that_always_conflicts(group: int) -> None:
    """Its function changes what it has read by another way than its transaction."""
    world = UnitWorld()
    runs = []

    def quarrels(txn: Any) -> None:
        runs.append(1)
        txn.get("t", ("hot", len(runs)))
        world.db.add("t", ("hot", len(runs)))

    settings = UnitSettings(group=group, rounds=3)
    with pytest.raises(
        TransactionConflictError,
        match=r"conflicts however often.*unit='d' cells=.*row \('hot', \d+\), column 'value'",
    ):
        world.run(with_bad(quarrels), _KEYS, settings)
    assert len(runs) < 30
    cells = world.cells
    assert ("half", "value") not in cells and (_BAD, "value") not in cells
    assert world.progress.done == len(_KEYS) - 1
    world.run(good, _KEYS)
    assert world.cells["count", "value"] == len(_KEYS)


# --- cells that are named beforehand ----------------------------------------------------------------------------------
def names_forever(key: Row, value: object) -> Iterator[tuple[str, int]]:
    for number in count():
        yield "t", number if key == _BAD else 0
        if key != _BAD:
            return


def names_the_same_forever(key: Row, value: object) -> Iterator[tuple[str, int]]:
    while True:
        if key == _BAD:
            continue
        yield "t", 0
        return


_NAMES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "raises": (lambda key, value: [("t", 1 // (key != _BAD))], "ZeroDivisionError.*at='.*test_bad_input.py"),
    "no cell": (lambda key, value: ["t" if key == _BAD else ("t", 1)], "TypeError"),
    "a missing table": (lambda key, value: [("missing" if key == _BAD else "t", 1)], "no such table"),
    "too many": (names_forever, "reads more cells than it may"),
    "never ends": (names_the_same_forever, "did not end in time"),
}


@pytest.mark.parametrize("group", [1, 32])
@pytest.mark.parametrize("name", _NAMES)
def test_a_function_that_names_cells_and_fails(name: str, group: int) -> None:
    reads, words = _NAMES[name]
    world = UnitWorld()
    settings = UnitSettings(group=group, max_reads=20, timeout_s=_LIMIT_S)
    execution = UnitExecution(good, world.inner, settings, world.environment, reads=reads)
    with pytest.raises(InvalidRequestError, match=rf"{words}.*unit='d'"):
        ShardTask(execution, world.inner, world.job, 0).run(units(_KEYS))
    assert world.cells == replayed(good, _KEYS[:3])


def test_named_cells_are_read_in_one_call() -> None:
    world = UnitWorld()
    shaky = Shaky(world.inner)
    task = world.task(good, database=shaky, reads=lambda key, value: [("t", "before")])
    task.run(units(_KEYS))
    assert world.cells == replayed(good, _KEYS)
    assert shaky.calls.count("get_many") == 4  # the progress twice, the table, and all cells


# --- the input --------------------------------------------------------------------------------------------------------
def test_a_function_that_changes_its_value() -> None:
    """Each run of a unit gets a fresh value; the one that the caller has is never changed."""
    world = UnitWorld()
    given = {"list": [1]}
    left = [1, 2, 3]

    def step(txn: Any, key: Row, value: Any) -> None:
        value["list"].append(2)
        txn.put("t", key, [*value["list"], txn.get("t", "hot", default=0) * 0])

    def before(number: int, name: str) -> None:
        if name == "commit" and left:
            left.pop()
            world.db.add("t", "hot")

    one = Unit.of("a", given)
    given["list"].append(5)
    world.task(step, database=Shaky(world.inner, before)).run([one])
    assert world.cells["a", "value"] == [1, 2, 0]
    assert given == {"list": [1, 5]}


def test_a_database_that_refuses_access_is_no_failure_of_a_unit() -> None:
    """Also not when it refuses the commit that follows one that the unit has made impossible."""
    world, refusals = UnitWorld(), [AccessDeniedError("the role may not write"), InvalidRequestError("too large")]

    def before(number: int, name: str) -> None:
        if name == "commit" and refusals:
            raise refusals.pop()

    with pytest.raises(AccessDeniedError, match="the role may not write"):
        world.task(lambda txn, key, value: txn.put("t", key, 1), database=Shaky(world.inner, before)).run(units(["a"]))
    assert not refusals and not world.cells


def test_a_value_that_cannot_be_copied() -> None:
    with pytest.raises(InvalidRequestError, match=r"cannot be copied for each run.*unit='a' type='function'"):
        Unit.of("a", lambda: None)


def test_a_key_that_is_too_long() -> None:
    with pytest.raises(InvalidRequestError, match=r"^the key of a unit is limited to 32768 bytes.* bytes=32769$"):
        Unit.of("k" * (MAX_ID_BYTES - 2), None)


@pytest.mark.parametrize(
    "key", ["k" * 32_000, b"k" * 32_000, (7, "k" * 32_000), (7,) * 2000], ids=["text", "bytes", "pair", "many parts"]
)
def test_a_long_key_does_not_hide_what_went_wrong(key: Row) -> None:
    begin = repr(key)[:50]
    with pytest.raises(InvalidRequestError, match="error='ValueError: bad'") as caught:
        UnitWorld().run(fails_always, [key])
    assert begin in str(caught.value) and len(str(caught.value)) < 600
    with pytest.raises(InvalidRequestError, match="two units have the same key") as caught:
        digest_task_units([encode_unit_id(key), encode_unit_id(key)], repeats=False)
    assert begin in str(caught.value) and len(str(caught.value)) < 600


def fails_always(txn: Any, key: Row, value: object) -> None:
    raise ValueError("bad")


def test_the_longest_keys_of_units_that_are_put_off_fit_into_the_record() -> None:
    longest = [Unit.of(f"{number:0{MAX_ID_BYTES - 3}}", None).id for number in range(MOST_DEFERRED + 1)]
    assert {len(one) for one in longest} == {MAX_ID_BYTES}
    progress = TaskProgress(last=longest[-1], done=99, deferred=longest, statistics=Statistics())
    assert len(progress.to_bytes()) <= MAX_VALUE_BYTES


def test_reads_of_a_group_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units that read much share no commit: what they have read stays in memory until then."""
    monkeypatch.setattr("holdfast.units.execution._MOST_READ", 20)
    world = UnitWorld()

    def step(txn: Any, key: Row, value: object) -> None:
        txn.get_many("t", range(15))
        txn.add("t", key)

    assert world.run(step, range(100, 110)).groups == 5
