"""nodes.conf: never half written, never fatal when damaged, never shared."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipSettings
from disqueue.core.nodes_text import nodes_file
from disqueue.server.nodes_file import MAX_DAMAGED_COPIES, DirectoryInUseError, NodesFile
from disqueue.server.nodes_keeper import NodesKeeper

ME = b"a" * 40
OTHER = b"b" * 40
WHOLE_LINE = ME + b" :7711 myself 0 0 connected\n"


def membership() -> Membership:
    members = Membership(ME, 1, MembershipSettings(), lambda *_: None)
    members.begin_pass(1_000, 1_700_000_000_000)
    members.restore_member(OTHER, "10.0.0.2", 7711, 17711, False)
    return members


@pytest.fixture
def file(tmp_path: Path) -> NodesFile:
    return NodesFile(tmp_path / "nodes.conf")


def test_what_is_saved_is_loaded(file: NodesFile) -> None:
    file.save(nodes_file(membership()))
    table = file.load()
    assert table.me is not None
    assert table.me.node_id == ME
    assert [line.node_id for line in table.others] == [OTHER]
    assert [path.name for path in file.path.parent.iterdir()] == ["nodes.conf"]


def test_no_file_and_an_empty_one_are_a_fresh_node(file: NodesFile) -> None:
    assert file.load().me is None
    file.path.write_bytes(b"")
    assert file.load().me is None
    assert not list(file.path.parent.glob("*damaged*"))


@pytest.mark.parametrize("damage", [bytes(200), b"\xff\xfe\x00garbage", b"x y\n", WHOLE_LINE + OTHER + b" 10.0.0.2:77"])
def test_a_damaged_file_is_set_aside(file: NodesFile, damage: bytes) -> None:
    file.path.write_bytes(damage)
    table = file.load()
    assert (table.me is None) == (not damage.startswith(WHOLE_LINE))
    assert file.path.with_name("nodes.conf.damaged-1").read_bytes() == damage


def test_a_cut_file_at_every_byte_never_raises(file: NodesFile) -> None:
    whole = nodes_file(membership()).encode()
    for length in range(len(whole)):
        file.path.write_bytes(whole[:length])
        table = file.load()
        assert table.me is None or table.me.node_id == ME
    assert len(list(file.path.parent.glob("*.damaged-*"))) == MAX_DAMAGED_COPIES, "old damage does not fill the disk"


def test_a_failed_write_leaves_the_old_file(file: NodesFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.save("old\n")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        file.save("new\n")
    assert file.path.read_text() == "old\n"
    assert [path.name for path in file.path.parent.iterdir()] == ["nodes.conf"]


def test_a_second_process_is_told_who_is_there(file: NodesFile) -> None:
    file.lock()
    code = (
        "import sys; from pathlib import Path; from disqueue.server.nodes_file import NodesFile;"
        " NodesFile(Path(sys.argv[1])).lock()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file.path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"process {os.getpid()}" in done.stderr
    with pytest.raises(DirectoryInUseError, match="directory of its own"):
        NodesFile(file.path).lock()
    file.unlock()
    other = NodesFile(file.path)
    other.lock()
    other.unlock()


def test_changes_are_written_behind_the_loop_and_the_last_one_wins(file: NodesFile) -> None:
    async def scene() -> None:
        members = membership()
        steps: list[Callable[[], None]] = []
        keeper = NodesKeeper(members, file, steps.append)
        for port in range(5_000, 5_050):
            members.peers[0].port = port
            members.keeper.changed()
            members.keeper.changed()
            assert len(steps) <= 1, "asked for once, however often the table changes"
            while steps:
                steps.pop()()
            await asyncio.sleep(0)
        while "5049" not in (file.path.read_text() if file.path.exists() else ""):
            await asyncio.sleep(0.005)
        members.peers[0].port = 6_000
        assert members.keeper.save_now() == ""
        assert ":6000" in file.path.read_text()
        members.keeper.changed()
        keeper.close()

    asyncio.run(scene())


def test_a_save_that_fails_says_why(tmp_path: Path) -> None:
    members = membership()
    keeper = NodesKeeper(members, NodesFile(tmp_path / "missing" / "nodes.conf"), [].append)
    assert keeper.save_now() == "No such file or directory"
    keeper.close()


def test_a_table_that_is_not_in_memory_yet_is_not_written_over(file: NodesFile) -> None:
    """A process that ends while it still reads its journal leaves the members of the last one where they are."""
    before = nodes_file(membership())
    file.save(before)

    async def scene() -> None:
        steps: list[Callable[[], None]] = []
        keeper = NodesKeeper(Membership(b"0" * 40, 1, MembershipSettings(), lambda *_: None), file, steps.append)
        keeper.hold()
        keeper.changed()
        while steps:
            steps.pop()()
        assert "starting" in keeper.save_now()
        keeper.close()
        keeper.release()
        assert steps == [keeper.end_pass], "what changed meanwhile is written now"

    asyncio.run(scene())
    assert file.path.read_text() == before
