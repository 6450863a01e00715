"""A filesystem over a fresh namespace. A module that needs another namespace has a fixture of that name."""

from __future__ import annotations

import pytest

from holdfast.fs import NamespaceFileSystem
from holdfast.namespace.namespace import Namespace
from tests.unit.namespace.fresh import fresh_namespace


@pytest.fixture
def namespace() -> Namespace:
    return fresh_namespace(inline_bytes=1000)


@pytest.fixture
def fs(namespace: Namespace) -> NamespaceFileSystem:
    return NamespaceFileSystem.over(namespace)


@pytest.fixture
def root(namespace: Namespace) -> str:
    return namespace.configuration.name
