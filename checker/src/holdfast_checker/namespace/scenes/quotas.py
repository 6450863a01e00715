"""Scenes: directories with quotas, and the reservation of ids."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")

QUOTAS = (
    Scene(
        name="quota",
        summary="two create a file each in a directory with room for one",
        start=(("mkdirs", "/q"), ("set_quota", "/q", 2)),
        scripts={"ann": (("create", "/q/a", "a"),), "bob": (("create", "/q/b", "b"), ("list", "/q"))},
        reached=("refused",),
    ),
    Scene(
        name="quota-rename",
        summary="a directory moves into a quota while a file is created in it: it is frozen and counted",
        start=(("mkdirs", "/q"), ("set_quota", "/q", 4), ("mkdirs", "/a/b")),
        scripts={"ann": (("rename", "/a", "/q/a"),), "bob": (("create", "/a/b/f", "bob"), ("walk", "/"))},
    ),
    Scene(
        name="quota-set",
        summary="a directory gets a quota while files are created in it, and one is deleted",
        start=(("create", "/a/old", "old"),),
        scripts={
            "ann": (("set_quota", "/a", 3),),
            "bob": (("create", "/a/f", "1"), ("create", "/a/g", "2")),
            "eve": (("delete", "/a/old"),),
        },
        reached=_BOTH,
    ),
    Scene(
        name="quota-expired",
        summary="a directory moves into a quota, and the mark that freezes it expires while it is counted",
        start=(("mkdirs", "/q"), ("set_quota", "/q", 4), ("mkdirs", "/a/b")),
        scripts={"ann": (("rename", "/a", "/q/a"),), "bob": (("create", "/a/b/f", "bob"),)},
        later=True,
    ),
    Scene(
        name="quota-reclaim",
        summary="a full directory gets room by a deletion: what was deleted no longer counts",
        start=(("create", "/q/d/f", "1"), ("set_quota", "/q", 3)),
        scripts={"ann": (("delete_tree", "/q/d"), ("create", "/q/g", "2"))},
        collectors=(1,),
    ),
)
