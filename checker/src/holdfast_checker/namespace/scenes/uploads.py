"""Scenes: uploads that several processes end, and sweeps for blobs that nobody owns."""

from __future__ import annotations

from holdfast_checker.namespace.scenes.scene import Scene

_BOTH = ("all", "refused")
_UPLOAD = (("create", "/a/f", "0"), ("start_upload", "/a/f", "it"), ("upload", "it", "1"))

UPLOADS = (
    Scene(
        name="complete-or-abort",
        summary="one process completes an upload that another one aborts, and a third one reads the file",
        start=_UPLOAD,
        scripts={
            "ann": (("complete", "it", "1"),),
            "bob": (("abort", "it"),),
            "eve": (("read", "/a/f"), ("read", "/a/f")),
        },
        reached=_BOTH,
    ),
    Scene(
        name="complete-twice",
        summary="two processes complete one upload, and a third one renames its file in between",
        start=(("mkdirs", "/a"), *_UPLOAD[1:]),
        scripts={
            "ann": (("complete", "it", "1"),),
            "bob": (("complete", "it", "1"),),
            "eve": (("rename", "/a/f", "/g"), ("read", "/a/f")),
        },
        reached=("refused",),
    ),
    Scene(
        name="late-part",
        summary="a part is uploaded while another process completes or aborts the upload",
        start=_UPLOAD,
        scripts={
            "ann": (("upload", "it", "2"),),
            "bob": (("complete", "it", "1"), ("abort", "it")),
        },
        inline=False,
        collectors=(1,),
        reached=("refused",),
    ),
    Scene(
        name="upload-in-a-tree",
        summary="an upload is begun, written and completed while its directory is renamed or deleted",
        start=(("mkdirs", "/a"),),
        scripts={
            "ann": (("start_upload", "/a/f", "it"), ("upload", "it", "1"), ("complete", "it", "1")),
            "bob": (("rename", "/a", "/z"), ("delete_tree", "/z"), ("walk", "/")),
        },
    ),
)

SWEEPS = (
    Scene(
        name="sweep-and-complete",
        summary="an upload whose parts are old is completed during a sweep",
        start=_UPLOAD,
        scripts={"ann": (("complete", "it", "1"), ("read", "/a/f"))},
        inline=False,
        sweepers=1,
    ),
    Scene(
        name="sweep-and-publish",
        summary="files are created and replaced during a sweep",
        start=(("create", "/f", "0"),),
        scripts={"ann": (("create", "/g", "1"), ("overwrite", "/f", "2"), ("read", "/g"))},
        inline=False,
        sweepers=1,
    ),
    Scene(
        name="sweep-and-slow-writer",
        summary="a writer publishes under its lease, during a sweep, what it has written long ago",
        start=(("create", "/f", "0"),),
        scripts={"ann": (("append", "/f", "ann"), ("close", "ann", "1"))},
        inline=False,
        sweepers=1,
        is_slow=True,
    ),
)
