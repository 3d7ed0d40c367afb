"""The table of nodes as text: both directions, old files, and any damage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipSettings
from disqueue.core.nodes_text import nodes_file, nodes_reply, parse_nodes, restore

ME, LEFT, RIGHT = b"a" * 40, b"b" * 40, b"c" * 40
WALL_MS = 1_700_000_000_000


def fresh(node_id: bytes = ME) -> Membership:
    members = Membership(node_id, 1, MembershipSettings(), lambda *_: None)
    members.begin_pass(5_000, WALL_MS)
    return members


def filled() -> Membership:
    members = fresh()
    members.restore_member(LEFT, "10.0.0.2", 7711, 17711, False)
    members.restore_member(RIGHT, "fd00::3", 7712, 9999, True)
    return members


def test_lines_are_those_of_disque() -> None:
    members = filled()
    members.peers[0].suspected = True
    members.peers[0].ping_sent_ms = 4_000
    members.peers[0].pong_ms = 3_000
    members.me.leaving = True
    assert nodes_reply(members).splitlines() == [
        f"{ME.decode()} :7711 myself,leaving 0 0 connected",
        f"{LEFT.decode()} 10.0.0.2:7711 fail? {WALL_MS - 1000} {WALL_MS - 2000} disconnected",
        f"{RIGHT.decode()} fd00::3:7712@9999 leaving 0 0 disconnected",
    ]
    members.peers[0].failed = True
    assert " fail " in nodes_reply(members)


def test_a_table_comes_back_whole() -> None:
    members = filled()
    members.me.address = "10.0.0.1"
    members.set_leaving(True)
    members.joining.handshakes.append(members.peers[0])
    members.bans.add(b"d" * 40, WALL_MS, 5_000)
    text = nodes_file(members)
    again = fresh()
    table = parse_nodes(text)
    assert not table.problems
    restore(again, table)
    assert nodes_file(again) == text
    assert again.me.leaving
    assert again.bans.holds(b"d" * 40, 5_000)
    assert not again.bans.holds(b"d" * 40, 65_001)


def test_the_journals_of_others_are_kept() -> None:
    members = filled()
    members.journal_age.restore(LEFT, (7 << 32) + 80)
    text = nodes_file(members)
    assert f"vars journals {LEFT.decode()},{(7 << 32) + 80}\n" in text
    again = fresh()
    restore(again, parse_nodes(text))
    assert nodes_file(again) == text
    assert again.journal_age.ping_fields(again.find(LEFT)) == (0, (7 << 32) + 80, 0)
    assert parse_nodes("vars journals x,1\n").problems[0] == "line 1: malformed place of a journal"


def test_a_file_of_disque_is_taken_over() -> None:
    table = parse_nodes(
        f"{LEFT.decode()} 192.168.1.5:7712 fail?,leaving 1480000000000 1480000000001 disconnected\n"
        f"{ME.decode()} :7711 myself 0 0 connected\n"
        f"{RIGHT.decode()} :0 noaddr 0 0 disconnected\n"
        "vars currentEpoch 0 lastVoteEpoch 0\n\n\n"
    )
    assert not table.problems
    members = fresh(table.me.node_id if table.me else b"")
    restore(members, table)
    assert [(peer.address, peer.port, peer.bus_port) for peer in members.peers] == [("192.168.1.5", 7712, 17712), ("", 0, 10000)]
    assert members.peers[0].leaving
    assert members.peers[1].no_address


def test_each_problem_names_its_line() -> None:
    good = f"{ME.decode()} 10.0.0.1:1 myself 0 0 connected"
    lines = [good, "one two", good.replace("a", "x"), good.replace("myself", "slave"), good.replace(":1", ":99999"), good]
    table = parse_nodes("\n".join(lines) + "\n")
    assert table.me is not None
    assert [problem.split(":")[0] for problem in table.problems] == [f"line {number}" for number in (2, 3, 4, 5, 6)]


def test_a_table_that_is_too_long_is_cut() -> None:
    lines = [f"{number:040x} 10.0.0.1:{number} noflags 0 0 connected" for number in range(1, 20_000)]
    table = parse_nodes("\n".join([*lines, f"{ME.decode()} :1 myself 0 0 connected", ""]))
    assert "more than 1024 nodes" in table.problems[0]
    members = fresh()
    restore(members, table)
    assert members.size == 1024


@given(st.binary(max_size=400))
def test_any_text_is_read_as_far_as_it_goes(data: bytes) -> None:
    table = parse_nodes(data.decode("utf-8", "replace"))
    restore(fresh(), table)


@given(st.integers(0, 300), st.integers(0, 255))
def test_a_changed_byte_never_raises(position: int, value: int) -> None:
    data = bytearray(nodes_file(filled()).encode())
    data[position % len(data)] = value
    table = parse_nodes(data.decode("utf-8", "replace"))
    members = fresh(table.me.node_id if table.me else ME)
    restore(members, table)
    nodes_file(members).encode("ascii")
