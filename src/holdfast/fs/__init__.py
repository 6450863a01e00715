"""Let pandas, pyarrow and other users of fsspec work with a namespace, by URLs like ``holdfast://name/path``.

Worked composition::

    fs = NamespaceFileSystem(database="sqlite:///data/ns.db")     # or fsspec.filesystem("holdfast", ...)
    with fs.transaction:                                          # both files appear in one step
        fs.pipe_file("name/day=1/a", b"...")
        fs.pipe_file("name/day=2/b", b"...")
    fs.mv("name/day=1", "name/archive")                           # one step, however many files
"""

from holdfast.fs.namespace import NamespaceFileSystem

__all__ = ["NamespaceFileSystem"]
