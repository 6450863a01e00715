"""fsspec's own suites for filesystems, on a namespace in memory and on one in files of this machine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
from fsspec.tests import abstract

from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, init_namespace

_numbers = itertools.count()


@pytest.fixture(scope="module", params=["memory", "files"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create a namespace; return the URL of its database."""
    name = f"suite{next(_numbers)}"
    directory = tmp_path_factory.mktemp("namespace")
    in_memory = request.param == "memory"
    data = f"memory://{name}" if in_memory else f"{directory}/data"
    database = f"memory://{name}" if in_memory else f"sqlite:///{directory}/ns.db?synchronous=normal"
    # Some of the files are small, and some are not.
    init_namespace(Configuration(name="ours", data=data, superuser="me", inline_bytes=2), database, register=False)
    return database


class OnOurNamespace:
    """The fixtures of the suites."""

    @pytest.fixture
    def fs(self, database: str) -> NamespaceFileSystem:
        fs: NamespaceFileSystem = fsspec.filesystem("holdfast", database=database, user="me")
        return fs

    @pytest.fixture
    def fs_path(self, fs: NamespaceFileSystem) -> Iterator[str]:
        fs.mkdir("ours/tests")
        yield "ours/tests"
        fs.rm("ours/tests", recursive=True)

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def local_path(self, tmp_path: Path) -> str:
        return str(tmp_path)

    @pytest.fixture
    def fs_sanitize_path(self) -> Callable[[str], str]:
        return lambda path: path


class TestCopy(OnOurNamespace, abstract.AbstractCopyTests, abstract.AbstractFixtures):
    pass


class TestGet(OnOurNamespace, abstract.AbstractGetTests, abstract.AbstractFixtures):
    pass


class TestPut(OnOurNamespace, abstract.AbstractPutTests, abstract.AbstractFixtures):
    pass


class TestOpen(OnOurNamespace, abstract.AbstractOpenTests, abstract.AbstractFixtures):
    pass


class TestPipe(OnOurNamespace, abstract.AbstractPipeTests, abstract.AbstractFixtures):
    pass
