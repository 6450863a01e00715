"""Scenes: the database crashes and forgets what it had acknowledged, and all clients live on."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "crashed")

CRASHES = (
    Scene(
        name="database-crash-under-creations",
        summary="two clients make directories and files, the database crashes and loses some, and they go on",
        scripts={
            "ann": (("mkdirs", "/a"), ("mkdirs", "/c")),
            "bob": (("create", "/b/f", "bob"),),
        },
        crashes=1,
        reached=_BOTH,
    ),
    Scene(
        name="database-crash-under-a-writer",
        summary="the database crashes and loses what a writer has published, and the writer goes on",
        start=(("create", "/f", "0"),),
        scripts={"ann": (("append", "/f", "ann"), ("sync", "ann", "1"), ("sync", "ann", "2"), ("close", "ann", "3"))},
        crashes=1,
        reached=_BOTH,
    ),
    Scene(
        name="database-crash-under-two-writers",
        summary="the database crashes and forgets who has the lease of a file, for which two clients compete",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("close", "ann", "1")),
            "bob": (("append", "/f", "bob"), ("close", "bob", "2")),
        },
        crashes=1,
        reached=_BOTH,
    ),
    Scene(
        name="database-crash-under-a-rename",
        summary="the database crashes and forgets a rename, while a client uses the new path, or the old one",
        start=(("create", "/a/b/f", "0"),),
        scripts={
            "ann": (("rename", "/a", "/z"), ("create", "/z/b/g", "ann")),
            "bob": (("create", "/a/b/h", "bob"),),
        },
        crashes=1,
        reached=_BOTH,
    ),
    Scene(
        name="database-crash-under-a-deletion",
        summary="the database crashes and forgets that a tree was deleted, while a collector removes it",
        start=(("create", "/a/b/f", "0"), ("set_quota", "/", 9)),
        scripts={"ann": (("delete_tree", "/a"), ("create", "/a/g", "ann"))},
        collectors=(1,),
        crashes=1,
        reached=_BOTH,
    ),
    Scene(
        name="database-crash-under-an-upload",
        summary="the database crashes and forgets parts of an upload, which is completed then",
        scripts={
            "ann": (("start_upload", "/f", "one"), ("upload", "one", "1"), ("complete", "one", "1"), ("read", "/f"))
        },
        crashes=1,
        reached=_BOTH,
    ),
)
