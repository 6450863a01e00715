"""Define the scenes that ``holdfast check namespace`` explores: one for each way in which operations can collide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.checker.kernel.calls import Fault
from holdfast.checker.namespace.worlds import Scene

__all__ = ["FAMILIES", "SCENES", "SMALL"]

_TREE = (("mkdirs", "/a/b"), ("mkdirs", "/c"))
_BOTH = ("all", "refused")

_NAMES = (
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
        summary="an ancestor is renamed, a file is created below it, and a third process lists (decision 49)",
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
)

_DELETES = (
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
)

_ELECTION = (
    Scene(
        name="election",
        summary="two processes want to lead and to collect a tree, and the term of the first may end",
        start=(("create", "/a/f", "f"), ("set_quota", "/", 9)),
        scripts={"ann": (("delete_tree", "/a"),)},
        collectors=(1, 1),
        later=True,
    ),
)

_BATCHES = (
    Scene(
        name="batch",
        summary="several files appear in one step while their directory is renamed, and a third process walks",
        start=(("mkdirs", "/a/b"),),
        scripts={
            "ann": (("publish", ("/a/b/f", "1"), ("/a/b/c/g", "2")),),
            "bob": (("rename", "/a", "/z"),),
            "eve": (("walk", "/"), ("walk", "/")),
        },
    ),
    Scene(
        name="object-store-batch",
        summary="an object store replaces several files in one transaction, while others read and rename them",
        start=(("create", "/a/f", "0"), ("create", "/a/g", "0")),
        scripts={
            "ann": (("put_all", ("/a/f", "1"), ("/a/g", "1"), ("/a/h/i", "1")),),
            "bob": (("rename", "/a", "/z"),),
            "eve": (("walk", "/"), ("read", "/a/f"), ("read", "/a/g")),
        },
        reached=_BOTH,
    ),
)

_FILES = (
    Scene(
        name="two-appenders",
        summary="two append to one file, and a third one reads it",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("close", "ann", "1")),
            "bob": (("append", "/f", "bob"), ("close", "bob", "2")),
            "eve": (("read", "/f"),),
        },
        reached=_BOTH,
    ),
    Scene(
        name="overwrite-and-read",
        summary="a file is overwritten twice while it is read, and a collector deletes garbage",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("overwrite", "/f", "1"), ("overwrite", "/f", "2")),
            "eve": (("read", "/f"), ("read", "/f")),
        },
        inline=False,
        collectors=(1,),
    ),
    Scene(
        name="concat-and-append",
        summary="a file is concatenated to another one, while somebody appends to one of them",
        start=(("create", "/f", "1"), ("create", "/g", "2")),
        scripts={
            "ann": (("concat", "/f", "/g"),),
            "bob": (("append", "/g", "bob"), ("close", "bob", "3")),
            "eve": (("read", "/f"),),
        },
        reached=_BOTH,
    ),
    Scene(
        name="moved-writer",
        summary="a file and a directory above it are renamed while a client appends to it",
        start=(("create", "/a/b/f", "0"),),
        scripts={
            "ann": (("append", "/a/b/f", "ann"), ("close", "ann", "1")),
            "bob": (("rename", "/a/b/f", "/a/g"), ("rename", "/a", "/z"), ("read", "/z/g")),
        },
    ),
    Scene(
        name="recovery",
        summary="a lease is recovered while its writer completes the file, and another one appends then",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("close", "ann", "1")),
            "bob": (("recover", "/f"), ("append", "/f", "bob"), ("close", "bob", "2")),
        },
        reached=_BOTH,
    ),
    Scene(
        name="lease-theft",
        summary="the lease of a silent writer is taken over by another one, or by the collector",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("close", "ann", "1")),
            "bob": (("append", "/f", "bob"), ("close", "bob", "2")),
        },
        later=True,
        reached=_BOTH,
    ),
    Scene(
        name="renewal",
        summary="the leader recovers the lease of a silent writer, which renews it at the last moment",
        start=(("create", "/f", "0"),),
        scripts={"ann": (("append", "/f", "ann"), ("write", "ann"), ("close", "ann", "1"))},
        collectors=(1,),
        later=True,
        reached=_BOTH,
    ),
)

_QUOTAS = (
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

_IDS = (
    Scene(
        name="ids",
        summary="two processes reserve ids, and each creates a file",
        scripts={"ann": (("create", "/a", "ann"),), "bob": (("create", "/b", "bob"),)},
        reserves=True,
    ),
)

_FAULTY = {Fault.CRASH: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1}
_FAULTS = (
    Scene(
        name="lost-rename",
        summary="a rename and a creation below it, with a crash, a lost reply and a failure, anywhere",
        start=(("mkdirs", "/a/b"),),
        scripts={"ann": (("rename", "/a", "/z"),), "bob": (("create", "/a/b/f", "bob"), ("walk", "/"))},
        budgets=_FAULTY,
        reached=("all", "unknown"),
    ),
    Scene(
        name="lost-create",
        summary="two create a file of the same name; replies are lost, and commits come late",
        scripts={"ann": (("create", "/f", "ann"),), "bob": (("create", "/f", "bob"), ("read", "/f"))},
        inline=False,
        budgets=_FAULTY,
        reached=("unknown",),
    ),
    Scene(
        name="lost-deletion",
        summary="a tree is deleted and collected, and any of the processes dies or loses replies",
        start=(("create", "/a/b/f", "1"),),
        scripts={"ann": (("delete_tree", "/a"), ("create", "/a/b/g", "2"))},
        collectors=(2,),
        budgets=_FAULTY,
        reached=("all", "unknown"),
    ),
    Scene(
        name="dying-writer",
        summary="a writer dies or loses replies while another one waits for its file",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("sync", "ann", "1"), ("close", "ann", "2")),
            "bob": (("append", "/f", "bob"), ("close", "bob", "3")),
        },
        budgets=_FAULTY,
        reached=("unknown",),
    ),
    Scene(
        name="lost-quota-rename",
        summary="a directory moves into a quota, with a crash, a lost reply and a failure, anywhere",
        start=(("mkdirs", "/q"), ("set_quota", "/q", 4), ("mkdirs", "/a")),
        scripts={"ann": (("rename", "/a", "/q/a"),), "bob": (("create", "/a/f", "bob"),)},
        budgets=_FAULTY,
        reached=("unknown",),
    ),
)

SCENES: Mapping[str, Scene] = {
    scene.name: scene
    for scenes in (_NAMES, _DELETES, _ELECTION, _BATCHES, _FILES, _QUOTAS, _IDS, _FAULTS)
    for scene in scenes
}
"""The quick scenes."""

SMALL: Mapping[str, Scene] = {
    scene.name: scene
    for scene in (
        replace(
            scene,
            name=f"faulty-{scene.name}",
            summary=f"{scene.summary}; a crash, a lost reply and a failure, each once, anywhere",
            budgets=_FAULTY,
            reached=(),
        )
        for scene in SCENES.values()
        if not scene.budgets
    )
}
"""Larger scenes, which take minutes."""

FAMILIES: Mapping[str, tuple[Scene, ...]] = {
    family: tuple(scene for scene in (*SCENES.values(), *SMALL.values()) if scene.family == family)
    for family in dict.fromkeys(scene.family for scene in (*SCENES.values(), *SMALL.values()))
}
"""Scenes that belong together, by the name of the family."""
