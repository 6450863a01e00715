"""The demo's own checks find faults: a check that cannot fail proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pyarrow as pa
import pytest

from holdfast.demo import DemoReport
from holdfast.demo.bucket import Listing, PlainBucket, difference
from holdfast.demo.flights import SCHEMA
from holdfast.demo.report import ScenarioReport
from holdfast.testing.moto import MotoServer


def flights(*days: int) -> pa.Table:
    rows = [{"year": 2013, "month": 1, "day": day, "carrier": "UA"} for day in days]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


# --- rows -------------------------------------------------------------------------------------------------------------
def test_the_order_of_rows_does_not_count() -> None:
    assert difference(flights(1, 2, 2, 3), flights(2, 3, 1, 2)) == ""


@pytest.mark.parametrize(
    ("found", "missing", "extra"),
    [((1, 2, 3), 1, 0), ((1, 2, 2, 3, 3), 0, 1), ((1, 2, 3, 3), 1, 1), ((1, 2, 2, 9), 1, 1), ((), 4, 0)],
)
def test_duplicate_rows_count(found: tuple[int, ...], missing: int, extra: int) -> None:
    said = difference(flights(1, 2, 2, 3), flights(*found))
    assert said.startswith(
        f"{missing} rows of the source are missing and {extra} rows are not in the source, e.g. (2013, "
    )


def test_one_changed_value_in_any_column_is_found() -> None:
    source = flights(1, 2)
    for index, field in enumerate(SCHEMA):
        value = {pa.int32(): 7, pa.string(): "x"}.get(field.type, 0)
        changed = source.set_column(index, field, pa.array([value, None], field.type))
        assert difference(source, changed) != "", field.name


# --- listings ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def bucket() -> Iterator[PlainBucket]:
    with MotoServer() as server:
        server.create_bucket("demo")
        client = boto3.session.Session().client(
            "s3", endpoint_url=server.endpoint_url, aws_access_key_id="a", aws_secret_access_key="b", region_name="x"
        )
        for key in (
            "t/_holdfast/jobs/j/job.json",
            "t/month=1/a",
            "t/.hidden",
            "u/_holdfast/log/1.json",
            "tt/month=1/b",
        ):
            client.put_object(Bucket="demo", Key=key, Body=b"x")
        client.create_multipart_upload(Bucket="demo", Key="t/month=2/c")
        client.close()
        plain = PlainBucket(server.options, "demo")
        yield plain
        plain.close()


def test_a_listing_counts_what_a_plain_reader_sees(bucket: PlainBucket) -> None:
    assert bucket.list_destination("t") == Listing(files=1, decided=False)
    assert bucket.list_destination("u") == Listing(files=0, decided=True)


def test_pending_uploads_are_counted(bucket: PlainBucket) -> None:
    assert bucket.pending_uploads() == 1


# --- report -----------------------------------------------------------------------------------------------------------
def test_a_problem_is_not_verified_and_names_its_scenario() -> None:
    good = ScenarioReport(name="a", title="plain")
    bad = ScenarioReport(name="c", title="killed driver", problems=["2 uploads are still pending"])
    assert DemoReport(source_rows=1, scenarios=[good]).verified
    report = DemoReport(source_rows=1, scenarios=[good, bad])
    assert not report.verified
    assert report.problems() == ["scenario c: 2 uploads are still pending"]
    assert not DemoReport(source_rows=1).verified
