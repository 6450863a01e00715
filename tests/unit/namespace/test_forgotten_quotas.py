"""A database forgets, while clients count: quotas, silent writers, files that are cut."""

from __future__ import annotations

import pytest

from tests.forgetful_database import ForgetfulDatabase
from tests.namespace_check import problems_of
from tests.namespace_world import HookedDatabase, World
from tests.unit.namespace.test_forgotten_commits import (
    Scene,
    Step,
    Tree,
    append,
    close,
    collect,
    create,
    delete,
    discard,
    mkdirs,
    play,
    rename,
    sync,
    write_file,
)


def set_quota(who: str, path: str, names: int | None = None, space: int | None = None) -> Step:
    def is_true(scene: Scene, _tree: Tree) -> bool:
        usage = scene.world.client().quota_usage(path)
        return (usage.names_quota, usage.space_quota) == (names, space)

    return Step(lambda scene: getattr(scene, who).set_quota(path, names=names, space=space), (), is_true)


def set_replication(who: str, path: str, replication: int) -> Step:
    return Step(lambda scene: getattr(scene, who).set_replication(path, replication), (path,))


def truncate(who: str, path: str, length: int) -> Step:
    return Step(
        lambda scene: getattr(scene, who).truncate(path, length),
        (path,),
        lambda _, tree: path in tree and len(tree[path][1] or b"") == length,
    )


def silence(seconds: float) -> Step:
    """Let writers be silent for a while: Ctrl-Z."""

    def call(scene: Scene) -> None:
        scene.world.clock.at_s += seconds

    return Step(call, ())


_H = ("/q/d/h", "/r/d/h")

SCRIPTS = {
    "quotas": (
        mkdirs("ann", "/q"),
        set_quota("ann", "/q", names=50, space=10_000),
        write_file("ann", "/q/f"),
        mkdirs("bob", "/r/d"),
        write_file("bob", "/r/d/f"),
        rename("bob", "/r/d", "/q/d"),
        create("ann", "/q/d/h", "one"),
        sync("ann", "one", *_H),
        set_replication("bob", "/q/d/f", 3),
        rename("ann", "/q/d", "/r/d"),
        set_quota("bob", "/r", names=40),
        sync("ann", "one", *_H),
        delete("ann", "/q/f"),
        mkdirs("ann", "/q/e"),
        write_file("bob", "/q/e/f"),
        delete("bob", "/q/e"),
        set_quota("ann", "/q"),
        collect("bob"),
        set_quota("bob", "/q", names=30),
        close("ann", "one", *_H),
        delete("ann", "/r"),
        collect("ann"),
        write_file("bob", "/q/z"),
    ),
    "silent writers": (
        write_file("ann", "/c/a"),
        append("ann", "/c/a", "one"),
        sync("ann", "one", "/c/a"),
        silence(61),
        append("bob", "/c/a", "two"),
        sync("bob", "two", "/c/a"),
        silence(1300),
        collect("ann"),
        sync("bob", "two", "/c/a"),
        append("ann", "/c/a", "three"),
        close("ann", "three", "/c/a"),
        truncate("bob", "/c/a", 10),
        sync("ann", "one", "/c/a"),
        close("ann", "one", "/c/a"),
        close("bob", "two", "/c/a"),
        discard("one", "/c/a"),
        discard("two", "/c/a"),
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize(
    ("inline_bytes", "most"),
    [(4, 2), pytest.param(4, 9, marks=pytest.mark.slow), pytest.param(1000, 9, marks=pytest.mark.slow)],
)
def test_any_newest_commits_are_forgotten_before_any_call(name: str, inline_bytes: int, most: int) -> None:
    calls = play(SCRIPTS[name], 1, 0, inline_bytes, keeps=False).calls
    assert calls > 20
    for call in range(1, calls + 1):
        for count in range(1, most + 1):
            play(SCRIPTS[name], call, count, inline_bytes, keeps=False)


def test_a_quota_that_is_back_counts_what_was_collected_meanwhile() -> None:
    """A collection sees no counters of a quota; then the database has the quota again."""
    database = ForgetfulDatabase()
    world = World(database=database)
    ann = world.client()
    ann.mkdirs("/d/old")
    ann.write_file("/d/old/file", b"12345")
    ann.set_quota("/d", names=10, space=100)
    ann.delete("/d/old", recursive=True)
    ann.set_quota("/d")
    to_do = ["forget"]

    def before(name: str, _argument: object) -> None:
        if name == "commit" and to_do:
            to_do.pop()
            database.forget(1)

    world.client(database=HookedDatabase(database, before)).collect()
    assert problems_of(database, world.store, "data/") == []
    ann.collect()
    usage = ann.quota_usage("/d")
    assert (usage.names, usage.space, to_do) == (1, 0, [])


@pytest.mark.parametrize("work", ["sweep", "repair"])
def test_a_stray_counter_is_left_alone_if_its_quota_is_back(work: str) -> None:
    """A quota goes while a collection subtracts from it, which leaves a counter; then the quota is back."""
    database = ForgetfulDatabase(keeps=False)
    world = World(database=database)
    ann = world.client()
    ann.mkdirs("/d/old")
    ann.set_quota("/d", names=10)
    ann.delete("/d/old", recursive=True)
    to_do = ["forget that", "clear the quota", "collect"]

    def before_the_collection(name: str, _argument: object) -> None:
        if name == "commit" and len(to_do) == 2:
            to_do.pop()
            ann.set_quota("/d")

    def before(name: str, _argument: object) -> None:
        if name == "snapshot" and len(to_do) == 3:
            to_do.pop()
            world.client(database=HookedDatabase(database, before_the_collection)).collect(most_steps=1)
            assert [record.number for record in world.records(b"u").values()] == [-1]
        elif name == "commit" and len(to_do) == 1:
            to_do.pop()
            database.forget(2)

    client = world.client(database=HookedDatabase(database, before))
    found = client.sweep().records if work == "sweep" else len(client.repair().repaired)
    assert (found, to_do) == (0, [])
    assert problems_of(database, world.store, "data/") == []
