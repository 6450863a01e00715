"""Test Holdfast on S3 servers that it does not ship: the conformance suite, and jobs with killed drivers.

A deviation that is declared has to be there; one that is not fails. docs/reference/stores.md says
what they mean for users.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.commit import SaveMode, read_snapshot, recover, verify
from holdfast.errors import InvalidRequestError
from holdfast.runtime import SystemIds
from holdfast.stores.base import iter_objects, iter_uploads, multipart
from holdfast.stores.conformance import ODD_KEYS, Check, Subject, checks_for
from holdfast.stores.probe import UploadListingMode, find_upload_listing_mode, store_heeds_conditions
from holdfast.stores.s3 import S3Options
from holdfast.stores.s3.store import S3Store
from tests.integration.foreign_servers import BUCKET, RECIPES, running, started
from tests.integration.test_commit_on_stores import Place, contents, kill
from tests.servers.tls import Authority
from tests.simulation.world import expected, run_job
from tests.unit.cli.destinations import run

pytestmark = [pytest.mark.s3, pytest.mark.slow]

_CHECKS = checks_for(S3Store(BUCKET, S3Options(endpoint_url="http://127.0.0.1:9000")).capabilities)
SERVERS = ("radosgw", "versitygw", "minio", "s3mock", "tls")
_QUOTES = "compares the etag with its quotes, so it refuses every update"
_BY_KEY = "MinIO lists pending uploads for a prefix that is one whole key only (minio/minio#20989)"
DEVIATIONS: dict[str, dict[str, str]] = {
    "radosgw": {"check_update": _QUOTES, "check_update_race": _QUOTES},
    "versitygw": {
        "check_object_beside_directory": "a file system's path is a file or a directory",
        "key:double-slash": "a file system joins slashes",
        "key:dot-segment": "a file system gives '.' a meaning",
    },
    "minio": {
        "check_object_beside_directory": "an object beside a directory of its name hides what is below",
        "key:double-slash": "refused",
        "key:dot-segment": "refused",
        "check_list_uploads": _BY_KEY,
        "check_list_many_uploads": _BY_KEY,
        **{f"listed-upload:{name}": _BY_KEY for name in ODD_KEYS},
    },
    "s3mock": {
        "check_list_order": "sorted by UTF-16 units",
        "check_list_one_directory": "sorted by UTF-16 units",
        "check_list_start_after": "sorted by UTF-16 units",
        "key:backslash": "refused",
        "check_create_race": "looks whether the key is free, then writes: two of eight win in every third round",
        "check_create_delete_race": "the same",
        "check_update_race": "the same",
        "check_upload_replaces": "an upload to a key that was deleted meanwhile loses its parts",
        "check_abort": "the abort of one upload takes the parts of another of its key",
        "listed-upload:backslash": "refused",
    },
    "tls": {
        "key:line-ends": "moto finds no route for a path with a line end",
        "listed-upload:line-ends": "moto finds no route for a path with a line end",
    },
}
assert {name for declared in DEVIATIONS.values() for name in declared} <= {check.name for check in _CHECKS}, (
    "a declared deviation names no check"
)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Options]:
    with started(request.param, tmp_path_factory.mktemp("server")) as options:
        yield options


@pytest.fixture(scope="module")
def handles(server: S3Options) -> Iterator[list[S3Store]]:
    """Open eight handles on one bucket, each with its own connections."""
    first = S3Store(BUCKET, server)
    found = [first, *(pickle.loads(pickle.dumps(first)) for _ in range(7))]
    yield found
    for handle in found:
        handle.close()


_LISTINGS = dict.fromkeys(SERVERS, UploadListingMode.BY_DIRECTORY) | {"minio": UploadListingMode.BY_KEY}


@pytest.mark.parametrize(("server", "listing"), list(_LISTINGS.items()), indirect=["server"], scope="module")
def test_what_probes_find(handles: list[S3Store], listing: UploadListingMode) -> None:
    assert find_upload_listing_mode(handles[0], "probe/") is listing
    assert store_heeds_conditions(handles[0], "probe/", SystemIds())
    assert list(iter_objects(handles[0], "probe/")) == []
    assert _pending(handles[0], "probe/") == []


def _pending(store: S3Store, prefix: str) -> list[str]:
    """List pending uploads; MinIO, without a prefix, lists all that began since it was started."""
    return [upload.key for upload in iter_uploads(multipart(store), "") if upload.key.startswith(prefix)]


@pytest.mark.parametrize("server", SERVERS, indirect=True, scope="module")
@pytest.mark.parametrize(
    ("nth", "operation", "committed"),
    [(3, "put", False), (1, "complete_upload", True), (3, "complete_upload", True), (4, "put", True)],
)
def test_a_driver_is_killed(
    server: S3Options, handles: list[S3Store], nth: int, operation: str, committed: bool
) -> None:
    """C9: readers see all or nothing, and recovery leaves no data behind, whichever uploads the server lists."""
    place = Place(f"s3://{BUCKET}/killed {nth} {operation}", server)
    ctx = place.context("table")
    run_job(ctx, "old")
    assert kill(place, ctx, SaveMode.OVERWRITE, nth, operation)
    seen = sorted(ctx.store.get(ctx.key(file.path)) for file in read_snapshot(ctx).files)
    assert seen in (expected("old"), expected("new"))
    recover(ctx)
    assert contents(ctx) == expected("new" if committed else "old")
    assert verify(ctx).verified
    assert list(iter_objects(ctx.store, ctx.key("_holdfast/jobs/"))) == []
    assert _pending(handles[0], ctx.prefix) == []
    run_job(ctx, "next", SaveMode.OVERWRITE)
    assert contents(ctx) == expected("next")
    ctx.close()


@pytest.mark.parametrize(
    ("server", "code"), [("versitygw", 0), ("minio", 0), ("s3mock", 1)], indirect=["server"], scope="module"
)
def test_what_check_store_says(
    server: S3Options, code: int, handles: list[S3Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the verdict of the command, and that it leaves nothing behind, not even uploads that MinIO never lists."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", str(server.access_key))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", str(server.secret_key))
    where = ("--endpoint-url", str(server.endpoint_url), "--region", "us-east-1")
    result = run("check-store", f"s3://{BUCKET}/mine", *where, "--json")
    assert result.exit_code == code, result.output
    here = {one["name"]: one["here"] for one in json.loads(result.stdout)["committers"]}
    assert here["two_phase"] == ("not safe" if code else "safe")
    assert list(iter_objects(handles[0], "mine/", markers=True)) == []
    assert _pending(handles[0], "mine/") == []


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.tls])
def test_a_server_that_speaks_tls_itself(name: str, tmp_path: Path) -> None:
    """A missing `s` in the URL, or a missing authority, is reported at once, without retries."""
    recipe = RECIPES[name]
    if recipe.found() is None:
        pytest.skip(f"{recipe.title} is not installed: {recipe.install}, or make servers")
    authority = Authority(tmp_path)
    with running(recipe, authority) as options:
        store = S3Store(BUCKET, options)
        assert store.put("a", b"1").size_bytes == 1
        assert store.complete_upload("b", *_uploaded(store, "b")).size_bytes == 1
        store.close()
        unknown = S3Store(BUCKET, dataclasses.replace(options, ca_bundle=None))
        with pytest.raises(InvalidRequestError, match="not known here"):
            unknown.put("a", b"1")
        plain = S3Store(BUCKET, dataclasses.replace(options, endpoint_url=str(options.endpoint_url).replace("s:", ":")))
        with pytest.raises(InvalidRequestError, match="speaks TLS at this port: write https://"):
            plain.put("a", b"1")
        assert (unknown.retries, plain.retries) == (0, 0)
        unknown.close()
        plain.close()


def _uploaded(store: S3Store, key: str) -> tuple[str, list[object]]:
    upload_id = store.create_upload(key)
    return upload_id, [store.upload_part(key, upload_id, 1, b"1")]


def test_a_server_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    """s3rver accepts the header and ignores it: no driver could be fenced."""
    with started("s3rver", tmp_path) as options:
        store = S3Store(BUCKET, options)
        assert not store_heeds_conditions(store, "probe/", SystemIds())
        store.close()


# The last test: what a failed check leaves, such as an upload that cannot be listed, must not disturb the others.
@pytest.mark.parametrize("server", SERVERS, indirect=True, scope="module")  # alone in its scope: each starts once
@pytest.mark.parametrize("check", _CHECKS, ids=lambda check: check.name)
def test_conformance(check: Check, handles: list[S3Store], request: pytest.FixtureRequest) -> None:
    reason = DEVIATIONS[request.node.callspec.params["server"]].get(check.name)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    check.run(Subject(handles[0], handles[1], f"suite/{check.name.replace(':', '-')}", handles, rounds=40))
