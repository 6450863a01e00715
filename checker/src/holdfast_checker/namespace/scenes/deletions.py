"""Scenes: what is deleted while others use it, and what collectors remove."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")

_TREE = (("mkdirs", "/a/b"), ("mkdirs", "/c"))

DELETIONS = (
    Scene(
        name="delete-directory",
        summary="a directory is deleted if it is empty, and a file is created in it",
        start=_TREE,
        scripts={
            "ann": (("delete", "/a/b"),),
            "bob": (("create", "/a/b/f", "bob"), ("list", "/a/b")),
        },
        reached=_BOTH,
    ),
    Scene(
        name="delete-tree",
        summary="a tree is deleted while a file is created deep in it, and a collector removes it",
        start=(("create", "/a/b/c/old", "old"),),
        scripts={
            "ann": (("delete_tree", "/a"),),
            "bob": (("create", "/a/b/c/f", "bob"), ("walk", "/")),
        },
        collectors=(1,),
    ),
    Scene(
        name="delete-and-list",
        summary="a tree is deleted while it is listed and walked",
        start=(("create", "/a/b/f", "f"), ("create", "/a/g", "g")),
        scripts={
            "ann": (("delete_tree", "/a"), ("create", "/a/h", "h")),
            "bob": (("list", "/a"), ("walk", "/a")),
        },
        reached=_BOTH,
    ),
    Scene(
        name="two-leaders",
        summary="two leaders at once collect one tree, and a file is created where it was",
        start=(("create", "/a/b/f", "f"), ("set_quota", "/", 9)),
        scripts={"ann": (("delete_tree", "/a"), ("create", "/a/new", "new"))},
        collectors=(1, 1),
        elects=False,
    ),
    Scene(
        name="walk-and-collect",
        summary="a tree is walked, listed and read while it is deleted, and a collector removes it",
        start=(("create", "/a/b/f", "f"), ("create", "/a/b/g", "g")),
        scripts={
            "ann": (("delete_tree", "/a"),),
            "bob": (("walk", "/a"), ("list", "/a/b")),
            "eve": (("read", "/a/b/f"),),
        },
        collectors=(1,),
        reached=_BOTH,
    ),
    Scene(
        name="writer-in-a-deleted-tree",
        summary="a tree is deleted and collected while a client writes a file in it, and the tree comes again",
        start=(("create", "/a/f", "0"),),
        scripts={
            "ann": (("append", "/a/f", "ann"), ("close", "ann", "1")),
            "bob": (("delete_tree", "/a"), ("create", "/a/f", "bob")),
        },
        collectors=(1,),
        reached=_BOTH,
    ),
)

ELECTIONS = (
    Scene(
        name="election",
        summary="two processes want to lead and to collect a directory, and the term of the first may end",
        start=(("mkdirs", "/a"), ("set_quota", "/", 9)),
        scripts={"ann": (("delete_tree", "/a"),)},
        collectors=(1, 1),
        later=True,
    ),
)
