"""Inspect the bucket like any other tool would: through boto3 and pyarrow, without Holdfast."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
from botocore.config import Config

from holdfast.demo.flights import PARTITION_COLUMN, SCHEMA
from holdfast.stores.s3.options import S3Options


@dataclass(frozen=True)
class Listing:
    """One plain listing of a destination.

    Attributes:
        files: number of data files in the listing.
        decided: whether the log, read *after* the listing, contained a decision. If it did not, there was none during
            the listing either.
    """

    files: int
    decided: bool


class PlainBucket:
    """A bucket as seen through boto3 and pyarrow.

    Args:
        options: how to reach the server.
        name: the bucket's name.
    """

    def __init__(self, options: S3Options, name: str) -> None:
        self._options = options
        self._name = name
        self._client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=options.endpoint_url,
            region_name=options.region,
            aws_access_key_id=options.access_key,
            aws_secret_access_key=options.secret_key,
            config=Config(retries={"total_max_attempts": 3}, connect_timeout=5, read_timeout=30),
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _keys(self, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def list_destination(self, folder: str) -> Listing:
        """List a destination, and then its decision log."""
        relative = [key[len(folder) + 1 :] for key in self._keys(f"{folder}/")]
        shown = [path for path in relative if not any(part.startswith(("_", ".")) for part in path.split("/"))]
        log = self._keys(f"{folder}/_holdfast/log/")
        return Listing(files=len(shown), decided=any(key.endswith(".json") for key in log))

    def pending_uploads(self) -> int:
        """Count the uploads in the whole bucket that are neither completed nor aborted."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._name)
        return sum(len(page.get("Uploads", ())) for page in pages)

    def read_rows(self, folder: str) -> pa.Table:
        """Read every row below a folder, with the partition column from the directory names."""
        assert self._options.endpoint_url is not None
        filesystem = pyarrow.fs.S3FileSystem(
            endpoint_override=self._options.endpoint_url.removeprefix("http://"),
            scheme="http",
            region=self._options.region,
            access_key=self._options.access_key,
            secret_key=self._options.secret_key,
        )
        partitioning = pyarrow.dataset.partitioning(pa.schema([SCHEMA.field(PARTITION_COLUMN)]), flavor="hive")
        dataset = pyarrow.dataset.dataset(
            f"{self._name}/{folder}", filesystem=filesystem, format="parquet", partitioning=partitioning
        )
        return dataset.to_table(columns=SCHEMA.names).cast(SCHEMA)


def difference(source: pa.Table, found: pa.Table) -> str:
    """Describe how two tables differ as multisets of rows, over all columns; empty if they are equal."""
    order = [(name, "ascending") for name in SCHEMA.names]
    if source.num_rows == found.num_rows and source.sort_by(order).equals(found.sort_by(order)):
        return ""
    wanted = Counter(zip(*(column.to_pylist() for column in source.columns), strict=True))
    there = Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))
    missing, extra = wanted - there, there - wanted
    first = next(iter((missing or extra).items()), None)
    return (
        f"{missing.total()} rows of the source are missing and {extra.total()} rows are not in the source"
        f"{f', e.g. {first[0]}' if first else ''}"
    )
