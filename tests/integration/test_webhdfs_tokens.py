"""Hadoop's own client and its tokens: bytes, delegation tokens, files of tokens, and what it raises."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.x509 import load_pem_x509_certificate

from holdfast.webhdfs.hadoop_tokens import KIND, HadoopToken, make_identifier, make_token_file, tokens_for_servers
from holdfast.webhdfs.settings import ServerSettings
from tests.patience import wait_until
from tests.servers.tls import Authority
from tests.unit.webhdfs.served import Served, serve_fresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Hadoop:
    """Hadoop's classes in Spark's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self.jvm: Any = spark._jvm
        self.org = self.jvm.org.apache.hadoop

    def file_system(self, served: Served, settings: Mapping[str, str] = {}) -> Any:
        """Return a new client for a server, as the user of the JVM."""
        conf = self.org.conf.Configuration()
        for name, value in settings.items():
            conf.set(name, value)
        where = f"webhdfs://127.0.0.1:{served.port}/" if served.tls is None else f"swebhdfs://localhost:{served.port}/"
        uri = self.jvm.java.net.URI(settings.get("fs.defaultFS", where))
        return self.org.fs.FileSystem.newInstance(uri, conf)

    def path(self, text: str) -> Any:
        return self.org.fs.Path(text)

    def token(self, kind: str, service: str, identifier: bytes = b"i", password: bytes = b"p") -> Any:
        text = self.org.io.Text
        return self.org.security.token.Token(bytearray(identifier), bytearray(password), text(kind), text(service))

    @property
    def user(self) -> Any:
        """The user of the JVM, with its tokens."""
        return self.org.security.UserGroupInformation.getLoginUser()


@pytest.fixture(scope="module")
def hadoop(spark: SparkSession) -> _Hadoop:
    return _Hadoop(spark)


@pytest.fixture(scope="module")
def believing() -> Iterator[Served]:
    """A server that believes names."""
    with serve_fresh() as found:
        found.namespace.mkdirs("/d")
        yield found


@pytest.fixture(scope="module")
def strict() -> Iterator[Served]:
    """A server that wants a proof, with a directory of ann's."""
    with serve_fresh(ServerSettings(url="", believes_names=False)) as found:
        found.namespace.mkdirs("/ann")
        found.namespace.set_owner("/ann", "ann", "ann")
        found.namespace.set_permission("/ann", 0o700)
        yield found


def _raised(act: Any, *arguments: Any) -> str:
    """Return the exception that a call of Java raises, with its message."""
    from py4j.protocol import Py4JJavaError

    with pytest.raises(Py4JJavaError) as raised:
        act(*arguments)
    return str(raised.value.java_exception.toString())


# --- bytes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 1000])
def test_tokens_have_the_bytes_that_hadoop_writes(hadoop: _Hadoop, size: int) -> None:
    service = "127.0.0.1:9870"
    ours = HadoopToken(b"\x01" * size, b"\xff" * size, KIND, service)
    theirs = hadoop.token(KIND, service, ours.identifier, ours.password)
    assert theirs.encodeToUrlString() == ours.encode()
    assert HadoopToken.decode(theirs.encodeToUrlString()) == ours


def test_hadoop_reads_the_identifier(hadoop: _Hadoop) -> None:
    identifier = make_identifier("ann", "yarn", "hue", 1_800_000_000_000, 300, 70_000)
    found = hadoop.token(KIND, "", identifier).decodeIdentifier()
    assert (str(found.getOwner()), str(found.getRenewer()), str(found.getRealUser())) == ("ann", "yarn", "hue")
    assert (found.getIssueDate(), found.getMaxDate(), found.getSequenceNumber()) == (1_800_000_000_000, 300, 70_000)
    again = hadoop.jvm.java.io.ByteArrayOutputStream()
    found.write(hadoop.jvm.java.io.DataOutputStream(again))
    assert bytes(again.toByteArray()) == identifier


def test_hadoop_reads_a_file_of_tokens(hadoop: _Hadoop, tmp_path: Path) -> None:
    made = tokens_for_servers("secret", ["127.0.0.1:9870", "swebhdfs://127.0.0.2:9871", "[::1]:9870"], "ann")
    path = tmp_path / "tokens"
    path.write_bytes(make_token_file(made))
    found = hadoop.org.security.Credentials.readTokenStorageFile(
        hadoop.jvm.java.io.File(str(path)), hadoop.org.conf.Configuration()
    )
    assert found.numberOfTokens() == 3
    for token in made:
        theirs = found.getToken(hadoop.org.io.Text(token.service))
        assert (str(theirs.getKind()), str(theirs.getService())) == (token.kind, token.service)
        assert bytes(theirs.getPassword()) == b"secret"
    address = hadoop.jvm.java.net.InetSocketAddress("::1", 9870)
    assert f"{address.getAddress().getHostAddress()}:9870" == made[2].service


# --- delegation tokens ------------------------------------------------------------------------------------------------
_ASKS = {"ipc.client.fallback-to-simple-auth-allowed": "true"}
"""Without it, a client asks for no token while Kerberos is off."""


def test_a_client_gets_renews_and_cancels_a_delegation_token(hadoop: _Hadoop, believing: Served) -> None:
    client = hadoop.file_system(believing, _ASKS)
    user = hadoop.user.getShortUserName()
    token = client.getDelegationToken(user)
    assert (str(token.getKind()), str(token.getService())) == (KIND, f"127.0.0.1:{believing.port}")
    secret = bytes(token.getPassword()).decode()
    known = believing.tokens.find(secret)
    assert known is not None
    assert (known.user, known.renewer, known.groups) == (user, user, None)
    assert token.decodeIdentifier().getMaxDate() == known.most_ms
    assert client.renewDelegationToken(token) >= known.expires_ms
    client.cancelDelegationToken(token)
    assert believing.tokens.find(secret) is None
    assert "SecretManager$InvalidToken" in _raised(client.renewDelegationToken, token)
    assert "SecretManager$InvalidToken" in _raised(client.cancelDelegationToken, token)
    client.close()


def test_a_client_adds_its_tokens_to_a_job_whose_renewer_they_name(hadoop: _Hadoop, believing: Served) -> None:
    client = hadoop.file_system(believing, _ASKS)
    credentials = hadoop.org.security.Credentials()
    (token,) = client.addDelegationTokens("yarn", credentials)
    assert credentials.numberOfTokens() == 1
    known = believing.tokens.find(bytes(token.getPassword()).decode())
    assert known is not None
    assert known.renewer == "yarn"
    assert "AccessControlException" in _raised(client.renewDelegationToken, token)
    client.close()


# --- tokens that people issue -----------------------------------------------------------------------------------------
def test_a_token_of_a_file_proves_a_user_to_a_stock_client(hadoop: _Hadoop, strict: Served, tmp_path: Path) -> None:
    secret, token = strict.tokens.issue("ann", 600)
    path = tmp_path / "tokens"
    path.write_bytes(make_token_file(tokens_for_servers(secret, [f"127.0.0.1:{strict.port}"], "ann")))
    found = hadoop.org.security.Credentials.readTokenStorageFile(
        hadoop.jvm.java.io.File(str(path)), hadoop.org.conf.Configuration()
    )
    client = hadoop.file_system(strict)
    raised = _raised(client.listStatus, hadoop.path("/ann"))
    assert "AccessControlException" in raised
    assert "send a token of holdfast namespace token" in raised
    client.close()
    hadoop.user.addCredentials(found)  # as it does with the file in HADOOP_TOKEN_FILE_LOCATION
    client = hadoop.file_system(strict)
    assert client.mkdirs(hadoop.path("/ann/d"))
    assert strict.namespace.status("/ann/d").owner == "ann"
    out = client.create(hadoop.path("/ann/f"))
    out.write(bytearray(b"123"))
    out.close()
    assert client.open(hadoop.path("/ann/f")).read() == ord("1")
    strict.tokens.revoke(token.id)
    _wait_until_refused(strict, secret)
    raised = _raised(client.listStatus, hadoop.path("/ann"))
    assert "SecretManager$InvalidToken: the token does not exist, or has expired" in raised
    client.close()


def test_a_token_is_for_the_name_by_which_a_client_finds_several_servers(hadoop: _Hadoop, strict: Served) -> None:
    secret, _ = strict.tokens.issue("ann", 600)
    (ours,) = tokens_for_servers(secret, ["webhdfs://lake"], "ann")
    token = hadoop.token(ours.kind, ours.service, ours.identifier, ours.password)
    hadoop.user.addToken(token.getService(), token)
    settings = {
        "fs.defaultFS": "webhdfs://lake/",
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": "a,b",
        "dfs.namenode.http-address.lake.a": f"127.0.0.1:{strict.port}",
        "dfs.namenode.http-address.lake.b": f"127.0.0.1:{strict.port}",
        "dfs.client.failover.proxy.provider.lake": (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
    }
    client = hadoop.file_system(strict, settings)
    assert client.mkdirs(hadoop.path("/ann/lake"))
    assert strict.namespace.status("/ann/lake").owner == "ann"
    client.close()


def _wait_until_refused(served: Served, secret: str) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    wait_until(
        lambda: served.ask("GET", "/ann", "op=LISTSTATUS", headers=headers).status == 401, "the token is still valid"
    )


# --- HTTPS ------------------------------------------------------------------------------------------------------------
@pytest.fixture
def authority(hadoop: _Hadoop, tmp_path: Path) -> Iterator[Authority]:
    """An authority that the JVM trusts."""
    found = Authority(tmp_path)
    certificate = load_pem_x509_certificate(Path(found.bundle).read_bytes())
    store = tmp_path / "trusted.p12"
    store.write_bytes(
        serialize_java_truststore([PKCS12Certificate(certificate, b"authority")], BestAvailableEncryption(b"changeit"))
    )
    system = hadoop.jvm.java.lang.System
    settings = {"javax.net.ssl.trustStore": str(store), "javax.net.ssl.trustStorePassword": "changeit"}
    for name, value in settings.items():
        system.setProperty(name, value)
    yield found
    for name in settings:
        system.clearProperty(name)


def test_a_stock_client_uses_https_with_a_token_that_it_was_given(
    hadoop: _Hadoop, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.issue("localhost")
    settings = ServerSettings(url="", believes_names=False, certificate=Path(certificate), key=Path(key))
    with serve_fresh(settings, tls=ssl.create_default_context(cafile=authority.bundle)) as served:
        served.namespace.mkdirs("/ann")
        served.namespace.set_owner("/ann", "ann", "ann")
        secret, _ = served.tokens.issue("ann", 600)
        (ours,) = tokens_for_servers(secret, [f"swebhdfs://127.0.0.1:{served.port}"], "ann")
        token = hadoop.token(ours.kind, ours.service, ours.identifier, ours.password)
        hadoop.user.addToken(token.getService(), token)
        client = hadoop.file_system(served)
        out = client.create(hadoop.path("/ann/f"))
        out.write(bytearray(b"123"))
        out.close()
        stream = client.open(hadoop.path("/ann/f"))
        assert stream.read() == ord("1")
        stream.close()
        client.close()
        assert served.namespace.status("/ann/f").owner == "ann"
