"""Where nodes are: addresses, URLs, and the settings that a URL may carry."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict
from urllib.parse import parse_qsl, unquote

DEFAULT_PORT = 7711
DEFAULT_URL = f"disque://127.0.0.1:{DEFAULT_PORT}"
ENVIRONMENT_VARIABLE = "DISQUEUE_URL"

PLAIN, ENCRYPTED, UNIX = "disque", "disques", "unix"
SCHEMES = {PLAIN: PLAIN, ENCRYPTED: ENCRYPTED, UNIX: UNIX, "disque+unix": UNIX, "redis": PLAIN, "rediss": ENCRYPTED}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a node: host and port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a client behaves. All times in seconds."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    protocol: int = 2
    """RESP version: 2 is understood by every server."""
    connect_timeout: float = 2.0
    response_timeout: float = 5.0
    """How long a reply may take beyond the time that the command itself may block."""
    retry_for: float = 15.0
    """How long a command goes on looking for a node before it gives up."""
    discover: bool = True
    """Learn of the other nodes of the cluster by HELLO."""
    max_connections: int = 64
    """To one node, idle ones included."""
    client_name: str | None = None
    connection_options: Mapping[str, Any] = field(default_factory=dict)
    """Handed to redis-py's connections as they are (`ssl_ca_certs`, `socket_keepalive`, …)."""

    def __post_init__(self) -> None:
        if self.protocol not in (2, 3):
            raise ValueError(f"protocol must be 2 or 3, not {self.protocol!r}")
        for name in ("connect_timeout", "response_timeout", "retry_for"):
            if getattr(self, name) < 0 or (getattr(self, name) == 0 and name != "retry_for"):
                raise ValueError(f"{name} must be above 0 seconds, not {getattr(self, name)}")
        if self.max_connections < 1:
            raise ValueError(f"max_connections must be 1 or more, not {self.max_connections}")


class SettingsArguments(TypedDict, total=False):
    """`Settings` as keyword arguments of a client."""

    username: str | None
    password: str | None
    tls: bool
    protocol: int
    connect_timeout: float
    response_timeout: float
    retry_for: float
    discover: bool
    max_connections: int
    client_name: str | None
    connection_options: Mapping[str, Any]


def parse_bool(text: str) -> bool:
    """yes/no of a URL parameter."""
    words = {"1": True, "yes": True, "true": True, "on": True, "0": False, "no": False, "false": False, "off": False}
    if text.lower() not in words:
        raise ValueError(f"{text!r} is not one of {', '.join(words)}")
    return words[text.lower()]


URL_PARAMETERS: dict[str, Any] = {
    "username": str,
    "password": str,
    "protocol": int,
    "connect_timeout": float,
    "response_timeout": float,
    "retry_for": float,
    "discover": parse_bool,
    "max_connections": int,
    "client_name": str,
}


def parse_endpoint(text: str) -> Endpoint:
    """`host`, `host:port`, `[v6]:port`, or the path of a Unix socket. Raises ValueError."""
    if text.startswith("/"):
        return Endpoint(path=text)
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is no address: use [v6-address]:port")
        port_text = rest[1:] if rest else str(DEFAULT_PORT)
    else:
        host, colon, port_text = text.partition(":")
        if ":" in port_text:
            raise ValueError(f"{text!r} is no address: put an IPv6 address in brackets, [::1]:{DEFAULT_PORT}")
        port_text = port_text if colon else str(DEFAULT_PORT)
    if not host or not port_text.isdecimal() or not 0 < int(port_text) < 65536:
        raise ValueError(f"{text!r} is no address: use host:port with a port between 1 and 65535")
    return Endpoint(host, int(port_text))


def apply_parameters(settings: Settings, query: str) -> Settings:
    """The settings with what the query of a URL says. Raises ValueError for unknown names and bad values."""
    known: dict[str, Any] = {}
    options: dict[str, Any] = dict(settings.connection_options)
    for name, value in parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)):
        if name.startswith("ssl_"):
            options[name] = parse_bool(value) if name == "ssl_check_hostname" else value
        elif name in URL_PARAMETERS:
            try:
                known[name] = URL_PARAMETERS[name](value)
            except ValueError as error:
                raise ValueError(f"bad value for {name} in the URL: {error}") from None
        else:
            raise ValueError(f"unknown parameter {name!r} in the URL: use one of {', '.join(URL_PARAMETERS)}, ssl_…")
    return replace(settings, connection_options=options, **known)


def parse_url(url: str, settings: Settings) -> tuple[list[Endpoint], Settings]:
    """`disque://user:password@host:port,host2:port2?retry_for=30`. Raises ValueError."""
    scheme, separator, rest = url.partition("://")
    kind = SCHEMES.get(scheme.lower())
    if not separator or kind is None:
        raise ValueError(f"{hide_password(url)!r} is no URL of a node: use disque://host:port, disques:// for TLS, unix:///path")
    place, _, query = rest.partition("?")
    credentials, at, hosts = place.rpartition("@")
    if at:
        username, colon, password = credentials.partition(":")
        if not colon:  # disque://secret@host: servers had only a password for most of their life
            username, password = "", credentials
        settings = replace(settings, username=unquote(username) or None, password=unquote(password) or None)
    settings = apply_parameters(replace(settings, tls=settings.tls or kind == ENCRYPTED), query)
    if kind == UNIX:
        endpoints = [Endpoint(path=unquote(path)) for path in hosts.split(",")]
        if not all(endpoint.path.startswith("/") for endpoint in endpoints):
            raise ValueError(f"{hide_password(url)!r} needs an absolute path: unix:///run/disqueue.sock")
        return endpoints, settings
    return [parse_endpoint(host) for host in hosts.rstrip("/").split(",")], settings


def hide_password(url: str) -> str:
    """The URL without what stands before its last `@`."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}…@{rest.rpartition('@')[2]}" if "@" in rest else url


def resolve_nodes(nodes: str | Iterable[str] | None, settings: Settings) -> tuple[list[Endpoint], Settings]:
    """What a client was given as its nodes: a URL, an address, a list of either, or None for the environment."""
    if nodes is None:
        nodes = os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_URL
    endpoints: list[Endpoint] = []
    for node in [nodes] if isinstance(nodes, str) else list(nodes):
        if "://" in node:
            more, settings = parse_url(node, settings)
        else:
            more = [parse_endpoint(part.strip()) for part in node.split(",")]
        endpoints += [endpoint for endpoint in more if endpoint not in endpoints]
    if not endpoints:
        raise ValueError("give at least one node, for example disque://127.0.0.1:7711")
    return endpoints, settings
