"""Parse the options of the filesystem, and show them without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.fs.namespace.sharing import Address
from holdfast.fs.store_options import OF_FSSPEC, parse_keywords
from holdfast.namespace.catalog import SCHEME, database_of
from holdfast.stores.provider import StoreOptions
from holdfast.transactions.urls import has_password, public_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The parsed options of a filesystem.

    Attributes:
        of_fsspec: those of fsspec's own base class.
        secrets: names of options whose values must not be shown.
        given: the options of stores as they were given.
    """

    database: str | None = field(repr=False)
    user: str | None
    groups: tuple[str, ...] | None
    store_options: tuple[StoreOptions, ...] = field(repr=False)
    of_fsspec: Mapping[str, Any]
    secrets: frozenset[str]
    given: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def parse(
        database: str | None, user: str | None, groups: str | Sequence[str] | None, options: Mapping[str, Any]
    ) -> Options:
        """Check the options that a filesystem was made with.

        Raises:
            InvalidRequestError: an option is unknown or invalid.
        """
        if isinstance(groups, str):
            groups = [one.strip() for one in groups.split(",") if one.strip()]
        if user == "":  # a setting that is missing must not mean the user of this process, who may be the superuser
            raise InvalidRequestError("the user is empty: give a name, or leave the option out")
        if database is not None and "://" not in database:
            raise InvalidRequestError("the database needs a URL such as sqlite:///directory/file.db: change it")
        of_stores = {name: value for name, value in options.items() if name not in OF_FSSPEC}
        store_options, secrets = parse_keywords(of_stores, ("database", "user", "groups"))
        return Options(
            database=database,
            user=user,
            groups=None if groups is None else tuple(groups),
            store_options=store_options,
            of_fsspec={name: value for name, value in options.items() if name in OF_FSSPEC},
            secrets=secrets,
            given=of_stores,
        )

    def address(self, name: str) -> Address:
        """Return how to open a namespace with these options.

        Raises:
            NotFoundError: there is no option `database`, and nobody else knows the name.
        """
        database = database_of(name) if self.database is None else self.database
        return Address(f"{SCHEME}://{name}", database, self.user, self.groups, self.store_options)

    def only_address(self, database: str) -> Address:
        """Return how to open whatever namespace a database contains."""
        return Address("", database, self.user, self.groups, self.store_options)

    def shown(self) -> dict[str, Any]:
        """Return the options that may be shown to everybody."""
        shown = {
            "database": None if self.database is None else public_url(self.database),
            "user": self.user,
            "groups": self.groups,
        }
        shown |= {name: value for name, value in self.given.items() if name not in self.secrets}
        return {name: value for name, value in shown.items() if value is not None}

    def public(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the keywords of a filesystem that contain no secret.

        The URL of a database with a password is one: whoever reads the result needs a catalog, or the environment.
        """
        hidden = set(self.secrets)
        if self.database is not None and has_password(self.database):
            hidden.add("database")
        return {name: value for name, value in given.items() if name not in hidden}
