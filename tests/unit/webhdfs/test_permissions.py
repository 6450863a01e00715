"""A user without rights gets HDFS's exception from every operation, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from holdfast.namespace.errors import PermissionDeniedError
from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.operations import OPERATIONS, TRANSFERS
from holdfast.webhdfs.parameters import Parameters
from holdfast.webhdfs.reading import get_file_statuses
from tests.namespace_world import all_records
from tests.unit.webhdfs.served import Served, serve_fresh

_DENIED = "org.apache.hadoop.security.AccessControlException"
_TREE = b"ilsrwgutp"
"""The kinds of records of which the tree is made."""

_OF_NO_PATH = frozenset(
    (
        "CREATESYMLINK",
        "GETALLSTORAGEPOLICY",
        "GETDELEGATIONTOKEN",
        "GETECCODECS",
        "GETECPOLICIES",
        "GETHOMEDIRECTORY",
        "GETSERVERDEFAULTS",
        "GETSNAPSHOTTABLEDIRECTORYLIST",
        "GETSTATUS",
        "GETTRASHROOT",
        "GETTRASHROOTS",
    )
)
"""Operations that look at no path: they say nothing of the tree."""

_OF_TOKENS = frozenset(("CANCELDELEGATIONTOKEN", "RENEWDELEGATIONTOKEN"))

_PARAMETERS: Mapping[str, str] = {
    "CHECKACCESS": "fsaction=r--",
    "CONCAT": "sources=/private/g",
    "GETXATTRS": "encoding=HEX",
    "MODIFYACLENTRIES": "aclspec=user:bob:rwx",
    "REMOVEACLENTRIES": "aclspec=user:bob:",
    "REMOVEXATTR": "xattr.name=user.a",
    "RENAME": "destination=/public/bob",
    "SETACL": "aclspec=user:bob:rwx",
    "SETOWNER": "owner=bob",
    "SETPERMISSION": "permission=777",
    "SETQUOTA": "namespacequota=5&storagespacequota=5",
    "SETQUOTABYSTORAGETYPE": "storagetype=SSD&storagespacequota=5",
    "SETREPLICATION": "replication=2",
    "SETTIMES": "modificationtime=1",
    "SETXATTR": "xattr.name=user.b&xattr.value=0x00&flag=CREATE",
    "TRUNCATE": "newlength=1",
}

_ALL = [(method, name) for method in OPERATIONS for name in [*OPERATIONS[method], *TRANSFERS[method]]]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server of a tree with directories that others may not enter, not change, and not read."""
    with serve_fresh() as found:
        namespace = found.namespace
        for path, mode in (("/private", 0o700), ("/public", 0o777), ("/shared", 0o755), ("/sticky", 0o1777)):
            namespace.mkdirs(path)
            namespace.set_permission(path, mode)
            for name in ("f", "g"):
                namespace.write_file(f"{path}/{name}", b"secret")
            namespace.mkdirs(f"{path}/d/e")
        for path in ("/private", "/private/f", "/private/g", "/private/d"):
            namespace.set_owner(path, "ann", "ann")
        namespace.set_permission("/shared/g", 0o600)
        namespace.set_permission("/shared/d", 0o700)
        namespace.set_xattr("/private/f", "user.a", b"1")
        namespace.set_xattr("/shared/f", "user.a", b"1")
        yield found


def _tree(served: Served) -> dict[bytes, object]:
    records = all_records(served.namespace.database)
    return {key: (one.value, one.number) for key, one in records.items() if key[:1] in _TREE}


def _query(name: str, *more: str) -> str:
    """Return the query of bob's request for an operation with all the parameters that it needs."""
    return "&".join([f"op={name}&user.name=bob", *([_PARAMETERS[name]] if name in _PARAMETERS else []), *more])


@pytest.mark.parametrize(("method", "name"), [one for one in _ALL if one[1] not in {*_OF_NO_PATH, *_OF_TOKENS}])
@pytest.mark.parametrize("path", ["/private/f", "/private/d", "/private/d/e", "/private/nothing"])
def test_nobody_learns_or_changes_what_is_in_a_directory_that_others_may_not_enter(
    served: Served, method: str, name: str, path: str
) -> None:
    before = _tree(served)
    reply = served.transfer(method, path, _query(name), b"123")
    assert (reply.status, reply.java_class) == (403, _DENIED), reply
    assert b"secret" not in reply.body
    assert _tree(served) == before


def test_requests_that_are_answered_together_have_the_rights_of_their_own_users(served: Served) -> None:
    """One snapshot of the database answers them, and no caller gets the answer to another one."""

    def call(user: str, path: str) -> Call:
        return Call(
            method="GET",
            operation="GETFILESTATUS",
            path=path,
            parameters=Parameters({}),
            namespace=served.namespace.as_user(user),
            host="",
            port=0,
            tokens=served.tokens,
        )

    users = ["bob", "ann", "root", "bob", "dr.who", "ann"]
    found = get_file_statuses([call(user, "/private/f") for user in users])
    assert [isinstance(answer, Answer) for answer in found] == [user in ("ann", "root") for user in users]
    assert {type(answer) for answer in found} == {Answer, PermissionDeniedError}


@pytest.mark.parametrize(("method", "name"), [one for one in _ALL if one[1] in _OF_NO_PATH])
def test_operations_of_no_path_say_nothing_of_the_tree(served: Served, method: str, name: str) -> None:
    before = _tree(served)
    reply = served.ask(method, "/private/f", _query(name))
    assert reply.status == (400 if name == "CREATESYMLINK" else 200)
    assert b"ann" not in reply.body
    assert _tree(served) == before


@pytest.mark.parametrize("name", sorted(_OF_TOKENS))
def test_the_tokens_of_others_are_neither_renewed_nor_cancelled(served: Served, name: str) -> None:
    query = "op=GETDELEGATIONTOKEN&user.name=ann&renewer=ann"
    token = served.ask("GET", "/", query).document["Token"]["urlString"]
    reply = served.ask("PUT", "/", _query(name, f"token={token}"))
    assert (reply.status, reply.java_class) == (403, _DENIED)
    assert served.ask("GET", "/private", f"op=LISTSTATUS&delegation={token}").status == 200


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("PUT", "/shared/new", "op=MKDIRS"),
        ("PUT", "/shared/new/deep", "op=MKDIRS"),
        ("PUT", "/shared/new", "op=CREATE"),
        ("PUT", "/shared/new/deep", "op=CREATE"),
        ("PUT", "/shared/f", "op=CREATE&overwrite=true"),
        ("PUT", "/public/d/../../shared/f", "op=CREATE&overwrite=true"),
        ("POST", "/shared/f", "op=APPEND"),
        ("POST", "/shared/f", "op=TRUNCATE&newlength=0"),
        ("POST", "/shared/f", "op=CONCAT&sources=/shared/g"),
        ("POST", "/shared/f", "op=CONCAT&sources=/public/g"),
        ("POST", "/public/f", "op=CONCAT&sources=/shared/f"),
        ("PUT", "/shared/f", "op=RENAME&destination=/public/bob"),
        ("PUT", "/shared/f", "op=RENAME&destination=/public/bob&renameoptions=OVERWRITE"),
        ("PUT", "/public/f", "op=RENAME&destination=/shared/new"),
        ("PUT", "/public/f", "op=RENAME&destination=/shared/f&renameoptions=OVERWRITE"),
        ("PUT", "/public/f", "op=RENAME&destination=/private/new"),
        ("PUT", "/public/f", "op=RENAME&destination=/private/f&renameoptions=OVERWRITE"),
        ("DELETE", "/shared/f", "op=DELETE"),
        ("DELETE", "/shared", "op=DELETE&recursive=true"),
        ("DELETE", "/shared/d", "op=DELETE&recursive=true"),
        ("DELETE", "/sticky/f", "op=DELETE"),
        ("PUT", "/sticky/f", "op=RENAME&destination=/public/bob"),
        ("DELETE", "/", "op=DELETE&recursive=true"),
        ("PUT", "/public/f", "op=SETPERMISSION&permission=777"),
        ("PUT", "/public/f", "op=SETOWNER&owner=bob"),
        ("PUT", "/public/f", "op=SETOWNER&group=bob"),
        ("PUT", "/shared/f", "op=SETTIMES&modificationtime=1"),
        ("PUT", "/shared/f", "op=SETREPLICATION&replication=2"),
        ("PUT", "/shared/f", "op=SETXATTR&xattr.name=user.b&xattr.value=0x00"),
        ("PUT", "/shared/f", "op=REMOVEXATTR&xattr.name=user.a"),
        ("PUT", "/public/f", "op=SETXATTR&xattr.name=trusted.b&xattr.value=0x00"),
        ("PUT", "/public", "op=SETQUOTA&namespacequota=5"),
        ("PUT", "/public", "op=SETQUOTA&namespacequota=-1&storagespacequota=-1"),
        ("PUT", "/public", "op=SETQUOTA"),
        ("PUT", "/shared/f", "op=REMOVEACL"),
        ("PUT", "/shared", "op=REMOVEDEFAULTACL"),
        ("POST", "/shared", "op=UNSETSTORAGEPOLICY"),
        ("PUT", "/public", "op=DISALLOWSNAPSHOT"),
        ("GET", "/shared/g", "op=OPEN"),
        ("GET", "/shared/g", "op=OPEN&offset=1"),
        ("GET", "/shared/g", "op=GETFILECHECKSUM"),
        ("GET", "/shared/g", "op=GETXATTRS&encoding=HEX"),
        ("GET", "/shared/g", "op=GETFILEBLOCKLOCATIONS"),
        ("GET", "/shared/g", "op=GET_BLOCK_LOCATIONS"),
        ("GET", "/shared/g", "op=CHECKACCESS&fsaction=r--"),
        ("GET", "/shared/d", "op=LISTSTATUS"),
        ("GET", "/shared/d", "op=LISTSTATUS_BATCH"),
        ("GET", "/shared", "op=GETCONTENTSUMMARY"),
        ("GET", "/shared", "op=GETQUOTAUSAGE"),
        ("GET", "/shared/d/e", "op=GETFILESTATUS"),
    ],
)
def test_who_lacks_one_right_is_refused(served: Served, method: str, path: str, query: str) -> None:
    before = _tree(served)
    reply = served.transfer(method, path, f"{query}&user.name=bob", b"123")
    if ".." in path:
        assert (reply.status, reply.java_class) == (400, "org.apache.hadoop.fs.InvalidPathException")
    else:
        assert (reply.status, reply.java_class) == (403, _DENIED), reply
    assert _tree(served) == before


def test_the_trash_of_others_is_not_listed_and_hides_nobodys(served: Served) -> None:
    namespace = served.namespace
    for user in ("ann", "bob", "hue"):
        namespace.mkdirs(f"/user/{user}/.Trash")
        namespace.set_owner(f"/user/{user}", user, user)
        namespace.set_permission(f"/user/{user}", 0o700)
    found = {}
    for user in ("bob", "root"):
        reply = served.ask("GET", "/", f"op=GETTRASHROOTS&allusers=true&user.name={user}")
        assert reply.status == 200, reply
        found[user] = [one["path"] for one in reply.document["Paths"]]
    assert found["bob"] == ["/user/bob/.Trash"]
    assert found["root"] == [f"/user/{user}/.Trash" for user in ("ann", "bob", "hue")]
