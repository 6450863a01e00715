"""Run the shipped suite on every store, every wrapped store and two servers; deviations are declared, never skipped.

Conditional puts are scenarios 77 and 79: ``create`` and ``update`` in the suite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import MultipartLimits
from holdfast.stores.conformance import Check, Subject, checks_for
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.s3 import S3Options
from holdfast.stores.s3.store import S3Store

_MEMORY = MemoryStore(limits=MultipartLimits(min_part_size_bytes=16)).capabilities
_RENAME = MemoryStore(limits=MultipartLimits(min_part_size_bytes=16), rename=True).capabilities
_NAMESPACE = MemoryStore(limits=MultipartLimits(min_part_size_bytes=16), rename=True, transactions=True).capabilities
_RENAME_FILES = dataclasses.replace(_RENAME, rename_dir=False)
_LOCAL = LocalStore("/").capabilities
_REAL_NAMESPACE = NamespaceStore.capabilities_of("ns")
_S3 = S3Store("bucket", S3Options(endpoint_url="http://127.0.0.1:9000")).capabilities

IMPLEMENTATIONS = {
    "memory": _MEMORY,
    "memory_with_rename": _RENAME,
    "memory_with_file_rename": _RENAME_FILES,
    "memory_with_transactions": dataclasses.replace(_MEMORY, transactions=True),
    "memory_namespace": _NAMESPACE,
    "memory_without_uploads": dataclasses.replace(_RENAME, multipart=None, copy=False),
    "faulty": _RENAME,
    "recorded": _RENAME,
    "throttled": _RENAME,
    "nested": _NAMESPACE,
    "local": _LOCAL,
    "local_recorded": _LOCAL,
    "namespace": _REAL_NAMESPACE,
    "moto": _S3,
    "weed": _S3,
}

_WRAPPED = {"faulty", "recorded", "throttled", "local_recorded"}
_FILE_SYSTEM = {
    "key:double-slash": "a file system has no empty names: refused",
    "key:dot-segment": "a file system gives '.' a meaning: refused",
    "listed-upload:double-slash": "the same",
    "listed-upload:dot-segment": "the same",
}
_NAMES = _FILE_SYSTEM | {
    "check_object_beside_directory": "in a namespace a path is a file or a directory",
    "check_directory_markers": "the same: a path that ends in a slash is no file",
    "check_list_order": "all of a/ comes before a-b, as in a directory",
    "check_list_start_after": "the same order",
    "key:colon": "HDFS refuses colons in paths, and so does a namespace",
    "listed-upload:colon": "the same",
}
DEVIATIONS = {
    "namespace": _NAMES,
    "local": _FILE_SYSTEM,
    "local_recorded": _FILE_SYSTEM,
    "moto": {
        "key:line-ends": "moto finds no route for a path with a line end",
        "listed-upload:line-ends": "moto finds no route for a path with a line end",
    },
    "weed": {
        "check_list_order": "SeaweedFS sorts by path segment: all of a/ before a-b",
        "check_list_start_after": "the same order: what is below a/ does not come behind a",
        "listed-upload:backslash": "SeaweedFS turns a backslash into a slash in listings",
        "listed-upload:double-slash": "SeaweedFS joins slashes in listings",
        "listed-upload:dot-segment": "SeaweedFS refuses '.' as a segment",
        "key:backslash": "SeaweedFS turns a backslash into a slash in listings",
        "key:double-slash": "SeaweedFS joins slashes in listings",
        "key:dot-segment": "SeaweedFS refuses '.' as a segment",
    },
}


def _cases() -> Iterator[object]:
    for name, capabilities in IMPLEMENTATIONS.items():
        checks = checks_for(capabilities)
        declared = DEVIATIONS.get(name, {})
        assert declared.keys() <= {check.name for check in checks}, "a declared deviation names no check"
        for check in checks:
            marks = [pytest.mark.xfail(strict=True, reason=declared[check.name])] if check.name in declared else []
            if name == "weed":
                marks.append(pytest.mark.s3)
            if name in _WRAPPED:
                marks.append(pytest.mark.slow)  # `nested` is a wrapper of wrappers
            if name == ("weed" if check.name.endswith("_race") else "moto"):
                marks.append(pytest.mark.slow)  # one server is enough; with races, the real one takes seconds
            yield pytest.param(name, check, id=f"{name}-{check.name}", marks=marks)


@pytest.mark.parametrize(("implementation", "check"), list(_cases()))
def test_conformance(implementation: str, check: Check, request: pytest.FixtureRequest) -> None:
    store, other = request.getfixturevalue(implementation)
    assert store.capabilities == IMPLEMENTATIONS[implementation], "the checks were chosen for other capabilities"
    rounds = 4 if implementation in ("moto", "weed") else 20  # the integration tests run longer races on servers
    check.run(Subject(store, other, f"suite/{check.name.replace(':', '-')}", rounds=rounds))
