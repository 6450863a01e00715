"""fsspec's own suites for filesystems, on namespaces in memory, in files of this machine, and in database servers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fsspec.tests import abstract

from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, init_namespace, open_namespace

_numbers = itertools.count()


def _in_memory(request: pytest.FixtureRequest, directory: Path) -> tuple[str, str]:
    name = f"suite{next(_numbers)}"
    return f"memory://{name}", f"memory://{name}"


def _in_files(request: pytest.FixtureRequest, directory: Path) -> tuple[str, str]:
    return f"sqlite:///{directory}/ns.db?synchronous=normal", f"{directory}/data"


def _in_postgres(request: pytest.FixtureRequest, directory: Path) -> tuple[str, str]:
    return request.getfixturevalue("new_postgres_url")(), f"{directory}/data"


def _in_mysql(request: pytest.FixtureRequest, directory: Path) -> tuple[str, str]:
    return request.getfixturevalue("new_mysql_url")(), f"{directory}/data"


_SLOW = pytest.mark.slow


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(_in_memory, id="memory"),
        pytest.param(_in_files, id="files"),
        pytest.param(_in_postgres, id="postgresql", marks=_SLOW),
        pytest.param(_in_mysql, id="mysql", marks=_SLOW),
    ],
)
def filesystem(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NamespaceFileSystem]:
    """Create and open a namespace, which is closed while its server still runs."""
    database, data = request.param(request, tmp_path_factory.mktemp("namespace"))
    # Some of the files are small, and some are not.
    init_namespace(Configuration(name="ours", data=data, superuser="me", inline_bytes=2), database, register=False)
    with open_namespace(database, user="me") as namespace:
        yield NamespaceFileSystem.over(namespace)


class OnOurNamespace:
    """The fixtures of the suites."""

    @pytest.fixture
    def fs(self, filesystem: NamespaceFileSystem) -> NamespaceFileSystem:
        return filesystem

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
