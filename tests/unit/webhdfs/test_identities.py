"""Who sends a request: the order of proofs, proxies, and the file of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from holdfast.runtime import Environment, SerialRunner
from holdfast.transactions.memory import MemoryBackend
from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.hadoop_tokens import HadoopToken
from holdfast.webhdfs.identities import Identities, Identity
from holdfast.webhdfs.parameters import Parameters
from holdfast.webhdfs.tokens import TokenKind, TokenStore
from holdfast.webhdfs.users_file import Proxy, UsersFile
from tests.clocks import CountingIds, StillClock


class _Door:
    """Where requests come in.

    Attributes:
        asked: the users whose groups were looked up on this machine.
    """

    def __init__(self, *, believes_names: bool = True, users: UsersFile | None = None) -> None:
        self.clock = StillClock(1_800_000_000.0)
        ids = CountingIds()
        self.tokens = TokenStore(MemoryBackend(ids), Environment(clock=self.clock, ids=ids, runner=SerialRunner()))
        self.asked: list[str] = []
        self._identities = Identities(
            self.tokens, users or UsersFile(), self.clock, believes_names=believes_names, machine_groups=self._look_up
        )

    def _look_up(self, user: str) -> Sequence[str]:
        self.asked.append(user)
        return (f"{user}s", "staff")

    def enter(
        self,
        query: str = "",
        bearer: str = "",
        certificate: Mapping[str, Any] | None = None,
        host: str = "127.0.0.1",
    ) -> Identity:
        authorization = f"Bearer {bearer}" if bearer else ""
        return self._identities.find(Parameters.parse(query.encode()), authorization, certificate, host)

    def token(self, user: str, kind: TokenKind = TokenKind.BEARER, groups: tuple[str, ...] | None = None) -> str:
        return self.tokens.issue(user, 60, kind=kind, groups=groups)[0]


def _certificate(*names: str) -> Mapping[str, Any]:
    return {"subject": ((("organizationName", "root"),), *((("commonName", name),) for name in names))}


def _delegation(secret: str) -> str:
    return f"delegation={HadoopToken(b'', secret.encode()).encode()}"


# --- the order of proofs ----------------------------------------------------------------------------------------------
def test_a_stronger_proof_comes_first() -> None:
    door = _Door()
    bearer, delegation = door.token("bearer"), _delegation(door.token("delegated", TokenKind.DELEGATION))
    by_certificate = _certificate("certified")
    query = f"{delegation}&user.name=named"
    assert door.enter(query, bearer, by_certificate).user == "bearer"
    assert door.enter(query, "", by_certificate).user == "delegated"
    assert door.enter("user.name=named", "", by_certificate).user == "certified"
    assert door.enter("user.name=named").user == "named"
    assert door.enter().user == "dr.who"


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  "])
def test_the_scheme_of_a_bearer_token_has_no_case(scheme: str) -> None:
    door = _Door(believes_names=False)
    secret = door.token("ann")
    assert door._identities.find(Parameters({}), scheme + secret, None, "").user == "ann"


def test_a_wrong_proof_is_not_replaced_by_a_weaker_one() -> None:
    door = _Door()
    query = "user.name=ann"
    for bearer in ("wrong", " ", door.token("ann") + "x"):
        with pytest.raises(RequestRefusedError, match="bearer token is not valid"):
            door.enter(query, bearer)
    for authorization in ("Bearer", "bearer "):
        with pytest.raises(RequestRefusedError, match="bearer token is not valid"):
            door._identities.find(Parameters.parse(query.encode()), authorization, None, "")
    with pytest.raises(RequestRefusedError, match=r"SecretManager\$InvalidToken"):
        door.enter(f"{query}&{_delegation('wrong')}")
    with pytest.raises(RequestRefusedError, match="cannot be decoded"):
        door.enter(f"{query}&delegation=!")
    for certificate in (_certificate(), _certificate("a", "b"), _certificate("../ann"), _certificate("ann\n")):
        with pytest.raises(RequestRefusedError, match="common name"):
            door.enter(query, "", certificate)


@pytest.mark.parametrize("query", ["", "user.name=ann", "user.name=root&doas=ann"])
def test_without_trust_a_name_proves_nothing(query: str) -> None:
    with pytest.raises(RequestRefusedError, match=r"does not believe user\.name"):
        _Door(believes_names=False, users=UsersFile(proxies={"root": Proxy(users=("*",))})).enter(query)


def test_a_certificate_that_was_not_sent_is_no_proof() -> None:
    for nothing in (None, {}):
        with pytest.raises(RequestRefusedError):
            _Door(believes_names=False).enter("", "", nothing)


@pytest.mark.parametrize("name", ["a%20b", "1a", "a/b", "..", "a%00", "-a", "a$b", "%c3%a9"])
@pytest.mark.parametrize("parameter", ["user.name", "doas"])
def test_a_name_has_the_form_of_hadoops_names(parameter: str, name: str) -> None:
    door = _Door(users=UsersFile(proxies={"dr.who": Proxy(users=("*",))}))
    with pytest.raises(RequestRefusedError, match=f'webhdfs parameter "{parameter}"'):
        door.enter(f"{parameter}={name}")


# --- groups -----------------------------------------------------------------------------------------------------------
def test_groups_of_a_token_come_before_those_of_the_file_and_of_the_machine() -> None:
    door = _Door()
    assert door.enter("", door.token("ann", groups=("readers",))).groups == ("readers",)
    assert door.enter("", door.token("ann", groups=())).groups == ()
    assert door.asked == []
    assert door.enter("", door.token("ann")).groups == ("anns", "staff")
    by_file = _Door(users=UsersFile(groups={"ann": ("writers",)}))
    assert by_file.enter("user.name=ann").groups == ("writers",)
    assert by_file.enter("user.name=bob").groups == ()
    assert by_file.asked == []


def test_groups_of_the_machine_are_looked_up_once_a_minute() -> None:
    door = _Door()
    for _ in range(3):
        door.enter("user.name=ann")
    assert door.asked == ["ann"]
    door.clock.at_s += 60.5
    door.enter("user.name=ann")
    assert door.asked == ["ann", "ann"]


# --- proxies ----------------------------------------------------------------------------------------------------------
_PROXIES = UsersFile(
    groups={"ann": ("analysts",), "bob": ("staff",)},
    proxies={
        "hue": Proxy(users=("ann",)),
        "livy": Proxy(groups=("staff",), hosts=("10.0.0.0/24", "192.168.1.7")),
        "oozie": Proxy(users=("*",), hosts=("10.0.0.7",)),
        "knox": Proxy(groups=("*",)),
        "ambari": Proxy(users=("*",), hosts=("10.0.0.7/24",)),
        "off": Proxy(users=("*",), hosts=()),
        "nobody": Proxy(),
    },
)


@pytest.mark.parametrize(
    ("real", "user", "host", "may"),  # None: from elsewhere
    [
        ("hue", "ann", "10.9.9.9", True),
        ("hue", "bob", "10.9.9.9", False),
        ("livy", "bob", "10.0.0.200", True),
        ("livy", "bob", "192.168.1.7", True),
        ("livy", "bob", "192.168.1.8", None),
        ("livy", "bob", "10.0.1.1", None),
        ("livy", "bob", "::1", None),
        ("livy", "ann", "10.0.0.200", False),
        ("oozie", "root", "10.0.0.7", True),
        ("oozie", "root", "10.0.0.70", None),
        ("ambari", "ann", "10.0.0.200", True),
        ("ambari", "ann", "10.0.1.7", None),
        ("knox", "ann", "10.0.0.7", True),
        ("knox", "stranger", "10.0.0.7", True),
        ("off", "ann", "10.0.0.7", None),
        ("nobody", "ann", "10.0.0.7", False),
        ("ann", "bob", "10.0.0.7", False),
        ("root", "ann", "10.0.0.7", False),
    ],
)
def test_a_proxy_acts_for_whom_and_from_where_it_may(real: str, user: str, host: str, may: bool | None) -> None:
    door = _Door(users=_PROXIES)
    for query, bearer in ((f"user.name={real}&doas={user}", ""), (f"doas={user}", door.token(real))):
        if may:
            found = door.enter(query, bearer, host=host)
            assert (found.user, found.real_user) == (user, real)
            assert found.groups == (_PROXIES.groups or {}).get(user, ())
        else:
            with pytest.raises(RequestRefusedError) as refused:
                door.enter(query, bearer, host=host)
            for_others = f"User: {real} is not allowed to impersonate {user}"
            elsewhere = f"Unauthorized connection for super-user: {real} from IP {host}"
            assert str(refused.value) == (elsewhere if may is None else for_others)


def test_everybody_may_act_for_themselves() -> None:
    found = _Door(users=_PROXIES).enter("user.name=ann&doas=ann")
    assert (found.user, found.real_user) == ("ann", "")


def test_a_delegation_token_cannot_act_for_others() -> None:
    door = _Door(users=_PROXIES)
    secret = door.token("knox", TokenKind.DELEGATION)
    for query, bearer in ((f"{_delegation(secret)}&doas=ann", ""), ("doas=ann", secret)):
        with pytest.raises(RequestRefusedError, match="not allowed to impersonate"):
            door.enter(query, bearer)


def test_groups_are_not_looked_up_for_who_is_no_proxy() -> None:
    door = _Door(users=UsersFile())
    with pytest.raises(RequestRefusedError):
        door.enter("user.name=ann&doas=bob")
    assert door.asked == ["ann"]
