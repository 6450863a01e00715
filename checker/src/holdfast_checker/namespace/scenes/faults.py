"""Scenes: crashes, lost replies and failures."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast_checker.kernel.calls import Fault
from holdfast_checker.namespace.scenes.scene import Scene

FAULTY: Mapping[Fault, int] = {Fault.CRASH: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1}
"""One fault of each kind."""

FAULTS = (
    Scene(
        name="lost-rename",
        summary="a rename and a creation below it, with a crash, a lost reply and a failure, anywhere",
        start=(("mkdirs", "/a/b"),),
        scripts={"ann": (("rename", "/a", "/z"),), "bob": (("create", "/a/b/f", "bob"), ("walk", "/"))},
        budgets=FAULTY,
        reached=("all", "unknown"),
    ),
    Scene(
        name="lost-create",
        summary="two create a file of the same name; replies are lost, and commits come late",
        scripts={"ann": (("create", "/f", "ann"),), "bob": (("create", "/f", "bob"), ("read", "/f"))},
        inline=False,
        budgets=FAULTY,
        reached=("unknown",),
    ),
    Scene(
        name="lost-deletion",
        summary="a tree is deleted and collected, and any of the processes dies or loses replies",
        start=(("create", "/a/b/f", "1"),),
        scripts={"ann": (("delete_tree", "/a"), ("create", "/a/b/g", "2"))},
        collectors=(2,),
        budgets=FAULTY,
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
        budgets=FAULTY,
        reached=("unknown",),
    ),
    Scene(
        name="lost-quota-rename",
        summary="a directory moves into a quota, with a crash, a lost reply and a failure, anywhere",
        start=(("mkdirs", "/q"), ("set_quota", "/q", 4), ("mkdirs", "/a")),
        scripts={"ann": (("rename", "/a", "/q/a"),), "bob": (("create", "/a/f", "bob"),)},
        budgets=FAULTY,
        reached=("unknown",),
    ),
)
