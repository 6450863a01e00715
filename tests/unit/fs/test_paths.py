"""Paths of the magic filesystem."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.fs.paths import Location, canonical, locate, split_magic


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://bucket/a b/c", "bucket/a b/c"),
        ("s3a://bucket/a/", "bucket/a"),
        ("holdfast-magic://bucket/a", "bucket/a"),
        ("holdfast-magic://s3n://bucket/a", "bucket/a"),
        ("holdfast-magic://memory://name/a%20b", "memory:name/a%20b"),
        ("memory:name/a", "memory:name/a"),
        ("file:///data/a/", "file:/data/a"),
        ("file:/data/a", "file:/data/a"),
        ("file:///", "file:/"),
        ("/bucket/a", "bucket/a"),
    ],
)
def test_canonical(path: str, expected: str) -> None:
    assert canonical(path) == expected
    assert canonical(expected) == expected, "again changes nothing"
    assert canonical(f"holdfast-magic://{expected}") == expected


@pytest.mark.parametrize(
    ("path", "location", "url"),
    [
        ("bucket/a/b", Location("bucket", "a/b"), "s3://bucket"),
        ("bucket", Location("bucket", ""), "s3://bucket"),
        ("memory:name/a", Location("memory:name", "a"), "memory://name"),
        ("file:/data/a", Location("file:/", "data/a"), "file:///"),
        ("file:/", Location("file:/", ""), "file:///"),
    ],
)
def test_locations(path: str, location: Location, url: str) -> None:
    assert locate(path) == location and location.url == url
    assert location.path(location.key) == path


@pytest.mark.parametrize("path", ["", "memory:", "file:", "memory:/a"])
def test_paths_without_a_store(path: str) -> None:
    with pytest.raises(InvalidRequestError, match="names no bucket"):
        locate(path)


def test_an_unknown_scheme() -> None:
    with pytest.raises(InvalidRequestError, match="no store has this url scheme"):
        canonical("ftp://host/a")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("out put/t/__magic_job-7/tasks/a/__base/x", ("out put/t/", "__magic_job-7/tasks/a/__base/x")),
        ("__magic/x", ("", "__magic/x")),
        ("a/__magic", ("a/", "__magic")),
        ("a/b", None),
        ("a/__magic_jobs/b", None),
        ("__base/__magic/__magic_job-1/x", ("__base/", "__magic/__magic_job-1/x")),
    ],
)
def test_the_destination_of_a_magic_key(key: str, expected: tuple[str, str] | None) -> None:
    """Scenario 34: the destination is everything above the first magic directory, whatever its name."""
    assert split_magic(key) == expected


@pytest.mark.parametrize("path", ["s3://AKIA:canary@bucket/key", "AKIA:canary@bucket/key", "memory://a:canary@x/y"])
def test_credentials_in_a_path_are_refused_and_not_repeated(path: str) -> None:
    with pytest.raises(InvalidRequestError, match="credentials do not belong in a path") as caught:
        canonical(path)
    assert "canary" not in str(caught.value) and "AKIA" not in str(caught.value)
    assert canonical("bucket/a@b:c") == "bucket/a@b:c", "only the store's name is checked"
