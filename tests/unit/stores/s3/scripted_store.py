"""A store that talks to a server with prepared answers, and a clock that never waits."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.stores.s3 import S3Options
from holdfast.stores.s3.store import S3Store
from tests.unit.stores.s3.scripted_server import Answer, ScriptedServer

PUT_DONE = Answer(headers={"ETag": '"e1"'})
CANARIES = ("AKIACANARYACCESS", "canary-secret-key", "canary-session-token")
Script = Callable[..., tuple[S3Store, ScriptedServer]]
"""Makes a store and its server from answers; `clock` is optional."""


def scripted_options(endpoint_url: str, **more: object) -> S3Options:
    keys = dict(zip(("access_key", "secret_key", "session_token"), CANARIES, strict=True))
    return S3Options(endpoint_url=endpoint_url, region="us-east-1", **keys, **more)  # type: ignore[arg-type]  # a test's mixture
