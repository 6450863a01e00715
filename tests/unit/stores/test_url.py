"""Urls of destinations."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import memory_store
from holdfast.stores.registry import absolute_url, open_destination
from holdfast.stores.s3.store import S3Store


@pytest.mark.parametrize(
    ("url", "bucket", "prefix", "canonical"),
    [
        ("s3://bucket/a/b", "bucket", "a/b", "s3://bucket/a/b"),
        ("s3a://bucket/a/b/", "bucket", "a/b", "s3://bucket/a/b"),
        ("s3n://bucket", "bucket", "", "s3://bucket"),
        ("S3://bucket/", "bucket", "", "s3://bucket"),
        ("s3://my.bucket-1/a b+c%20d#e?f=g/é😀", "my.bucket-1", "a b+c%20d#e?f=g/é😀", None),
        ("s3://bucket/year=2013/x:y@z", "bucket", "year=2013/x:y@z", None),
    ],
)
def test_s3(url: str, bucket: str, prefix: str, canonical: str | None) -> None:
    destination = open_destination(url)
    assert isinstance(destination.store, S3Store)
    assert destination.store.bucket == bucket
    assert destination.prefix == prefix
    assert destination.url == (canonical or url)
    assert open_destination(destination.url).url == destination.url


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/data/t", "/data/t"),
        ("/data/t/", "/data/t"),
        ("file:///data/t", "/data/t"),
        ("file:/data/t", "/data/t"),
        ("file://localhost/data/t", "/data/t"),
        ("FILE:///data/t", "/data/t"),
        ("File:/data/t", "/data/t"),
        ("/data/dbfs:/t", "/data/dbfs:/t"),
        ("c:/t", f"{Path.cwd()}/c:/t"),
        ("./dbfs:/t", f"{Path.cwd()}/dbfs:/t"),
        ("/data/a b+c%20d#e?f/é", "/data/a b+c%20d#e?f/é"),
        ("file:///data/100%", "/data/100%"),
        ("/data/x/../t/./u", "/data/t/u"),
    ],
)
def test_paths(url: str, path: str) -> None:
    destination = open_destination(url)
    assert isinstance(destination.store, LocalStore)
    assert f"/{destination.prefix}" == path
    assert destination.url == f"file://{path}"
    assert open_destination(destination.url).prefix == destination.prefix


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("out/t", "./out/t", "file:out/t"):
        assert open_destination(url).url == f"file://{tmp_path}/out/t"
    open_destination("out/t").store.put(open_destination("out/t").key("a"), b"1")
    assert (tmp_path / "out/t/a").read_bytes() == b"1"


def test_a_path_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    assert [absolute_url(url) for url in ("x", "./x/../y/", "file:x", "~/x", "file:~/x", " x")] == [
        *(f"{tmp_path}/x", f"{tmp_path}/y", f"file:{tmp_path}/x", "/home/me/x", "file:/home/me/x", f"{tmp_path}/ x"),
    ]
    for url in (
        "/a/../b/",
        "file:/a",
        "file:///a",
        "s3://b/k",
        "s3a:b",
        "memory://m/x",
        "hdfs://h/x",
        "",
        " ",
        "file:",
    ):
        assert absolute_url(url) == url


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for call in (absolute_url, open_destination):
        with pytest.raises(InvalidRequestError, match="give an absolute path"):
            call("x")


def test_the_directory_of_a_destination_is_kept(tmp_path: Path) -> None:
    destination = open_destination(str(tmp_path / "t"))
    destination.store.put(destination.key("a/b"), b"1")
    destination.store.delete(destination.key("a/b"))
    assert list((tmp_path / "t").iterdir()) == []


def test_links_on_the_way_are_resolved(tmp_path: Path) -> None:
    """One directory has one name: what is above it is not above a link to it."""
    (tmp_path / "real/month=1").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real/month=1")
    assert open_destination(str(tmp_path / "link")).url == f"file://{tmp_path}/real/month=1"
    assert open_destination(str(tmp_path / "link/new")).prefix == f"{tmp_path}/real/month=1/new".strip("/")


def test_a_link_to_nowhere_is_no_destination(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidRequestError, match="a dangling symbolic link"):
        open_destination(str(tmp_path / "link"))


def test_memory() -> None:
    destination = open_destination("memory://test-url/a/b/")
    assert destination.store is memory_store("test-url") is open_destination("memory://test-url").store
    assert destination.store is not open_destination("memory://test-url-2").store
    assert (destination.prefix, destination.url) == ("a/b", "memory://test-url/a/b")


def test_keys() -> None:
    assert open_destination("memory://keys/a").key("_SUCCESS") == "a/_SUCCESS"
    assert open_destination("memory://keys/a").key("") == "a/"
    assert open_destination("memory://keys").key("_SUCCESS") == "_SUCCESS"
    assert open_destination("memory://keys").key("") == ""


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "the destination is empty"),
        ("  ", "the destination is empty"),
        ("s3:///a", "names no bucket"),
        ("s3://", "names no bucket"),
        ("s3://a b/c", "cannot be the name of a bucket"),
        ("s3:bucket/key", "two slashes must follow the scheme: write s3://"),
        ("s3a:/bucket/key", "two slashes must follow the scheme: write s3a://"),
        ("s4://bucket/a", "no store has this url scheme: use s3"),
        ("http://host/a", "no store has this url scheme: use one of those that are known"),
        ("fil:///a", "no store has this url scheme: use file://"),
        ("fill:/a", "no store has the url scheme fill: use s3://bucket/key, or write ./ before"),
        ("dbfs:/mnt/a", r"the Databricks File System is not supported yet: use .* or write ./ before"),
        ("hdfs:/a", "HDFS is not supported yet"),
        (" s3://bucket/a", "the url starts with a space"),
        ("\tfile:///a", "the url starts with a space"),
        ("hdfs://host/a", "HDFS is not supported yet: use a bucket"),
        ("GS://bucket/a", "Google Cloud Storage is not supported yet"),
        ("abfss://container@account.dfs.core.windows.net/a", "Azure Storage is not supported yet"),
        ("wasbs://container@account.blob.core.windows.net/a", "Azure Storage is not supported yet"),
        ("oss://bucket/a", "Alibaba Cloud OSS is not supported yet"),
        ("file://host/a", "a file url names no host"),
        ("a\0b", "cannot be a path"),
        ("file:", "cannot be a path"),
    ],
)
def test_urls_that_cannot_be_right(url: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        open_destination(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIACANARY:canary-secret@bucket/a",
        "s4://k:canary-secret@bucket/a",
        "s3://AKIACANARY:canary/secret@bucket/a",
        "s3:/AKIACANARY:canary-secret@bucket/a",
        "s3:AKIACANARY:canary-secret@bucket/a",
        "s3:///AKIACANARY:canary-secret@bucket/a",
        " s3://AKIACANARY:canary-secret@bucket/a",
        "https:/user:canary-secret@host/a",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        open_destination(url)
    assert "canary" not in str(caught.value).lower()
