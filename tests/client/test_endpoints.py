"""URLs, addresses and the environment."""

from __future__ import annotations

import subprocess
import sys

import pytest

from disqueue.client import AsyncClient, Client
from disqueue.client.endpoints import Endpoint, Settings, parse_endpoint, parse_url, resolve_nodes
from disqueue.client.serializers import BytesSerializer, serializer_for


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("localhost", Endpoint("localhost", 7711)),
        ("10.0.0.1:7000", Endpoint("10.0.0.1", 7000)),
        ("[::1]", Endpoint("::1", 7711)),
        ("[fe80::1]:80", Endpoint("fe80::1", 80)),
        ("/run/disqueue.sock", Endpoint(path="/run/disqueue.sock")),
    ],
)
def test_addresses(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize("text", ["", ":7711", "host:", "host:0", "host:65536", "host:x", "::1", "[::1", "[::1]7711", "host:+1"])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        parse_endpoint(text)


def test_a_url_with_everything() -> None:
    url = "disque://joe:p%40ss@h1:7001,[::1]:7002?retry_for=30&discover=no&protocol=3&client_name=me&ssl_ca_certs=/ca&max_connections=5"
    endpoints, settings = parse_url(url, Settings())
    assert endpoints == [Endpoint("h1", 7001), Endpoint("::1", 7002)]
    assert (settings.username, settings.password, settings.tls) == ("joe", "p@ss", False)
    assert (settings.retry_for, settings.discover, settings.protocol, settings.client_name) == (30.0, False, 3, "me")
    assert (settings.connection_options, settings.max_connections) == ({"ssl_ca_certs": "/ca"}, 5)


@pytest.mark.parametrize("credentials", ["secret", ":secret"])
def test_a_password_alone(credentials: str) -> None:
    _, settings = parse_url(f"disques://{credentials}@host", Settings())
    assert (settings.username, settings.password, settings.tls) == (None, "secret", True)


def test_unix_sockets() -> None:
    assert parse_url("unix:///a/b%20c", Settings())[0] == [Endpoint(path="/a/b c")]
    with pytest.raises(ValueError, match="absolute path"):
        parse_url("unix://a/b", Settings())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://host", "is no URL of a node"),
        ("disque://host?retry=1", "unknown parameter 'retry'"),
        ("disque://host?retry_for=soon", "bad value for retry_for"),
        ("disque://host?discover=maybe", "bad value for discover"),
        ("disque://host?protocol=4", "protocol must be 2 or 3"),
        ("disque://host?connect_timeout=0", "connect_timeout must be above 0"),
        ("disque://host?max_connections=0", "max_connections must be 1"),
        ("disque://", "is no address"),
    ],
)
def test_bad_urls(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_url(url, Settings())


def test_errors_do_not_tell_the_password() -> None:
    with pytest.raises(ValueError, match="no URL") as caught:
        parse_url("http://:s3cret@host", Settings())
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(Settings(password="s3cret"))


def test_nodes_may_be_given_in_many_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = Endpoint("a", 7711), Endpoint("b", 1)
    for nodes in ("a,b:1", ["a", "b:1"], ("disque://a", "b:1", "a"), "disque://a,b:1"):
        assert resolve_nodes(nodes, Settings())[0] == [a, b]
    monkeypatch.setenv("DISQUEUE_URL", "disque://a?retry_for=3")
    endpoints, settings = resolve_nodes(None, Settings())
    assert (endpoints, settings.retry_for) == ([a], 3.0)
    monkeypatch.delenv("DISQUEUE_URL")
    assert resolve_nodes(None, Settings())[0] == [Endpoint("127.0.0.1", 7711)]
    with pytest.raises(ValueError, match="at least one node"):
        resolve_nodes([], Settings())


def test_clients_take_settings_by_keyword() -> None:
    with Client("host", retry_for=1.5, client_name="me") as client:
        assert (client.settings.retry_for, client.settings.client_name) == (1.5, "me")
    assert AsyncClient("host", tls=True).settings.tls
    assert repr(client) == "<Client host:7711>"


def test_serializers_by_name() -> None:
    assert isinstance(serializer_for(None), BytesSerializer)
    assert serializer_for("bytes").encode(memoryview(b"x")) == b"x"
    with pytest.raises(ValueError, match="unknown serializer 'yaml'"):
        serializer_for("yaml")
    with pytest.raises(TypeError, match="must be str"):
        serializer_for("text").encode(b"x")


def test_the_import_of_the_package_is_cheap() -> None:
    program = (
        "import sys, disqueue; assert not {'redis', 'asyncio'} & set(sys.modules); disqueue.Client; assert 'redis' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
