"""Let pandas, pyarrow and other users of fsspec read and write: a namespace, or through the committer `magic`.

Worked composition::

    fs = NamespaceFileSystem(database="sqlite:///data/ns.db")      # holdfast://name/path: see `holdfast.fs.namespace`
    with fs.open("name/images/0001.tar", "wb") as file:
        file.write(b"...")                                         # appears as a whole when it is closed

    fs = MagicFileSystem(endpoint="http://127.0.0.1:8333")
    with fs.open(f"{work_path}/images/0001.tar", "wb") as file:   # work_path is that of a running task of `magic`
        file.write(b"...")                                         # images/0001.tar is invisible until the job commits
"""

from holdfast.fs.filesystem import MagicFileSystem
from holdfast.fs.namespace import NamespaceFileSystem

__all__ = ["MagicFileSystem", "NamespaceFileSystem"]
