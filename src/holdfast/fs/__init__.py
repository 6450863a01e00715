"""The magic filesystem: what pandas, pyarrow and any other user of fsspec write through a committer with.

Worked composition::

    fs = MagicFileSystem(endpoint="http://127.0.0.1:8333")
    with fs.open(f"{work_path}/images/0001.tar", "wb") as file:   # work_path: of a running attempt of `magic`
        file.write(b"...")                                         # nobody sees images/0001.tar until the job commits
"""

from holdfast.fs.filesystem import MagicFileSystem

__all__ = ["MagicFileSystem"]
