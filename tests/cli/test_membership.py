"""What is said about a cluster whose nodes do not agree."""

from __future__ import annotations

import pytest

from disqueue.cli.connection import AddressError, Target
from disqueue.cli.membership import NodeView, PeerView, disagreements, parse_nodes, target_of

A, B, C = "a" * 40, "b" * 40, "c" * 40
PORTS = {A: 1, B: 2, C: 3}


def view(node_id: str, **peers: str) -> NodeView:
    """A node's view: what flags each peer (a, b, c) has in its eyes; a blank in front means disconnected."""
    seen = {node_id: PeerView(node_id, "", PORTS[node_id], frozenset({"myself"}), True)}
    for letter, flags in peers.items():
        peer_id = letter * 40
        words = frozenset(flags.strip().split(","))
        seen[peer_id] = PeerView(peer_id, "127.0.0.1", PORTS[peer_id], words, not flags.startswith(" "))
    return NodeView(Target(port=PORTS[node_id]), node_id=node_id, peers=seen)


def test_lines_of_cluster_nodes() -> None:
    text = (
        f"{A} :7711 myself 0 0 connected\n{B} 10.0.0.2:7712 noflags 0 5 disconnected\n\nnonsense\n"
        f"{C} [fe80::1]:7713@17713 fail?,leaving 1 2 connected\n"
    )
    peers = parse_nodes(text.encode())
    assert peers[A].is_self
    assert (peers[B].host, peers[B].port, peers[B].trouble) == ("10.0.0.2", 7712, "disconnected")
    assert (peers[C].host, peers[C].port, peers[C].trouble) == ("fe80::1", 7713, "fail?")
    assert parse_nodes(None) == {}


def test_all_agree() -> None:
    assert disagreements([view(A, b="noflags"), view(B, a="noflags,leaving")]) == []


def test_a_node_that_does_not_answer() -> None:
    lost = NodeView(Target(port=2), error="can't connect to 127.0.0.1:2: Connection refused")
    assert disagreements([view(A, b="fail"), lost]) == [lost.error, "127.0.0.1:1 sees 127.0.0.1:2 as failed"]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ("fail", "127.0.0.1:1 sees 127.0.0.1:2 as failed"),
        ("fail?", "127.0.0.1:1 gets no answer from 127.0.0.1:2"),
        ("noaddr", "127.0.0.1:1 has lost the address of 127.0.0.1:2"),
        (" noflags", "127.0.0.1:1 has no link to 127.0.0.1:2"),
    ],
)
def test_troubles_between_two(flags: str, text: str) -> None:
    assert disagreements([view(A, b=flags), view(B, a="noflags")]) == [text]


def test_an_unfinished_handshake_is_no_membership() -> None:
    found = disagreements([view(A, b="handshake"), view(B)])
    assert found == [
        "127.0.0.1:1 does not know 127.0.0.1:2",
        "127.0.0.1:2 does not know 127.0.0.1:1",
        "127.0.0.1:1 has not finished its handshake with 127.0.0.1:2",
    ]


def test_one_who_knows_less_than_the_others() -> None:
    views = [view(A, b="noflags", c="noflags"), view(B, a="noflags"), view(C, a="noflags", b="noflags")]
    assert disagreements(views) == ["127.0.0.1:2 does not know 127.0.0.1:3"]


def test_a_copied_nodes_conf() -> None:
    twin = view(A)
    twin.target = Target(port=9)
    assert "127.0.0.1:1 and 127.0.0.1:9 have the same node id aaaaaaaa" in disagreements([view(A), twin])[0]


def test_addresses_need_a_port() -> None:
    assert target_of("h:1", "p") == Target("h", 1, password="p")
    assert target_of("[::1]:1", "") == Target("::1", 1)
    for address in ("h", "[::1]"):
        with pytest.raises(AddressError, match=":7711"):
            target_of(address, "")
