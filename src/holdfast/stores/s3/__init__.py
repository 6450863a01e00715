"""Store objects in Amazon S3 and compatible servers: the provider of ``s3://``, ``s3a://`` and ``s3n://`` URLs.

`store` has the store itself. This module imports boto3 only when a store is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import CommandFlag, HadoopFileSystem, Location, OptionSpec, StoreProvider
from holdfast.stores.s3.options import S3Options
from holdfast.wording import suggest_nearest

if TYPE_CHECKING:
    from holdfast.stores.s3.store import S3Store


__all__ = ["S3", "S3Options"]

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")  # AWS's rule, and what older and compatible servers accept
_STYLES = {"true": "path", "false": "virtual"}


def _parse_location(rest: str) -> Location:
    bucket, _, key = rest.partition("/")
    if ":" in bucket:
        raise InvalidRequestError(
            "credentials do not belong in a url, where logs would show them: give them as options"
        )
    if not bucket:
        raise InvalidRequestError("the url names no bucket: write s3://bucket/key")
    if not _BUCKET.fullmatch(bucket):
        raise InvalidRequestError("this cannot be the name of a bucket: write s3://bucket/key", bucket=bucket)
    return Location(bucket, key.strip("/"))


def _open_store(location: Location, options: S3Options) -> S3Store:
    from holdfast.stores.s3.store import S3Store

    return S3Store(location.root, options)


# --- options ----------------------------------------------------------------------------------------------------------
def _parse_addressing_style(text: str) -> str:
    word = text.strip().lower()
    if word not in _STYLES:
        raise InvalidRequestError(f"no such choice: {suggest_nearest(word, _STYLES)}")
    return _STYLES[word]


def _parse_ca_bundle(name: str) -> str:
    """Return the absolute path of a CA bundle, because Spark's workers may run in another directory."""
    from holdfast.stores.s3.errors import refuse_unreadable_ca_bundle

    path = os.path.abspath(os.path.expanduser(name))
    refuse_unreadable_ca_bundle(path)
    return path


def _parse_profile(name: str) -> str:
    import botocore.session

    known = botocore.session.Session().available_profiles
    if name not in known:
        raise InvalidRequestError(f"no such profile {name!r}: ~/.aws knows {', '.join(known) or 'none'}")
    return name


# S3A repeats an unanswered connection attempt for more than two minutes, and waits 200 s for a response: by then the
# Python reader is done. So a request is sent at most twice, and waits 15 s each time, the minimum that S3A accepts.
_FAIL_FAST = {
    "attempts.maximum": "0",
    "retry.limit": "1",
    "retry.throttle.limit": "1",
    "connection.establish.timeout": "15s",
    "connection.timeout": "15s",
    "connection.request.timeout": "15s",
    "connection.acquisition.timeout": "15s",
    "multipart.purge": "false",
    "bucket.probe": "0",
}


def _make_fail_fast_settings(bucket: str) -> Mapping[str, str]:
    # Settings for this bucket, because they take precedence over those for all buckets.
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in _FAIL_FAST.items()}


S3 = StoreProvider(
    schemes=("s3", "s3a", "s3n"),
    open=_open_store,
    locate=_parse_location,
    options=S3Options,
    specs=(
        OptionSpec(name="endpoint", field="endpoint_url", shared=True),
        OptionSpec(name="region", field="region", shared=True),
        OptionSpec(name="caBundle", field="ca_bundle"),
        OptionSpec(name="accessKey", field="access_key", secret=True),
        OptionSpec(name="secretKey", field="secret_key", secret=True),
        OptionSpec(name="sessionToken", field="session_token", secret=True),
        OptionSpec(name="pathStyle", field="addressing_style", parse=_parse_addressing_style, shared=True),
    ),
    flags=(
        CommandFlag(
            flag="--endpoint-url",
            option="endpoint",
            metavar="URL",
            help="S3 server that is not AWS, e.g. http://127.0.0.1:9000.",
        ),
        CommandFlag(flag="--region", option="region", help="S3 region."),
        CommandFlag(
            flag="--ca-bundle",
            option="caBundle",
            metavar="FILE",
            help="PEM file with the certificates of trusted authorities.",
            prepare=_parse_ca_bundle,
        ),
        CommandFlag(
            flag="--profile",
            variable="AWS_PROFILE",
            help="Profile of ~/.aws to take credentials from.",
            prepare=_parse_profile,
        ),
    ),
    hadoop=HadoopFileSystem(
        scheme="s3a", settings="fs.s3a.…", package="hadoop-aws", fail_fast=_make_fail_fast_settings
    ),
)
"""``s3://bucket/key``, where the key is taken literally, as Spark users write it."""
