"""Sockets: addresses, and Unix sockets that others left behind."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from disqueue.config.configuration import Configuration
from disqueue.config.sources import ConfigError
from disqueue.server.listeners import close_all, keep_alive, listen, open_listeners, open_tcp, open_unix
from disqueue.testing.server import free_port


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


ADDRESSES = [["127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["localhost"], *([["::1", "127.0.0.1"]] if has_ipv6() else [])]


@pytest.mark.parametrize("addresses", ADDRESSES, ids=" ".join)
def test_every_address_gets_a_socket(addresses: list[str]) -> None:
    sockets = open_tcp(addresses, free_port())
    try:
        assert len(sockets) >= len(addresses)
    finally:
        close_all(sockets)


def test_without_addresses_all_are_served() -> None:
    sockets = open_tcp([], free_port())
    try:
        assert {one.getsockname()[0] for one in sockets} == ({"0.0.0.0", "::"} if has_ipv6() else {"0.0.0.0"})
    finally:
        close_all(sockets)


@pytest.mark.parametrize("address", ["203.0.113.1", "no.such.host.invalid"])
def test_an_address_of_others_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=f"can't listen on {address} port 12345: "):
        open_tcp(["127.0.0.1", address], 12345)


def test_a_refusal_closes_what_was_opened(tmp_path: Path) -> None:
    port = free_port()
    configuration = Configuration()
    configuration.values.update({"port": port, "bind": ("127.0.0.1",), "unixsocket": str(tmp_path / "no" / "s")})
    with pytest.raises(ConfigError, match=r"unixsocket .*: No such file or directory"):
        open_listeners(configuration)
    close_all(open_tcp(["127.0.0.1"], port))


def test_a_socket_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    open_unix(path, 0).close()
    one = open_unix(path, 0o640)
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o640
    one.close()


def test_a_socket_somebody_listens_on_is_left(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    one = open_unix(path, 0)
    one.listen()
    with pytest.raises(ConfigError, match="another server listens there"):
        open_unix(path, 0)
    one.close()


def test_a_file_that_is_no_socket_is_left(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="a file of this name that is no socket"):
        open_unix(str(path), 0)
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_path_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unixsocket .*: AF_UNIX path too long"):
        open_unix(str(tmp_path / ("x" * 200)), 0)


def test_keep_alive() -> None:
    with socket.socket() as one:
        keep_alive(one, 60)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 20
        keep_alive(one, 0)
        assert not one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_of_two_that_bind_at_the_same_moment_one_is_told_why_it_cannot_listen() -> None:
    port = free_port()
    first, second = open_tcp(["127.0.0.1"], port), open_tcp(["127.0.0.1"], port)
    try:
        listen(first[0], 10)
        with pytest.raises(ConfigError, match=f"can't listen on 127.0.0.1 port {port}: .*another server runs there"):
            listen(second[0], 10)
    finally:
        close_all([*first, *second])
