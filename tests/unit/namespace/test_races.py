"""Eight processes do the same or opposite things at the same time; afterwards the records prove that nothing broke.

Each process has its own connections, hints and ids, as on different machines. What each of them was told is compared
with the final state: what was acknowledged is there, what was refused is not.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest

from holdfast.errors import HoldfastError, TransactionConflictError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import (
    BeingWrittenError,
    LeaseLostError,
    PathExistsError,
    PathNotFoundError,
    QuotaExceededError,
    RenameError,
)
from holdfast.namespace.keys import new_inode_id
from holdfast.namespace.maintenance import LeaderElection
from holdfast.runtime import SeededRandom, SystemClock
from tests.children import run_in_children
from tests.shared_namespace import SHARED, SharedNamespace

pytestmark = pytest.mark.parametrize("shared", SHARED, indirect=True)

PROCESSES = 8
T = TypeVar("T")


def _race(shared: SharedNamespace, work: Callable[[Namespace, int, SeededRandom], T]) -> list[T]:
    """Run something in eight processes, each with its own client and random numbers; return the results."""

    def run(number: int) -> T:
        with shared.open() as namespace:
            return work(namespace, number, SeededRandom(number))

    return run_in_children(PROCESSES, run)


def _try(work: Callable[[], object], *errors: type[HoldfastError]) -> bool:
    """Run something that may lose a race; return whether it won."""
    try:
        work()
    except (*errors, TransactionConflictError):
        return False
    return True


def _content(namespace: Namespace, path: str) -> bytes:
    return namespace.open(path).read()


def test_one_of_many_creates_a_name(shared: SharedNamespace) -> None:
    names = [f"/d{number % 3}/{number}" for number in range(12 * shared.rounds)]

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> list[str]:
        data = b"%d" % number * (20 if number % 2 else 1)
        won = [name for name in names if _try(partial(namespace.write_file, name, data), PathExistsError)]
        made = [
            f"{name}-d"
            for name in names
            if _try(partial(namespace.mkdirs, f"{name}-d", parents=False), PathExistsError)
        ]
        return won + made

    results = _race(shared, work)
    won = Counter(name for names_of_one in results for name in names_of_one)
    assert won == Counter([*names, *(f"{name}-d" for name in names)])
    with shared.open() as namespace:
        for number, mine in enumerate(results):
            for name in mine:
                if not name.endswith("-d"):
                    assert _content(namespace, name) == b"%d" % number * (20 if number % 2 else 1)
    shared.is_whole_after_collection()


def test_the_last_of_many_overwrites(shared: SharedNamespace) -> None:
    def work(namespace: Namespace, number: int, chance: SeededRandom) -> int:
        for turn in range(6 * shared.rounds):
            namespace.write_file("/f", b"%d-%d;" % (number, turn) * (1 + number % 3), overwrite=True)
            assert len(set(_content(namespace, "/f").split(b";"))) == 2, "a mixture of two writers"
        return number

    _race(shared, work)
    with shared.open() as namespace:
        assert [one.name for one in namespace.list("/")] == ["f"]
    shared.is_whole_after_collection()


def test_crossing_renames_of_directories_make_no_cycle(shared: SharedNamespace) -> None:
    with shared.open() as namespace:
        for name in "abcd":
            namespace.write_file(f"/{name}/file-{name}", name.encode())

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> int:
        done = 0
        for _ in range(12 * shared.rounds):
            # Any directory may be anywhere, so look where they are, and move one into another one.
            found = {one.name: one.path for one in namespace.walk("/") if one.is_directory}
            source, target = chance.pick(sorted(found)), chance.pick([*sorted(found), ""])
            into = f"{found[target] if target else ''}/{source}"
            done += _try(
                partial(namespace.rename, found[source], into),
                *(PathNotFoundError, PathExistsError, RenameError),
            )
        return done

    assert sum(_race(shared, work)) > 0
    with shared.open() as namespace:
        names = sorted(one.name for one in namespace.walk("/"))
        assert names == [*"abcd", *(f"file-{name}" for name in "abcd")]
        for one in namespace.walk("/"):
            if not one.is_directory:
                assert one.path.endswith(f"/{one.name[-1]}/{one.name}"), "each directory kept its file"
    shared.is_whole_after_collection()


def test_a_directory_is_never_moved_below_itself(shared: SharedNamespace) -> None:
    """Half of the processes move the top into the bottom's place, the others the bottom out."""
    with shared.open() as namespace:
        namespace.mkdirs("/a/b/c/d")

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> None:
        for _ in range(10 * shared.rounds):
            if number % 2:
                _try(lambda: namespace.rename("/a", "/a/b/c/d/a"), RenameError, PathNotFoundError)
                _try(lambda: namespace.rename("/a", "/z/c/d/a"), RenameError, PathNotFoundError, PathExistsError)
                _try(lambda: namespace.rename("/z/c/d/a", "/a"), RenameError, PathNotFoundError, PathExistsError)
            else:
                _try(lambda: namespace.rename("/a/b", "/z"), RenameError, PathNotFoundError, PathExistsError)
                _try(lambda: namespace.rename("/z", "/a/b"), RenameError, PathNotFoundError, PathExistsError)

    _race(shared, work)
    with shared.open() as namespace:
        assert sorted(one.name for one in namespace.walk("/"))[-3:] in (["b", "c", "d"], ["c", "d", "z"])
    shared.is_whole_after_collection()


def test_nothing_is_created_in_a_directory_that_is_deleted(shared: SharedNamespace) -> None:
    def work(namespace: Namespace, number: int, chance: SeededRandom) -> int:
        done = 0
        for turn in range(12 * shared.rounds):
            if number % 4 == 0:
                _try(lambda: namespace.mkdirs("/d/e/f"))
                done += namespace.delete("/d", recursive=True)
            elif number % 4 == 1:
                done += _try(partial(namespace.write_file, f"/d/e/{number}-{turn}", b"12345678901"))
            elif number % 4 == 2:
                done += _try(partial(namespace.mkdirs, f"/d/e/{number}-{turn}/x/y"))
            else:
                done += _try(lambda: namespace.delete("/d/e"), HoldfastError)
                done += _try(lambda: namespace.rename("/d/e", "/d/f"), HoldfastError)
        return done

    results = _race(shared, work)
    assert min(results[:3]) > 0
    with shared.open() as namespace:
        assert shared.problems() == []
        namespace.delete("/d", recursive=True)
        assert list(namespace.walk("/")) == []
    shared.is_whole_after_collection()


def test_a_listing_shows_a_directory_whole_or_not_at_all(shared: SharedNamespace) -> None:
    names = [f"f{number:02}" for number in range(30)]

    def fill(namespace: Namespace, path: str) -> None:
        namespace.mkdirs(f"{path}-new")
        for name in names:
            namespace.mkdirs(f"{path}-new/{name}")
        namespace.rename(f"{path}-new", path)

    with shared.open() as namespace:
        fill(namespace, "/d")

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> Counter[str]:
        seen = Counter[str]()
        if number == 0:
            for turn in range(3 * shared.rounds):
                fill(namespace, f"/w{turn}")
                namespace.delete("/d", recursive=True)
                namespace.rename(f"/w{turn}", "/d")
            return seen
        turns = itertools.count(1)
        # On a busy machine, the directory may be absent whenever it is listed, until the first process has ended.
        while next(turns) <= 20 * shared.rounds or not (seen["whole"] or seen["partial"]):
            try:
                listed = [one.name for one in namespace.list("/d")]
                walked = [one.name for one in namespace.walk("/d")]
            except PathNotFoundError:
                seen["absent"] += 1
                continue
            seen["whole" if listed == walked == names else "partial"] += 1
        return seen

    results = _race(shared, work)
    assert sum(one["partial"] for one in results) == 0
    assert sum(one["whole"] for one in results) > 0
    shared.is_whole_after_collection()


def test_appenders_take_turns(shared: SharedNamespace) -> None:
    with shared.open() as namespace:
        namespace.write_file("/log", b"")

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> list[bytes]:
        written = []
        while len(written) < 4 * shared.rounds:
            piece = b"<%d-%d>" % (number, len(written)) * (1 + len(written) % 3)
            try:
                file = namespace.append("/log")
            except (BeingWrittenError, TransactionConflictError):
                continue
            with file:
                file.write(piece[: len(piece) // 2])
                if chance.happens(0.5):
                    file.sync()
                file.write(piece[len(piece) // 2 :])
            written.append(piece)
        return written

    results = _race(shared, work)
    with shared.open() as namespace:
        content = _content(namespace, "/log")
        for pieces in results:
            for piece in pieces:
                content = content.replace(piece, b"", 1) if len(pieces) else content
        assert content == b""
    shared.is_whole_after_collection()


def test_a_stolen_lease_lets_one_writer_through(shared: SharedNamespace) -> None:
    """Half of the processes write, the others take their leases away: what was acknowledged is there once."""
    with shared.open() as namespace:
        namespace.write_file("/log", b"")

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> Counter[bytes]:
        told = Counter[bytes]()
        for turn in range(12 * shared.rounds):
            if number % 2:
                _try(lambda: namespace.recover_lease("/log"))
                continue
            piece = b"<%d-%d>" % (number, turn) * (1 + turn % 2)
            try:
                with namespace.append("/log") as file:
                    file.write(piece)
            except (BeingWrittenError, LeaseLostError, TransactionConflictError):
                continue
            told[piece] += 1
        return told

    told = sum(_race(shared, work), Counter[bytes]())
    with shared.open() as namespace:
        content = _content(namespace, "/log")
        assert len(content) == sum(len(piece) * count for piece, count in told.items()), "more, or less, than was told"
        assert all(piece in content for piece in told)
        assert not namespace.status("/log").is_open
    shared.is_whole_after_collection()


def test_quotas_hold_against_all_at_once(shared: SharedNamespace) -> None:
    with shared.open() as namespace:
        namespace.mkdirs("/q/in")
        namespace.mkdirs("/out")
        namespace.set_quota("/q", names=12, space=200)

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> Counter[str]:
        done = Counter[str]()
        for turn in range(10 * shared.rounds):
            name = f"{number}-{turn % 3}"
            moves: dict[str, Callable[[], object]] = {
                "create": partial(namespace.write_file, f"/q/in/{name}", bytes(30), overwrite=True),
                "out": partial(namespace.rename, f"/q/in/{name}", f"/out/{name}", overwrite=True),
                "in": partial(namespace.rename, f"/out/{name}", f"/q/in/{name}"),
                "delete": partial(namespace.delete, f"/q/in/{name}"),
                "tree": partial(namespace.mkdirs, f"/q/{name}/a"),
                "prune": partial(namespace.delete, f"/q/{name}", recursive=True),
            }
            move = chance.pick(sorted(moves))
            done[move] += _try(moves[move], QuotaExceededError, PathNotFoundError, PathExistsError)
            found = namespace.content_summary("/q")
            assert found.files + found.directories <= 12
            assert found.space <= 200
        return done

    assert sum(_race(shared, work), Counter[str]()).keys() >= {"create", "delete", "tree", "prune"}
    shared.is_whole_after_collection()


def test_a_quota_that_is_set_in_the_middle_counts_right(shared: SharedNamespace) -> None:
    with shared.open() as namespace:
        namespace.mkdirs("/q/in")

    def work(namespace: Namespace, number: int, chance: SeededRandom) -> None:
        for turn in range(4 * shared.rounds):
            if number == 0:
                names = chance.pick([None, 1000])
                _try(partial(namespace.set_quota, "/q", names=names, space=None), HoldfastError)
            elif number == 1:
                _try(lambda: namespace.rename("/q", "/r"), PathNotFoundError, PathExistsError)
                _try(lambda: namespace.rename("/r", "/q"), PathNotFoundError, PathExistsError)
            else:
                _try(partial(namespace.mkdirs, f"/q/in/{number}/{turn}"), HoldfastError)
                _try(lambda: namespace.delete(f"/q/in/{number}", recursive=True), HoldfastError)

    _race(shared, work)
    shared.is_whole_after_collection()


def test_two_collectors_and_those_who_make_garbage(shared: SharedNamespace) -> None:
    def work(namespace: Namespace, number: int, chance: SeededRandom) -> int:
        trees = 0
        for turn in range(4 * shared.rounds):
            if number < 2:
                trees += namespace.collect().trees
                continue
            for leaf in range(3):
                namespace.write_file(f"/t{number}-{turn}/a/b{leaf}/f", b"12345678901" if leaf else b"1")
            assert namespace.delete(f"/t{number}-{turn}", recursive=True)
        return trees

    _race(shared, work)
    shared.is_whole_after_collection()
    with shared.open() as namespace:
        assert list(namespace.walk("/")) == []
        assert namespace.collect().trees == 0


def test_one_of_many_leads(shared: SharedNamespace) -> None:
    def work(namespace: Namespace, number: int, chance: SeededRandom) -> list[int]:
        election = LeaderElection(namespace.database, SystemClock(), f"process-{number}", term_s=3600)
        return [number for _ in range(5 * shared.rounds) if election.try_to_lead()]

    assert len({number for numbers in _race(shared, work) for number in numbers}) == 1


def test_ids_are_given_out_once(shared: SharedNamespace) -> None:
    def work(namespace: Namespace, number: int, chance: SeededRandom) -> list[int]:
        return [new_inode_id(namespace.environment) for _ in range(2500)]

    found = [number for numbers in _race(shared, work) for number in numbers]
    assert len(set(found)) == len(found)
