"""List the kinds of records of a database: the first two bytes of each key.

All begin with ``S``, so that a namespace may live in the same database. They are in one place so that no two are the
same; the modules that are named describe the rest of the keys. Ids are 8 bytes, most significant first.
"""

from __future__ import annotations

KINDS = {
    "TABLE": b"St",  # table: its definition, which guards its cells (`tables`)
    "CELL": b"Sc",  # table id, row, column (`cells`)
    "HISTORY": b"Sh",  # table id, row, column, 0, update counter: an earlier or present value of a cell
    "DROPPED": b"Sd",  # table or list id: one that was dropped, and of which not all is deleted yet (`dropped`)
    "LOAD": b"Si",  # load id: a load that has not ended (`loads`)
    "COMMITS": b"Sm",  # seconds, token: how many transactions of a call took effect, as its number (`several_commits`)
    "JOB": b"Sj",  # job: a job of computation units (`holdfast.units.jobs`)
    "ABSENCE": b"Sa",  # job: there is none yet, and a driver reads its rows (`holdfast.units.absence`)
    "PROGRESS": b"Sp",  # job id, shard: how far a task of a job is (`holdfast.units.progress`)
    "COUNTER": b"Sn",  # job id, slot: how many units a worker of a work list has done, as its number
    "WORK_LIST": b"Sl",  # work list: its definition (`holdfast.units.work_list`)
    "WORK": b"Sw",  # list id, …: what waits in a work list, and what is claimed
    "BEAT": b"Sb",  # list id, slot, token: a sign of life of a worker, as its number
}

assert len(set(KINDS.values())) == len(KINDS), "each kind has its own bytes"

TABLE, CELL, HISTORY, DROPPED = KINDS["TABLE"], KINDS["CELL"], KINDS["HISTORY"], KINDS["DROPPED"]
LOAD, COMMITS, JOB = KINDS["LOAD"], KINDS["COMMITS"], KINDS["JOB"]
ABSENCE, PROGRESS, COUNTER = KINDS["ABSENCE"], KINDS["PROGRESS"], KINDS["COUNTER"]
WORK_LIST, WORK, BEAT = KINDS["WORK_LIST"], KINDS["WORK"], KINDS["BEAT"]
