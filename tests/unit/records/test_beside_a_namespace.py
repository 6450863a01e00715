"""A database and a namespace in one database do not see each other, and do each other no damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.records import open_database


@pytest.mark.parametrize("db_first", [False, True])
def test_both_are_whole(tmp_path: Path, db_first: bool) -> None:
    url = f"sqlite://{tmp_path}/both.db"
    configuration = Configuration(name="both", data=str(tmp_path / "data"), superuser="root", inline_bytes=10)
    if db_first:
        open_database(url, create=True).close()
    init_namespace(configuration, url, register=False)
    namespace = open_namespace("holdfast://both", database=url, user="root")
    with open_database(url) as db:
        for number in range(2):
            db.create_table(f"table{number}", history=bool(number))
            db.transact(lambda cells, number=number: [cells.put(f"table{number}", row, row) for row in range(50)])
            namespace.mkdirs(f"/d{number}/below")
            namespace.write_file(f"/d{number}/file", b"x" * 100)
        rows = {row: {"value": row} for row in range(50)}
        db.drop_table("table1")
        assert db.collect() == 0
        namespace.delete("/d0", recursive=True)
        namespace.collect()
        namespace.sweep()
        assert [table.name for table in db.tables()] == ["table0"]
        assert dict(db.scan("table0")) == rows
        report = namespace.check()
        assert (report.is_healthy, report.leftover_count, report.counts.files) == (True, 0, 1)
    namespace.close()
