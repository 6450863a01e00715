"""Keep an HDFS-like tree of files: its metadata in a database, its bytes in any object store.

Start at `namespace` for what it offers, at `operation` for how an operation runs, and at `keys` for what the database
contains. docs/reference/namespace.md has the table of the operations and their groups.
"""

from holdfast.namespace.catalog import split_url
from holdfast.namespace.configuration import Configuration
from holdfast.namespace.listing import ContentSummary, FileStatus
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.opening import init_namespace, open_namespace

__all__ = [
    "Configuration",
    "ContentSummary",
    "FileStatus",
    "Namespace",
    "init_namespace",
    "open_namespace",
    "split_url",
]
