"""Scenes: operations that lock before they execute, beside collectors and readers that do not."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")

MODES = (
    Scene(
        name="pessimistic-names",
        summary="two that lock create a file of the same name below a directory, which is listed",
        start=(("mkdirs", "/a"),),
        scripts={
            "ann": (("create", "/a/f", "ann"),),
            "bob": (("create", "/a/f", "bob"), ("list", "/a")),
        },
        mode="pessimistic",
        mortal=False,
        reached=("refused",),
    ),
    Scene(
        name="pessimistic-cold",
        summary="two that lock make the same directory, which they have not seen before",
        start=(("mkdirs", "/a"),),
        scripts={
            "ann": (("mkdirs", "/a/b"), ("create", "/a/b/f", "ann")),
            "bob": (("mkdirs", "/a/b"), ("list", "/a/b")),
        },
        knows={},
        mode="pessimistic",
        mortal=False,
    ),
    Scene(
        name="pessimistic-renames",
        summary="two that lock rename directories into each other: the database ends one of them",
        start=(("mkdirs", "/a"), ("mkdirs", "/b")),
        scripts={
            "ann": (("rename", "/a", "/b/x"),),
            "bob": (("rename", "/b", "/a/y"), ("walk", "/")),
        },
        mode="pessimistic",
        mortal=False,
        reached=("refused",),
    ),
    Scene(
        name="pessimistic-delete",
        summary="one that locks deletes a directory if it is empty, another one creates a file in it",
        start=(("mkdirs", "/a/b"),),
        scripts={
            "ann": (("delete", "/a/b"),),
            "bob": (("create", "/a/b/f", "bob"), ("list", "/a/b")),
        },
        mode="pessimistic",
        mortal=False,
        reached=_BOTH,
    ),
    Scene(
        name="pessimistic-collection",
        summary="one that locks deletes a tree and creates it again, beside a collector, which does not lock",
        start=(("create", "/a/f", "0"), ("set_quota", "/", 9)),
        scripts={"ann": (("delete_tree", "/a"), ("create", "/a/f", "1"))},
        collectors=(1,),
        mode="pessimistic",
        mortal=False,
    ),
    Scene(
        name="global-names",
        summary="with one lock for all, two create files of the same name, and a directory is renamed",
        start=(("mkdirs", "/a/b"),),
        scripts={
            "ann": (("create", "/a/b/f", "ann"),),
            "bob": (("rename", "/a", "/z"),),
            "eve": (("create", "/a/b/f", "eve"), ("list", "/z/b")),
        },
        mode="global",
        mortal=False,
        reached=("refused",),
    ),
    Scene(
        name="global-collection",
        summary="with one lock for all, a tree is deleted and created again, beside a collector, which does not lock",
        start=(("create", "/a/f", "0"), ("set_quota", "/", 9)),
        scripts={"ann": (("delete_tree", "/a"), ("create", "/a/f", "1"))},
        collectors=(1,),
        mode="global",
        mortal=False,
    ),
)
