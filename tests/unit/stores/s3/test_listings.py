"""S3's listings: pages and markers."""

from __future__ import annotations

import pytest

from holdfast.errors import CorruptDataError
from holdfast.stores.base import iter_uploads
from tests.unit.stores.s3.scripted_server import Answer, error
from tests.unit.stores.s3.scripted_store import Script


def _uploads(*uploads: str | tuple[str, str], truncated: bool = False, marker: str = "") -> Answer:
    named = [upload if isinstance(upload, tuple) else (upload, "u") for upload in uploads]
    entries = "".join(f"<Upload><Key>{key}</Key><UploadId>{one}</UploadId></Upload>" for key, one in named)
    more = f"<NextKeyMarker>{marker}</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>" if marker else ""
    return Answer(
        body=f"<ListMultipartUploadsResult><IsTruncated>{str(truncated).lower()}</IsTruncated>{more}{entries}"
        "</ListMultipartUploadsResult>"
    )


def test_pages_of_uploads(script: Script) -> None:
    """facts: pitfall 2. No small MaxUploads (SeaweedFS loses uploads between pages); neighbours are filtered."""
    store, server = script(_uploads("t/a", truncated=True, marker="t/a"), _uploads("t/b", "t1/c", "t"))
    assert [upload.key for upload in iter_uploads(store, "t/")] == ["t/a", "t/b"]
    assert "key-marker=t%2Fa" in server.requests[1][1]
    assert "upload-id-marker=u" in server.requests[1][1]
    assert all("max-uploads" not in path for _, path in server.requests)


def test_a_marker_that_the_server_refuses(script: Script) -> None:
    """versitygw 1.8 refuses its own marker beyond 1,000 uploads: all of the marker's key, then on behind the key."""
    store, server = script(
        _uploads("t/a", "t/b", truncated=True, marker="t/b"),
        error("InvalidArgument", 400),
        _uploads(("t/b", "u"), ("t/b", "u2"), "t/bc"),
        _uploads("t/c", truncated=True, marker="t/c"),
        error("InvalidArgument", 400),
        _uploads("t/c"),
        _uploads("t/d"),
    )
    found = [(upload.key, upload.upload_id) for upload in iter_uploads(store, "t/")]
    assert found == [("t/a", "u"), ("t/b", "u"), ("t/b", "u2"), ("t/c", "u"), ("t/d", "u")]
    assert "prefix=t%2Fb&" in f"{server.requests[2][1]}&"
    assert "key-marker=t%2Fb" in server.requests[3][1]
    assert "upload-id-marker" not in server.requests[3][1]


def test_more_uploads_of_one_key_than_such_a_server_can_list(script: Script) -> None:
    page = _uploads("t/a", truncated=True, marker="t/a")
    store, _ = script(page, error("InvalidArgument", 400), page)
    with pytest.raises(CorruptDataError, match="abort some of them"):
        list(iter_uploads(store, "t/"))


def test_keys_of_objects_are_asked_for_in_urls_encoding(script: Script) -> None:
    body = (
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>t/a%01+b%2B</Key><Size>1</Size>"
        "<LastModified>2026-11-22T10:00:00Z</LastModified></Contents></ListBucketResult>"
    )
    store, server = script(Answer(body=body))
    assert [found.key for found in store.list_page("t/").objects] == ["t/a\x01 b+"]
    assert "encoding-type=url" in server.requests[0][1]


def test_uploads_cut_off_without_a_marker(script: Script) -> None:
    """facts: SeaweedFS with MaxUploads gives no NextKeyMarker. Unlisted uploads would be left permanently."""
    store, _ = script(_uploads("t/a", truncated=True))
    with pytest.raises(CorruptDataError, match="is truncated without a"):
        list(iter_uploads(store, "t/"))


def test_uploads_whose_marker_does_not_advance(script: Script) -> None:
    store, server = script(_uploads("t/a", truncated=True, marker="t/a"))
    with pytest.raises(CorruptDataError, match="does not advance"):
        list(iter_uploads(store, "t/"))
    assert len(server.requests) == 2


def test_answers_that_do_not_say_when(script: Script) -> None:
    """Of no known server; a wrong address may be anybody's."""
    body = "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>"
    store, _ = script(Answer(body=body), Answer(body="x", headers={"ETag": '"e"'}))
    assert [(found.key, found.modified_at_s) for found in store.list_page("").objects] == [("a", 0.0)]
    assert (store.head("a").size_bytes, store.head("a").modified_at_s) == (1, 0.0)


def test_a_directory_marker_without_a_size(script: Script) -> None:
    """S3Proxy 2.6 lists them so; it was a KeyError."""
    body = "<ListBucketResult><Contents><Key>t/</Key></Contents></ListBucketResult>"
    store, _ = script(Answer(body=body))
    assert [(found.key, found.size_bytes) for found in store.list_page("").objects] == [("t/", 0)]


def test_listing_cut_off_without_a_token(script: Script) -> None:
    store, _ = script(Answer(body="<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"))
    with pytest.raises(CorruptDataError, match="is truncated without a"):
        store.list_page("t/")
