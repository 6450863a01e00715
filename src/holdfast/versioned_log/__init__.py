"""Store numbered records, each created only once, in an object store: a log whose order is the same for all writers.

The log does not interpret its entries. A *mark* is a record that shows how far the work of an entry has progressed:
``visible`` or ``done``. An entry is unfinished until it is marked ``done``. `records` creates a record if it is absent
and resolves lost replies, `view` is the log as one listing shows it, and `log` reads, appends, searches and trims.

Example::

    log = VersionedLog(records=records, runner=runner, folder="_log/", decode=decode)
    view = log.read()
    winner = log.append(entry, encode(entry), is_same, view)  # entry.seq == view.head + 1
    log.mark(winner, "visible")
    log.mark(winner, "done")
    log.trim(log.read(), keep=300)
"""

from holdfast.versioned_log.log import Entry, VersionedLog
from holdfast.versioned_log.records import RecordStore
from holdfast.versioned_log.view import LogView, record_name

__all__ = [
    "Entry",
    "LogView",
    "RecordStore",
    "VersionedLog",
    "record_name",
]
