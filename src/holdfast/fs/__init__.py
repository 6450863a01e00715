"""Let pandas, pyarrow and other users of fsspec write through the committer `magic`, with the magic filesystem.

Worked composition::

    fs = MagicFileSystem(endpoint="http://127.0.0.1:8333")
    with fs.open(f"{work_path}/images/0001.tar", "wb") as file:   # work_path is that of a running task of `magic`
        file.write(b"...")                                         # images/0001.tar is invisible until the job commits
"""

from holdfast.fs.filesystem import MagicFileSystem

__all__ = ["MagicFileSystem"]
