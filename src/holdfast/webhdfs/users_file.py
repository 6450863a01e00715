"""Read the file that says who is in which groups, and who may act for others."""

from __future__ import annotations

import configparser
import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Proxy:
    """For whom a user may act, and from where; an asterisk stands for all."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("*",)

    def may_act_for(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether it may act for a user with groups."""
        return "*" in self.users or user in self.users or not {"*", *groups}.isdisjoint(self.groups)

    def may_act_from(self, host: str) -> bool:
        """Return whether requests from a host may act for others."""
        return any(_matches(one, host) for one in self.hosts)


def _matches(pattern: str, host: str) -> bool:
    if pattern in ("*", host):
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class UsersFile:
    """The groups of users, and who may act for whom, as a file of the server says.

    Attributes:
        groups: of the users that it names; None for those of this machine.
    """

    groups: Mapping[str, tuple[str, ...]] | None = None
    proxies: Mapping[str, Proxy] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> UsersFile:
        """Read a file with a section ``[groups]`` (lines ``user = group, group``) and sections ``[proxy NAME]``
        (``users``, ``groups`` and ``hosts``, which are addresses or networks). Names have no white space.

        Raises:
            InvalidRequestError: it cannot be read, or has another form.
        """
        parser = configparser.RawConfigParser(delimiters=("=",), strict=True, default_section="")
        parser.optionxform = str  # type: ignore[assignment,method-assign]  # names of users keep their case
        try:
            parser.read_string(path.read_text(encoding="utf-8"), source=path.name)
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise InvalidRequestError(
                "the file of users cannot be read: fix it", path=str(path), reason=" ".join(str(error).split())
            ) from error
        groups, proxies = None, {}
        for section in parser.sections():
            kind, _, name = section.partition(" ")
            values = {key: _split(value) for key, value in parser.items(section)}
            _check_names([name, *(part for key, parts in values.items() for part in (key, *parts))])
            if section == "groups":
                groups = values
            elif kind == "proxy" and name and values.keys() <= {"users", "groups", "hosts"}:
                proxies[name] = Proxy(**values)
                _check_hosts(proxies[name].hosts)
            else:
                raise InvalidRequestError(
                    "the file of users has the sections [groups] and [proxy NAME] with users, groups and hosts: fix it",
                    section=section,
                )
        return UsersFile(groups, proxies)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if len(name.split()) > 1:
            raise InvalidRequestError("the file of users separates names by commas: fix it", text=name)


def _check_hosts(hosts: Sequence[str]) -> None:
    for host in hosts:
        try:
            if host != "*":
                ipaddress.ip_network(host, strict=False)
        except ValueError as error:
            raise InvalidRequestError(
                "the hosts of a proxy are addresses such as 10.0.0.7, networks such as 10.0.0.0/24, or *: fix it",
                host=host,
            ) from error


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


class WatchedUsersFile:
    """A file of users that is read again when it has changed.

    Args:
        path: None for no file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._users = UsersFile()

    def read(self) -> UsersFile:
        """Return what the file says now. After an error, the file is read again only when it has changed again.

        Raises:
            InvalidRequestError: see `UsersFile.read`.
        """
        if self._path is not None:
            try:
                status = os.stat(self._path)
                now = (status.st_ino, status.st_mtime_ns, status.st_size)
            except OSError:
                now = (0, 0, 0)
            if now != self._seen:
                self._seen = now
                self._users = UsersFile.read(self._path)
        return self._users
