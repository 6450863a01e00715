"""Scenes: permissions that change while somebody uses them."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")
_OPEN = (("mkdirs", "/a/b"), ("set_mode", "/a/b", 0o777))
_ANN = frozenset({"ann"})

PERMISSIONS = (
    Scene(
        name="write-withdrawn",
        summary="a user creates a file in a directory whose write permission is withdrawn, and which is listed then",
        start=_OPEN,
        scripts={
            "ann": (("create", "/a/b/f", "ann"),),
            "bob": (("set_mode", "/a/b", 0o755), ("list", "/a/b")),
        },
        users=_ANN,
        reached=_BOTH,
    ),
    Scene(
        name="search-withdrawn",
        summary="a user creates a file deep below a directory that nobody may search any longer, and which is listed",
        start=_OPEN,
        scripts={
            "ann": (("create", "/a/b/f", "ann"), ("read", "/a/b/f")),
            "bob": (("set_mode", "/a", 0o700), ("list", "/a/b")),
        },
        users=_ANN,
        reached=_BOTH,
    ),
    Scene(
        name="read-withdrawn",
        summary="a user reads a file and lists its directory while their permissions change, and their content then",
        start=(("create", "/a/f", "open"),),
        scripts={
            "ann": (("read", "/a/f"), ("list", "/a")),
            "bob": (("set_mode", "/a/f", 0o600), ("overwrite", "/a/f", "secret"), ("set_mode", "/a", 0o711)),
        },
        users=_ANN,
        reached=_BOTH,
    ),
    Scene(
        name="sticky",
        summary="a user removes and renames entries of a sticky directory while their owners change",
        start=(
            ("create", "/t/f", "0"),
            ("create", "/t/g", "1"),
            ("set_mode", "/t", 0o1777),
            ("set_owner", "/t/f", "ann"),
        ),
        scripts={
            "ann": (("delete", "/t/f"), ("rename", "/t/g", "/t/h")),
            "bob": (("set_owner", "/t/f", "eve"), ("set_owner", "/t/g", "ann"), ("list", "/t")),
        },
        users=_ANN,
        reached=("refused",),
    ),
)
