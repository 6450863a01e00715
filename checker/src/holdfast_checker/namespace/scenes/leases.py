"""Scenes: writers whose leases others recover, take over, or end."""

from __future__ import annotations

from holdfast_checker.kernel.calls import Fault
from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")

LEASES = (
    Scene(
        name="nothing-new",
        summary="a lease is recovered while its writer, who has nothing to add, closes the file",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("sync", "ann", "1"), ("close", "ann", "")),
            "bob": (("recover", "/f"), ("append", "/f", "bob"), ("close", "bob", "")),
        },
        reached=_BOTH,
    ),
    Scene(
        name="create-under-lease",
        summary="two create a file of the same name under a lease, which a third process recovers",
        scripts={
            "ann": (("create_with_lease", "/f", "ann"), ("close", "ann", "1")),
            "bob": (("create_with_lease", "/f", "bob"), ("close", "bob", "2")),
            "eve": (("recover", "/f"),),
        },
        reached=("refused",),
    ),
    Scene(
        name="create-beside-a-lease",
        summary="a file is created under a lease and at once, by two processes, and a third one reads it",
        scripts={
            "ann": (("create_with_lease", "/f", "ann"), ("close", "ann", "1")),
            "bob": (("create", "/f", "bob"),),
            "eve": (("read", "/f"), ("read", "/f")),
        },
        reached=("refused",),
    ),
    Scene(
        name="overwritten-writer",
        summary="a file is replaced while a client writes it under a lease",
        scripts={
            "ann": (("create_with_lease", "/f", "ann"), ("close", "ann", "1")),
            "bob": (("overwrite", "/f", "bob"), ("read", "/f")),
        },
        reached=_BOTH,
    ),
)

SURE_WRITERS = (
    Scene(
        name="sure-writer",
        summary="a writer repeats what got no reply, while its lease is recovered and another one appends",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("sync_surely", "ann", "1"), ("close_surely", "ann", "2")),
            "bob": (("recover", "/f"), ("append", "/f", "bob"), ("close", "bob", "3")),
        },
        budgets={Fault.LOST_REPLY: 1},
        reached=("all", "refused", "unknown"),
    ),
    Scene(
        name="sure-writer-of-nothing",
        summary="a writer that has nothing to add repeats what got no reply, while its lease is recovered",
        start=(("create", "/f", "0"),),
        scripts={
            "ann": (("append", "/f", "ann"), ("sync_surely", "ann", "1"), ("close_surely", "ann", "")),
            "bob": (("recover", "/f"),),
        },
        budgets={Fault.LOST_REPLY: 2},
        reached=("all", "refused", "unknown"),
    ),
)
