"""Scenes: files whose content several processes write, read, or publish together."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")

BATCHES = (
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

FILES = (
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
