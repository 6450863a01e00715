"""The counters of quotas stay exact, whatever happens at the same time."""

from __future__ import annotations

import pytest

from holdfast.namespace import Namespace, listing
from holdfast.namespace.errors import DirectoryFrozenError, NamesQuotaExceededError, QuotaExceededError
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import entry_name_in_key, id_in_key, kind_range
from holdfast.namespace.paths import NsPath
from holdfast.namespace.trees import Kept, TreeUsageCounter
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World, all_records


def usage(world: World) -> dict[int, tuple[int, int]]:
    """Return the used names and space of each directory with a quota, by its id."""
    found = {}
    for key, record in world.records(b"i").items():
        inode = decode_inode(key, record.value)
        if inode.has_quota:
            counters = {
                entry_name_in_key(key): one.number
                for key, one in world.records(b"u").items()
                if id_in_key(key) == inode.quota_id
            }
            found[inode.id] = (counters.get(b"n", 0), counters.get(b"s", 0))
    return found


def _with_tree(world: World) -> Namespace:
    namespace = world.client()
    namespace.mkdirs("/d/old/deep")
    namespace.write_file("/d/old/deep/file", b"12345")
    namespace.write_file("/d/kept", b"123")
    return namespace


def _counter(namespace: Namespace) -> TreeUsageCounter:
    return namespace._trees


def test_a_tree_that_waits_for_its_collection_counts_once() -> None:
    """The deleted tree counts for the quota that it was deleted under, not for one that came later."""
    world = World()
    namespace = _with_tree(world)
    number = namespace.status("/d").id
    namespace.set_quota("/d", names=100)
    assert usage(world) == {number: (5, 8)}
    namespace.delete("/d/old", recursive=True)
    namespace.set_quota("/d")
    namespace.set_quota("/d", names=10)
    assert usage(world) == {number: (2, 3)}
    namespace.collect()
    assert usage(world) == {number: (2, 3)}
    assert len(world.records(b"u")) == 2


def test_other_limits_leave_the_counters_alone() -> None:
    world = World()
    namespace = _with_tree(world)
    number = namespace.status("/d").id
    namespace.set_quota("/d", names=100)
    namespace.delete("/d/old", recursive=True)
    namespace.set_quota("/d", names=50, space=1000)
    assert usage(world) == {number: (5, 8)}
    namespace.collect()
    assert usage(world) == {number: (2, 3)}


def test_counters_that_change_are_no_exceeded_quota() -> None:
    """Quotas are cleared while somebody adds files."""
    world = World()
    namespace = _with_tree(world)
    namespace.set_quota("/d", names=100)
    other = world.client()
    names = iter(range(3))

    def add_a_file(call: str, argument: object) -> None:
        if call == "commit" and (number := next(names, None)) is not None:
            other.write_file(f"/d/{number}", b"x")

    world.client(database=HookedDatabase(world.database, add_a_file)).set_quota("/d")
    assert world.records(b"u") == {}
    assert other.content_summary("/d").names_quota is None


def test_an_empty_directory_takes_its_counters_along() -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs("/d")
    namespace.set_quota("/d", names=3)
    namespace.delete("/d")
    assert world.records(b"u") == {}


def test_a_tree_is_counted_to_the_end_of_its_last_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 2)
    world = World()
    namespace = world.client()
    for number in range(5):
        namespace.write_file(f"/d/{number}", b"12")
    namespace.set_quota("/d", names=6, space=10)
    assert usage(world) == {namespace.status("/d").id: (6, 10)}


@pytest.mark.parametrize("source", ["/q/a/f", "/q/a/d"])
def test_what_moves_below_a_quota_leaves_its_counters_alone(source: str) -> None:
    """It leaves one of the quotas below."""
    world = World()
    namespace = world.client()
    namespace.mkdirs("/q/a/d")
    namespace.mkdirs("/q/b")
    namespace.write_file("/q/a/f", b"12")
    for path in ("/q", "/q/a"):
        namespace.set_quota(path, names=10, space=20)
    all_of_it, left = usage(world)[namespace.status("/q").id], usage(world)[namespace.status("/q/a").id]
    assert (all_of_it, left) == ((5, 2), (3, 2))
    namespace.rename(source, "/q/b/new")
    assert usage(world)[namespace.status("/q").id] == all_of_it
    assert usage(world)[namespace.status("/q/a").id] == (2, 0 if source.endswith("f") else 2)


def test_a_recount_replaces_the_counters() -> None:
    world = World()
    namespace = _with_tree(world)
    number = namespace.status("/d").id
    namespace.set_quota("/d", names=5, space=8)
    for key in world.records(b"u"):
        world.database.commit(Commit(adds={key: 3}))
    _counter(namespace).recount_usage(NsPath.parse("/d"), namespace.caller)
    assert usage(world) == {number: (5, 8)}
    assert len(world.records(b"u")) == 2
    summary = namespace.content_summary("/d")
    assert (summary.names_quota, summary.space_quota) == (5, 8)
    with pytest.raises(QuotaExceededError):
        namespace.mkdirs("/d/more")


def test_a_tree_does_not_leave_a_directory_that_is_being_counted() -> None:
    world = World()
    namespace = _with_tree(world)
    namespace.mkdirs("/q")
    namespace.set_quota("/q", names=100)
    counter, caller = _counter(namespace), namespace.caller
    with counter.freeze_and_count_tree(NsPath.parse("/d/old"), caller) as inner:
        pass
    assert inner.names == 3
    other = world.client()
    with _counter(other).freeze_and_count_tree(NsPath.parse("/d"), caller) as outer:
        with pytest.raises(DirectoryFrozenError):
            namespace.rename("/d/old", "/q/old")
    assert outer.names == 5
    namespace.rename("/d/old", "/q/old")
    assert usage(world)[namespace.status("/q").id] == (4, 5)


@pytest.mark.parametrize(("call", "number"), [("scan", 2), ("commit", 2)])
def test_an_expired_mark_makes_the_count_fail(call: str, number: int) -> None:
    """The client is too slow: during the count, or between the count and the rename."""
    world = World()
    namespace = _with_tree(world)
    namespace.mkdirs("/q")
    namespace.set_quota("/q", names=100)
    other, calls = world.client(), []

    def interfere(name: str, argument: object) -> None:
        calls.append(name)
        if name == call and calls.count(call) == number:
            world.clock.at_s += 3600
            other.write_file("/d/old/late", b"late!")

    slow = world.client(database=HookedDatabase(world.database, interfere))
    with pytest.raises(DirectoryFrozenError):
        slow.rename("/d/old", "/q/old")
    assert namespace.exists("/d/old/late")
    assert usage(world)[namespace.status("/q").id] == (1, 0)
    assert not [one for one in _inodes(world) if one.moving]


def test_who_removes_an_expired_mark_makes_its_own_change_too() -> None:
    """The mark is on the directory that is changed."""
    world = World()
    namespace = _with_tree(world)
    with _counter(namespace).freeze_and_count_tree(NsPath.parse("/d"), namespace.caller):
        world.clock.at_s += 3600
        world.client().set_permission("/d", 0o750)
        assert not [one for one in _inodes(world) if one.moving]
    assert oct(namespace.status("/d").mode) == oct(0o750)


def test_a_mark_that_another_clock_has_ended_makes_the_count_fail() -> None:
    """The clock of the other client is an hour ahead, so it takes the mark for expired and changes the tree."""
    world = World()
    namespace = _with_tree(world)
    namespace.mkdirs("/q")
    namespace.set_quota("/q", names=100)
    other, steps = world.client(), []

    def interfere(call: str, argument: object) -> None:
        steps.append(call)
        if call == "scan" and steps.count("scan") == 2:
            world.clock.at_s += 3600
            other.write_file("/d/old/late", b"late!")
            world.clock.at_s -= 3600

    hooked = world.client(database=HookedDatabase(world.database, interfere))
    with pytest.raises(DirectoryFrozenError):
        hooked.rename("/d/old", "/q/old")
    assert usage(world)[namespace.status("/q").id] == (1, 0)
    namespace.rename("/d/old", "/q/old")
    assert usage(world)[namespace.status("/q").id] == (5, 10)


def test_a_count_does_not_depend_on_the_path() -> None:
    """An ancestor of the counted tree is renamed during the count, and renamed back after it."""
    world = World()
    namespace = _with_tree(world)
    namespace.mkdirs("/q")
    namespace.set_quota("/q", names=100)
    other, calls = world.client(), []

    def interfere(name: str, argument: object) -> None:
        calls.append(name)
        if name == "scan" and calls.count("scan") == 2:
            other.rename("/d", "/e")
        elif name == "commit" and calls.count("commit") == 2:
            other.rename("/e", "/d")

    # The hints of this client are old, so that its rename is not refused before the second commit.
    hooked = world.client(database=HookedDatabase(world.database, interfere))
    hooked.rename("/d/old", "/q/old")
    assert usage(world)[namespace.status("/q").id] == (4, 5)


def _inodes(world: World) -> list[Inode]:
    start, end = kind_range(b"i")
    return [decode_inode(key, record.value) for key, record in world.database.scan(start, end, 1000).records]


@pytest.mark.parametrize("is_counted", [False, True])
def test_a_directory_takes_the_place_of_an_empty_one_in_a_full_quota(is_counted: bool) -> None:
    """Both are one name, as in HDFS; nothing is left to collect."""
    world = World()
    namespace = world.client()
    namespace.mkdirs("/q/empty")
    namespace.mkdirs("/x")
    if is_counted:
        namespace.set_quota("/q/empty", names=3)
    namespace.set_quota("/q", names=2)
    namespace.rename("/x", "/q/empty", overwrite=True)
    assert namespace.quota_usage("/q").names == 2
    assert world.records(b"r") == {}
    assert namespace.check().totals == {}
    namespace.mkdirs("/y/z")
    with pytest.raises(NamesQuotaExceededError):
        namespace.rename("/y", "/q/empty", overwrite=True)
    assert namespace.exists("/y/z") and namespace.check().totals == {}


@pytest.mark.parametrize("has_quota", [True, False])
def test_a_quota_that_stays_is_the_one_that_another_client_has_just_set(has_quota: bool) -> None:
    """Two clients set one quota each at the same time: both are there in the end."""
    world = World()
    other = _with_tree(world)
    if has_quota:
        other.set_quota("/d", names=50, space=50)
    is_due = [True]

    def set_the_other(call: str, _: object) -> None:
        if call == "commit" and is_due:
            is_due.clear()
            other.set_quota("/d", names=Kept.AS_IT_IS, space=70)

    world.client(database=HookedDatabase(world.database, set_the_other)).set_quota("/d", names=60, space=Kept.AS_IT_IS)
    summary = other.content_summary("/d")
    assert (summary.names_quota, summary.space_quota) == (60, 70)
    assert [*usage(world).values()] == [(5, 8)]


def test_quotas_that_both_stay_change_nothing() -> None:
    world = World()
    namespace = _with_tree(world)
    namespace.set_quota("/d", names=50)
    before = all_records(world.database)
    for path in ("/d", "/d/old"):
        namespace.set_quota(path, names=Kept.AS_IT_IS, space=Kept.AS_IT_IS)
    assert all_records(world.database) == before
