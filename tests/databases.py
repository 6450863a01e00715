"""Skip tests whose database server is not installed, and print why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import UnsupportedError
from tests.servers.mariadb_server import find_mariadb
from tests.servers.postgres_server import find_postgres

__all__ = ["needs_mariadb", "needs_postgres"]


def _needs(find: Callable[[], object]) -> pytest.MarkDecorator:
    try:
        find()
    except UnsupportedError as error:
        return pytest.mark.skipif(True, reason=str(error))
    return pytest.mark.skipif(False, reason="")


needs_mariadb = _needs(find_mariadb)
needs_postgres = _needs(find_postgres)
