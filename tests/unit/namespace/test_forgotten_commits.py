"""A database forgets what it had acknowledged while its clients live on: nothing is mixed up, and no answer is untrue.

The newest commits are undone, as many as there are, before each call that the scripts make. What is lost is lost; but
each later operation changes nothing except its own paths, and what it reports to be there is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

import pytest

from holdfast.errors import CorruptDataError, FencedError, HoldfastError
from holdfast.namespace import Namespace
from holdfast.namespace.configuration import load_configuration
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.maintenance import MaintenanceLock
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.opening import reconfigure_namespace
from holdfast.namespace.operation import Changes
from holdfast.namespace.view import View
from holdfast.stores.base import Delete
from tests.forgetful_database import ForgetfulDatabase
from tests.namespace_check import problems_of
from tests.namespace_world import HookedDatabase, World

_CHUNK = "{who}{at:07d}"
_CHUNK_BYTES = 10
_A_DAY_S = 24 * 3600.0


def test_two_directories_stay_two() -> None:
    database = ForgetfulDatabase()
    world = World(database=database)
    ann, bob = world.client(), world.client()
    ann.mkdirs("/ann")
    database.forget(database.newest - 1)  # the namespace stays
    bob.mkdirs("/other")
    bob.mkdirs("/bob")
    bob.write_file("/bob/file", b"1")
    ann.mkdirs("/ann")
    assert not ann.exists("/ann/file")
    assert ann.delete("/ann", recursive=True)
    ann.collect()
    assert bob.open("/bob/file").read() == b"1"
    assert problems_of(database) == []


@pytest.mark.parametrize("inline_bytes", [4, 1000])
def test_a_file_without_what_was_synced_is_not_closed(inline_bytes: int) -> None:
    database = ForgetfulDatabase()
    world = World(database=database, inline_bytes=inline_bytes)
    client = world.client()
    file = client.create_with_lease("/file")
    file.write(b"first ")
    file.sync()
    file.write(b"second")
    database.forget(1)
    with pytest.raises(LeaseLostError, match="the database has lost"):
        file.close()
    file.discard()
    assert client.open("/file").read() == b""
    assert client.status("/file").is_open is False, "the lease is given back"
    assert problems_of(database, world.store, "data/", strays=True) == []


def test_a_blob_stays_until_the_end_of_its_lease_cannot_be_undone() -> None:
    """A sweep finds the blob of a writer whose lease was taken away; then the lease is back."""
    database = ForgetfulDatabase(keeps=False)
    world = World(database=database)
    ann, bob = world.client(), world.client()
    file = ann.create_with_lease("/file")
    file.write(b"0123456789")
    file.prepare()
    database.forget_nothing_before()
    world.clock.at_s += world.safety_age_s + 1
    assert bob.recover_lease("/file")
    assert bob.sweep().blobs == 1
    bob.collect()
    database.forget(database.newest)
    assert file.close() is not None
    assert bob.open("/file").read() == b"0123456789"


def _an_old_blob_of_a_writer() -> tuple[ForgetfulDatabase, World, FileWriter]:
    """Write a file under a lease; its blob is older than the safety age, and not published."""
    database = ForgetfulDatabase(keeps=False)
    world = World(database=database)
    file = world.client().create_with_lease("/file")
    file.write(b"0123456789")
    file.prepare()
    world.clock.at_s += world.safety_age_s + 1
    return database, world, file


@pytest.mark.parametrize("work", ["sweep", "repair"])
def test_a_lease_that_is_back_since_the_snapshot_protects_its_blob(work: str) -> None:
    """The database forgets the end of a lease, and nothing else, before what was found is noted or repaired."""
    database, world, file = _an_old_blob_of_a_writer()
    bob = world.client()
    file._file.renew_if_due()
    client, to_do = _forgetting_the_end_of_a_lease(world, database, bob)
    found = client.sweep().blobs if work == "sweep" else len(client.repair().repaired)
    assert (found, to_do) == (0, [])
    assert file.close() is not None
    assert problems_of(database, world.store, "data/") == []
    world.clock.at_s += world.safety_age_s + 1
    bob.collect()
    assert bob.open("/file").read() == b"0123456789"


@pytest.mark.parametrize("work", ["sweep", "repair"])
def test_a_lease_that_ended_before_those_were_read_is_back_only_with_the_lock_lost(work: str) -> None:
    """So the leases are read before the root is written, which the database forgets with what came before it."""
    database, world, file = _an_old_blob_of_a_writer()
    bob = world.client()
    kept: list[int] = []

    def before(name: str, argument: object) -> None:
        if name == "scan" and argument == b"l" and not kept:
            kept.append(database.newest)
            assert bob.recover_lease("/file")
        elif name.startswith("snapshot.") and len(kept) == 1:
            kept.append(database.newest)
            database.forget(database.newest - kept[0])

    with pytest.raises(FencedError, match="start over"):
        getattr(world.client(database=HookedDatabase(database, before)), work)()
    assert len(kept) == 2
    assert file.close() is not None
    world.clock.at_s += world.safety_age_s + 1
    bob.collect()
    assert bob.open("/file").read() == b"0123456789"


@pytest.mark.parametrize("work", ["sweep", "repair"])
def test_what_a_lease_that_is_back_has_published_since_is_left_alone(work: str) -> None:
    """The writer is faster than the sweep or the repair: when that commits, the lease has ended once more."""
    database, world, file = _an_old_blob_of_a_writer()
    bob = world.client()
    client, to_do = _forgetting_the_end_of_a_lease(world, database, bob, then=file.close)
    getattr(client, work)()
    assert to_do == []
    assert problems_of(database, world.store, "data/") == []
    assert [one.path for one in bob.walk("/")] == ["/file"]
    for _ in range(2):
        world.clock.at_s += world.safety_age_s + 1
        bob.collect()
    assert bob.open("/file").read() == b"0123456789"


def _an_unfinished_blob() -> tuple[ForgetfulDatabase, World, FileWriter, bytes]:
    """Return a writer of "/file", and what it has written: a part of it is in the store."""
    database = ForgetfulDatabase(keeps=False)
    world = World(database=database)
    content = b"0" * 9_000_000
    file = world.client().create_with_lease("/file")
    file.write(content)
    return database, world, file, content


def test_an_unfinished_blob_is_not_given_up_if_its_lease_is_back_since_the_snapshot() -> None:
    database, world, file, content = _an_unfinished_blob()
    bob = world.client()
    world.clock.at_s += world.safety_age_s + 1
    file._file.renew_if_due()
    client, to_do = _forgetting_the_end_of_a_lease(world, database, bob)
    assert (client.sweep().uploads, to_do) == (0, [])
    assert file.close() is not None
    assert bob.open("/file").read() == content


def test_an_unfinished_blob_is_not_given_up_if_its_lease_from_before_the_sweep_is_back() -> None:
    """The lock of the sweep is lost then, too, and the sweep finds that out before it gives up the blob, not after."""
    database, world, file, content = _an_unfinished_blob()
    bob = world.client()
    database.forget_nothing_before()
    world.clock.at_s += world.safety_age_s + 1
    assert bob.recover_lease("/file")
    to_do = ["forget"]

    def during_the_snapshot(name: str, _argument: object) -> None:
        if name.startswith("snapshot.") and to_do:
            to_do.pop()
            database.forget(database.newest)

    with pytest.raises(FencedError, match="start over"):
        world.client(database=HookedDatabase(database, during_the_snapshot)).sweep()
    assert file.close() is not None
    assert bob.open("/file").read() == content


@pytest.mark.parametrize("work", ["sweep", "repair"])
def test_whoever_has_lost_the_lock_to_nobody_can_start_over(work: str) -> None:
    database = ForgetfulDatabase(keeps=False)
    world = World(database=database)
    to_do = ["forget"]

    def before(name: str, _argument: object) -> None:
        if name == "snapshot" and to_do:
            to_do.clear()
            database.forget(1)

    with pytest.raises(FencedError, match="start over"):
        getattr(world.client(database=HookedDatabase(database, before)), work)()
    getattr(world.client(), work)()


@pytest.mark.parametrize("first", ["sweep", "repair"])
def test_the_bytes_of_a_lost_file_come_back_by_a_late_repair_that_no_sweep_precedes(first: str) -> None:
    """As docs/reference/databases-that-forget.md advises."""
    database = ForgetfulDatabase(keeps=False)
    world = World(database=database)
    client = world.client()
    client.write_file("/file", b"0123456789")
    database.forget(1)
    assert client.repair().repaired == [], "a writer could still publish them"
    assert client.check().counts.in_progress == 1
    world.clock.at_s += world.safety_age_s + 1
    if first == "sweep":
        assert client.sweep().blobs == 1
    client.repair()
    found = [client.open(one.path).read() for one in client.walk("/") if not one.is_directory]
    assert found == ([b"0123456789"] if first == "repair" else [])


# --- every call, every number of commits ------------------------------------------------------------------------------
Tree = Mapping[str, tuple[int, bytes | None]]
"""By path: the id; the content of a file."""


@dataclass
class Scene:
    """Two clients of one database, which forgets once."""

    world: World
    database: ForgetfulDatabase
    ann: Namespace
    bob: Namespace
    writers: dict[str, FileWriter] = field(default_factory=dict)

    def write(self, name: str, who: str) -> None:
        """Write a chunk that tells its writer and its place."""
        writer = self.writers[name]
        writer.write(_CHUNK.format(who=who, at=writer.position).encode())

    def tree(self) -> Tree:
        reader = self.world.client()
        try:
            return {
                one.path: (one.id, None if one.is_directory else reader.open(one.path).read())
                for one in reader.walk("/")
            }
        except CorruptDataError as error:
            raise AssertionError("a file cannot be read") from error  # no refusal of the step that goes on


@dataclass(frozen=True)
class Step:
    """A call of a client.

    Attributes:
        paths: what it may change, with everything below.
        is_true: tells from the tree afterwards whether the report of success is true.
    """

    call: Callable[[Scene], object]
    paths: tuple[str, ...]
    is_true: Callable[[Scene, Tree], bool] = lambda _scene, _tree: True


def mkdirs(who: str, path: str) -> Step:
    return Step(lambda scene: getattr(scene, who).mkdirs(path), (path,), lambda _, tree: path in tree)


def write_file(who: str, path: str) -> Step:
    data = _CHUNK.format(who=who, at=0).encode()
    return Step(
        lambda scene: getattr(scene, who).write_file(path, data, overwrite=True),
        (path,),
        lambda _, tree: path in tree and tree[path][1] == data,
    )


def create(who: str, path: str, name: str) -> Step:
    def call(scene: Scene) -> None:
        scene.writers[name] = getattr(scene, who).create_with_lease(path, overwrite=True)

    return Step(call, (path,), lambda _, tree: path in tree)


def append(who: str, path: str, name: str) -> Step:
    def call(scene: Scene) -> None:
        scene.writers[name] = getattr(scene, who).append(path)

    return Step(call, (path,), lambda _, tree: path in tree)


def sync(who: str, name: str, *paths: str) -> Step:
    def call(scene: Scene) -> None:
        scene.write(name, who)
        scene.writers[name].sync()

    return Step(call, paths, lambda scene, tree: _is_whole(scene.writers[name], tree))


def close(who: str, name: str, *paths: str) -> Step:
    def call(scene: Scene) -> None:
        scene.write(name, who)
        scene.writers[name].close()

    return Step(call, paths, lambda scene, tree: _is_whole(scene.writers[name], tree))


def discard(name: str, *paths: str) -> Step:
    return Step(lambda scene: scene.writers[name].discard(), paths)


def rename(who: str, source: str, target: str) -> Step:
    return Step(
        lambda scene: getattr(scene, who).rename(source, target),
        (source, target),
        lambda _, tree: target in tree and source not in tree,
    )


def delete(who: str, path: str) -> Step:
    return Step(
        lambda scene: getattr(scene, who).delete(path, recursive=True), (path,), lambda _, tree: path not in tree
    )


def collect(who: str) -> Step:
    return Step(lambda scene: getattr(scene, who).collect(), ())


def wait() -> Step:
    """Let the safety age pass. No database forgets what is older: see the reference."""

    def call(scene: Scene) -> None:
        scene.database.forget_nothing_before()
        scene.world.clock.at_s += _A_DAY_S

    return Step(call, ())


def tick() -> Step:
    """Let a second pass."""

    def call(scene: Scene) -> None:
        scene.world.clock.at_s += 1

    return Step(call, ())


def _is_whole(writer: FileWriter, tree: Tree) -> bool:
    """Check whether the file of a writer has everything that was written."""
    number = writer._template.file_id
    found = [content for id_, content in tree.values() if id_ == number]
    return len(found) == 1 and found[0] is not None and len(found[0]) == writer.position


SCRIPTS = {
    "directories": (
        mkdirs("ann", "/a"),
        mkdirs("bob", "/b"),
        write_file("ann", "/a/f"),
        write_file("bob", "/b/f"),
        rename("bob", "/b", "/a/b"),
        mkdirs("bob", "/b/c"),
        write_file("ann", "/b/c/f"),
        delete("ann", "/a"),
        mkdirs("bob", "/a"),
        write_file("bob", "/a/g"),
        collect("ann"),
        rename("ann", "/b/c", "/a/c"),
        delete("bob", "/b"),
        collect("bob"),
        wait(),
        delete("ann", "/a/c"),
        collect("bob"),
    ),
    "writers": (
        mkdirs("ann", "/a"),
        create("ann", "/a/f", "one"),
        sync("ann", "one", "/a/f"),
        mkdirs("bob", "/b"),
        sync("ann", "one", "/a/f"),
        write_file("bob", "/b/f"),
        append("bob", "/b/f", "two"),
        sync("bob", "two", "/b/f"),
        rename("bob", "/a", "/c"),
        sync("ann", "one", "/a/f", "/c/f"),
        sync("bob", "two", "/b/f"),
        close("ann", "one", "/a/f", "/c/f"),
        discard("one", "/a/f", "/c/f"),
        append("bob", "/c/f", "three"),
        write_file("ann", "/b/f"),
        close("bob", "two", "/b/f"),
        discard("two", "/b/f"),
        sync("bob", "three", "/c/f"),
        close("bob", "three", "/c/f"),
        discard("three", "/c/f"),
        wait(),
        collect("ann"),
        append("ann", "/c/f", "four"),
        close("ann", "four", "/c/f"),
    ),
}


@dataclass
class Forgetting:
    """Undo commits before one call of the database, and remember the tree after that."""

    call: int
    count: int
    scene: Scene | None = None
    calls: int = 0
    commits: int = 0
    tree: Tree | None = None
    is_over: bool = False

    def before(self, _name: str, _argument: object) -> None:
        self.calls += 1
        if self.calls == self.call and self.scene is not None:
            self.commits = self.scene.database.commits
            self.scene.database.forget(min(self.count, self.scene.database.newest))
            self.tree = self.scene.tree()
            self.is_over = True


def play(
    script: tuple[Step, ...],
    call: int,
    count: int,
    inline_bytes: int,
    *,
    keeps: bool,
    safety_age_s: int = int(_A_DAY_S) // 2,
) -> Forgetting:
    """Run a script on a database that forgets `count` commits before its `call`-th call, and check each step."""
    database = ForgetfulDatabase(keeps=keeps)
    forgetting = Forgetting(call, count)
    world = World(database=database, inline_bytes=inline_bytes, safety_age_s=safety_age_s)
    database.forget_nothing_before()
    hooked = HookedDatabase(database, forgetting.before)
    scene = Scene(world, database, world.client(database=hooked), world.client(database=hooked))
    forgetting.scene = scene
    after: Tree = {}
    for step in script:
        before, commits = after, database.commits
        forgetting.tree = None
        is_done = False
        with suppress(HoldfastError, KeyError):  # it is refused; or its file could not be opened
            step.call(scene)
            is_done = True
        if not forgetting.is_over:
            continue
        after = scene.tree()
        changed = differences(before if forgetting.tree is None else forgetting.tree, after)
        assert all(any(_is_below(path, own) for own in step.paths) for path in changed), (step, changed)
        is_undone = forgetting.tree is not None and forgetting.commits > commits
        assert not is_done or is_undone or step.is_true(scene, after), step
        check(scene, after)
    return forgetting


def differences(before: Tree, after: Tree) -> set[str]:
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/") or top.startswith(f"{path}/")


def check(scene: Scene, tree: Tree) -> None:
    """Check that the namespace is whole, and that the bytes of each file are where their writers put them."""
    assert problems_of(scene.database, scene.world.store, "data/", strays=True) == []
    for path, (_, content) in tree.items():
        for start in range(0, len(content or b""), _CHUNK_BYTES):
            chunk = (content or b"")[start : start + _CHUNK_BYTES].decode()
            assert int(chunk[3:]) == start, (path, content)


@pytest.mark.parametrize(
    ("inline_bytes", "keeps", "most"),
    [
        (4, False, 3),
        pytest.param(4, False, 9, marks=pytest.mark.slow),
        pytest.param(4, True, 9, marks=pytest.mark.slow),
        pytest.param(1000, False, 9, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", SCRIPTS)
def test_any_newest_commits_are_forgotten_before_any_call(name: str, inline_bytes: int, keeps: bool, most: int) -> None:
    calls = play(SCRIPTS[name], 1, 0, inline_bytes, keeps=keeps).calls
    assert calls > 20
    for call in range(1, calls + 1):
        for count in range(1, most + 1):
            play(SCRIPTS[name], call, count, inline_bytes, keeps=keeps)


COLLECTED_AT_ONCE = (
    write_file("ann", "/f"),
    write_file("bob", "/g"),
    tick(),
    delete("bob", "/f"),
    write_file("bob", "/g"),
    tick(),
    collect("ann"),
    mkdirs("bob", "/a"),
    tick(),
    collect("ann"),
)
"""With a safety age of 0, bytes are deleted a second after their file."""


def test_bytes_stay_until_the_deletion_of_their_file_is_durable() -> None:
    calls = play(COLLECTED_AT_ONCE, 1, 0, 4, keeps=True, safety_age_s=0).calls
    for call in range(1, calls + 1):
        for count in range(1, 10):
            play(COLLECTED_AT_ONCE, call, count, 4, keeps=True, safety_age_s=0)


def test_a_configuration_that_is_lost_before_it_is_flushed_is_written_again() -> None:
    database = ForgetfulDatabase()
    world = World(database=database)
    database.forget_nothing_before()
    crashes = [1]

    def crash(name: str, _argument: object) -> None:
        if name == "make_durable" and crashes:
            database.forget(crashes.pop())

    client = world.client(database=HookedDatabase(database, crash))
    assert reconfigure_namespace(client, safety_age_s=77).safety_age_s == 77
    database.forget(database.newest)
    assert load_configuration(database).safety_age_s == 77


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_sweep_whose_last_commit_is_undone_is_no_success(lost: int) -> None:
    database = ForgetfulDatabase()
    world = World(database=database)
    database.forget_nothing_before()
    with pytest.raises(FencedError) if lost else nullcontext():
        with MaintenanceLock.hold(database, world.environment, "sweep") as lock:
            assert lock.commit(Changes(None), View((), {}))
            database.forget(lost)


def test_a_deletion_of_a_certain_object_is_looked_for_once_it_is_durable() -> None:
    database = ForgetfulDatabase()
    world = World(database=database)
    store = NamespaceStore(world.client())
    store.put("f", b"1")
    database.forget_nothing_before()
    crashes = [1]

    def crash(name: str, _argument: object) -> None:
        if name == "make_durable" and crashes:
            database.forget(crashes.pop())

    crashing = NamespaceStore(world.client(database=HookedDatabase(database, crash)))
    with suppress(HoldfastError):
        crashing.apply([Delete("f", store.head("f").etag)])
        assert store.namespace.find("/f") is None
    assert not crashes


def _forgetting_the_end_of_a_lease(
    world: World, database: ForgetfulDatabase, ender: Namespace, then: Callable[[], object] = lambda: None
) -> tuple[Namespace, list[str]]:
    """Return a client at whose snapshot the lease of /file ends, which its next commit forgets; and what is to come.

    Args:
        then: what the writer does before that commit.
    """
    to_do = ["end the lease", "forget that"]

    def before(name: str, _argument: object) -> None:
        if name == "snapshot" and len(to_do) == 2:
            to_do.pop(0)
            assert ender.recover_lease("/file")
        elif name == "commit" and len(to_do) == 1:
            to_do.pop()
            database.forget(1)
            then()

    return world.client(database=HookedDatabase(database, before)), to_do
