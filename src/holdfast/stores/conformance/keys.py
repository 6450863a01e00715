"""Check unusual keys, which occur in the destinations and partition values of Spark users."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.conformance import Check, equal, refused
from holdfast.errors import NotFoundError
from holdfast.stores.base import iter_uploads
from holdfast.stores.conformance.subject import Subject

ODD_KEYS = {
    "space": "a b/ c /d",
    "plus": "a+b/+",
    "percent": "100%/50%",
    "percent-escape": "a%20b/%2F/%25",
    "colon": "time=12:30:00/a:b",
    "equals": "year=2013/month=1",
    "unicode": "größe/名前/part",
    "decomposed": "e\u0301/é",
    "emoji": "😀/🧭.parquet",
    "hash": "a#b/#c",
    "question": "a?b=c/?",
    "ampersand": "a&b/&amp;<c>",
    "quotes": 'a\'b/"c"',
    "brackets": "[a]/{b}/(c)*",
    "comma-semicolon": "a,b;c/~$@!^|`",
    "tab": "a\tb/c",
    "control": "a\x01b/\x1f",
    "line-ends": "a\nb/c\rd",
    "backslash": "a\\b/c",
    "hidden": ".hidden/_under/.c",
    "double-slash": "a//b",
    "dot-segment": "a/./b",
    "long": "/".join(["x" * 150] * 4) + "/part-" + "y" * 150,
}
"""Maps the name of each peculiarity to a key with that peculiarity."""


def _key_check(relative: str) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        key = subject.key(relative)
        subject.store.put(key, b"put")
        equal(subject.other.get(key), b"put", "content")
        equal(subject.other.head(key).key, key, "key of head")
        equal(subject.listed(), [relative], "listing")
        equal(subject.listed(relative), [relative], "listing by the whole key")
        page = subject.store.list_page(subject.key(""), key)
        equal(list(page.objects), [], "listing after the key")
        if subject.store.capabilities.multipart is not None:
            _check_upload(subject, key)
            equal(subject.listed(), [relative], "listing")
        subject.store.delete_many([key])
        equal(subject.listed(), [], "listing after delete_many")
        subject.store.put(key, b"again")
        subject.store.delete(key)
        refused(NotFoundError, lambda: subject.store.head(key), "head after delete")

    return run


def _check_upload(subject: Subject, key: str) -> None:
    upload_id = subject.uploads.create_upload(key)
    part = subject.uploads.upload_part(key, upload_id, 1, b"upload")
    subject.uploads.complete_upload(key, upload_id, [part])
    equal(subject.store.get(key), b"upload", "content of the upload")


def _listed_upload_check(relative: str) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        upload_id = subject.uploads.create_upload(subject.key(relative))
        pending = [(upload.key, upload.upload_id) for upload in iter_uploads(subject.uploads, subject.key(""))]
        equal(pending, [(subject.key(relative), upload_id)], "pending uploads")
        subject.uploads.abort_upload(subject.key(relative), upload_id)
        equal(list(iter_uploads(subject.uploads, subject.key(""))), [], "pending uploads after the abort")

    return run


KEY_CHECKS = [Check(f"key:{name}", _key_check(relative)) for name, relative in ODD_KEYS.items()]
# A server that rejects an object at such a key may still start an upload, respond with an error and never list it.
LISTED_UPLOAD_CHECKS = [
    Check(f"listed-upload:{name}", _listed_upload_check(relative), needs=f"key:{name}")
    for name, relative in ODD_KEYS.items()
]
