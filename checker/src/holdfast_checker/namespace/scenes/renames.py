"""Scenes: names that are created, and directories that are renamed, at the same time."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")

RENAMES = (
    Scene(
        name="same-name",
        summary="two create a file of the same name, and a third one reads it",
        scripts={
            "ann": (("create", "/f", "ann"),),
            "bob": (("create", "/f", "bob"),),
            "eve": (("read", "/f"), ("read", "/f")),
        },
        reached=("refused",),
    ),
    Scene(
        name="common-parents",
        summary="two make directories whose parents are missing, and a third one walks",
        scripts={
            "ann": (("mkdirs", "/x/y/a"),),
            "bob": (("mkdirs", "/x/y/b"),),
            "eve": (("walk", "/"),),
        },
    ),
    Scene(
        name="crossing-renames",
        summary="two directories are renamed into each other, and a third process walks",
        start=(("mkdirs", "/a"), ("mkdirs", "/b")),
        scripts={
            "ann": (("rename", "/a", "/b/x"),),
            "bob": (("rename", "/b", "/a/y"),),
            "eve": (("walk", "/"),),
        },
        reached=("refused",),
    ),
    Scene(
        name="under-itself",
        summary="a directory goes below another one, which goes below the first one, from deeper below",
        start=(("mkdirs", "/a/b/c"), ("mkdirs", "/d/e")),
        scripts={
            "ann": (("rename", "/a", "/d/e/a"),),
            "bob": (("rename", "/d", "/a/b/c/d"),),
        },
        reached=("refused",),
    ),
    Scene(
        name="into-itself",
        summary="a directory is to go below one of its own, which goes elsewhere meanwhile",
        start=(("mkdirs", "/a/b"),),
        scripts={"ann": (("rename", "/a", "/a/b/x"),), "bob": (("rename", "/a/b", "/z"),)},
        reached=("refused",),
    ),
    Scene(
        name="two-steps-under-itself",
        summary="a directory goes below another one that is moved into it by two renames",
        start=(("mkdirs", "/a/b"), ("mkdirs", "/c"), ("mkdirs", "/d")),
        scripts={
            "ann": (("rename", "/a", "/c/a"),),
            "bob": (("rename", "/c", "/d/c"), ("rename", "/d", "/a/b/d")),
        },
        reached=("refused",),
    ),
    Scene(
        name="replaced-directory",
        summary="a directory replaces an empty one, in which another process creates a file",
        start=(("mkdirs", "/a"), ("create", "/a/old", "old"), ("mkdirs", "/b")),
        scripts={
            "ann": (("replace", "/a", "/b"),),
            "bob": (("create", "/b/new", "bob"), ("walk", "/")),
        },
        reached=_BOTH,
    ),
    Scene(
        name="below-a-rename",
        summary="an ancestor is renamed, a file is created below it, and a third process lists (decision 18)",
        start=(("mkdirs", "/a/b"),),
        scripts={
            "ann": (("rename", "/a", "/z"),),
            "bob": (("create", "/a/b/f", "bob"),),
            "eve": (("list", "/z/b"), ("list", "/z/b")),
        },
    ),
    Scene(
        name="list-the-old-path",
        summary="a directory is listed under a path that it loses, before a file is created in it",
        start=(("mkdirs", "/a/b"),),
        scripts={
            "ann": (("rename", "/a", "/z"), ("create", "/z/b/f", "ann")),
            "eve": (("list", "/a/b"),),
        },
    ),
    Scene(
        name="below-a-rename-source",
        summary="an ancestor is renamed, a file below it goes elsewhere, and a third process lists",
        start=(("create", "/a/b/f", "old"), ("mkdirs", "/c")),
        scripts={
            "ann": (("rename", "/a", "/z"),),
            "bob": (("rename", "/a/b/f", "/c/f"),),
            "eve": (("list", "/z/b"), ("list", "/c")),
        },
        reached=_BOTH,
    ),
    Scene(
        name="stale-hints",
        summary="a process that has looked at paths before finds them changed: what it answers is not what it guessed",
        start=(("create", "/a/b/f", "old"), ("mkdirs", "/c")),
        scripts={
            "ann": (("rename", "/a/b/f", "/c/f"), ("delete", "/a/b")),
            "bob": (("create", "/a/b/f", "bob"), ("mkdirs", "/a/b"), ("rename", "/a/b", "/c/b")),
        },
    ),
    Scene(
        name="cold-hints",
        summary="a process that has seen nothing resolves a path, component by component, while it changes",
        start=(("mkdirs", "/a/b"),),
        scripts={
            "ann": (("rename", "/a", "/z"), ("create", "/z/b/f", "ann")),
            "eve": (("list", "/a/b"), ("read", "/a/b/f")),
        },
        knows={"ann": ("/", "/a", "/a/b")},
        reached=("refused",),
    ),
    Scene(
        name="cold-writers",
        summary="processes that have seen nothing create, rename and replace at the same time",
        start=(("create", "/a/b/f", "old"), ("mkdirs", "/c")),
        scripts={
            "ann": (("rename", "/a/b", "/c/b"),),
            "bob": (("create", "/a/b/g", "bob"), ("overwrite", "/c/b/f", "bob")),
        },
        knows={},
    ),
)
