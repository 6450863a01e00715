"""A database forgets, while clients count: quotas, silent writers, files that are cut."""

from __future__ import annotations

import pytest

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
