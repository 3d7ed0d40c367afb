"""What each fault of a disk does to a node: what it refuses, what it keeps, and how it heals."""

from __future__ import annotations

import errno
from random import Random
from typing import Any

import pytest
from crc32c import crc32c

from disqueue.core.job import ACTIVE, new_job
from disqueue.journal.errors import JournalError
from disqueue.journal.manifest import MANIFEST, segment_name
from disqueue.journal.writer import UNSYNCED_BYTES_MAX, UNSYNCED_BYTES_SOON
from disqueue.simulation.disk import SimulatedDisk
from disqueue.wire.journal_format import FORMAT_VERSION, HEADER_BYTES, JOBS, NODES, PAUSES
from disqueue.wire.journal_search import split_records
from tests.journal.histories import lasting, random_history
from tests.journal.support import Server, new_server

POLICIES = ("always", "everysec", "no")


def active_name(server: Server) -> str:
    return segment_name(server.runtime.table.active.number)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_is_told_and_made_good(policy: str, code: int) -> None:
    server = new_server(policy=policy)
    first = server.add()
    assert server.run_pass()
    server.disk.failing["write"] = code
    second = server.add()

    assert not server.run_pass(), "what this pass promised is not on the disk"
    assert "writing to" in server.runtime.error
    assert active_name(server) in server.runtime.error
    server.ack(first)
    assert server.run_pass(), "this pass was told"
    server.idle(passes=3)
    del server.disk.failing["write"]
    server.idle(passes=8)

    assert server.runtime.error == ""
    assert {second} == set(server.restarted().state())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_failed_fsync_is_never_taken_for_a_success(policy: str) -> None:
    """The kernel has dropped what it could not write, and says that the next fsync is fine."""
    server = new_server(policy=policy)
    ids = [server.add()]
    server.run_pass(1200)
    server.run_pass(1200)
    ids.append(server.add())
    server.disk.failing["sync"] = errno.EIO
    kept = server.run_pass(1200)
    assert kept == (policy != "always")
    server.runtime.writer.sync_soon()
    server.run_pass()
    assert "forcing" in server.runtime.error
    lost = active_name(server)
    server.run_pass()
    del server.disk.failing["sync"]
    server.idle(passes=8)

    assert server.runtime.error == ""
    assert lost != active_name(server)
    server.disk.lose_power()
    assert set(ids) == set(server.successor().start().state())


def test_after_a_failed_fsync_old_and_new_records_are_told_apart() -> None:
    server = new_server(policy="always")
    kept, acked, retried = server.add(), server.add(), server.add()
    server.run_pass()
    server.disk.failing["sync"] = errno.EIO
    server.ack(acked)
    server.get(count=1)
    server.run_pass()
    server.ack(retried)
    server.run_pass()
    server.disk.failing.clear()
    server.idle(passes=8)
    expected = lasting(server.state())
    server.disk.lose_power()

    again = server.successor().start()
    assert expected == again.state()
    assert {kept} == set(again.state())


def test_what_is_written_again_names_nodes_before_jobs_and_tells_pauses_last() -> None:
    """The segment may become the oldest, and what its jobs say of nodes would mean nothing."""
    server = new_server(policy="always")
    server.add()
    server.run_pass()
    server.disk.failing["sync"] = errno.EIO
    server.add()
    server.run_pass()
    server.disk.failing.clear()
    server.idle(passes=8)
    assert server.runtime.error == ""
    name = active_name(server)
    data = server.disk.read(name, HEADER_BYTES, server.disk.size(name) - HEADER_BYTES)
    kinds = [kind for kind, _, _ in split_records(data)]
    assert NODES in kinds[: kinds.index(JOBS)]
    assert PAUSES in kinds[kinds.index(JOBS) :]


def test_a_job_that_came_and_went_twice_during_a_failure_is_no_trouble() -> None:
    server = new_server(policy="no", segment_bytes=300)
    while server.runtime.table.active.number < 3:
        server.add()
        server.run_pass()
    job_id = server.add()
    server.run_pass()
    server.disk.failing["sync"] = errno.EIO
    server.runtime.writer.sync_soon()
    server.run_pass()
    assert "forcing" in server.runtime.error
    first = server.node.jobs.get(job_id)
    assert first is not None
    server.ack(job_id)
    second = new_job(job_id, first.queue or server.node.queue_named(b"q"), b"body", first.ctime_ns)
    second.state, second.retry_s, second.expires_ms = ACTIVE, 60, server.node.now_ms + 86_400_000
    server.node.register(second)
    assert server.node.journal is not None
    server.node.journal.job_added(second)
    server.ack(job_id)
    server.disk.failing.clear()
    server.idle(passes=8)

    assert server.runtime.error == ""
    expected = lasting(server.state())
    assert job_id not in expected
    assert expected == server.restarted().state()


def test_a_full_disk_refuses_adds_until_there_is_space() -> None:
    server = new_server(policy="everysec")
    server.run_pass()
    server.disk.capacity_bytes = sum(server.disk.size(name) for name in server.disk.names()) + 300
    added = [server.add(body=b"x" * 50) for _ in range(3)]
    server.run_pass()
    assert "No space left" in server.runtime.error
    server.idle(passes=3)
    server.disk.capacity_bytes = -1
    server.idle(passes=8)

    assert server.runtime.error == ""
    assert set(added) == set(server.restarted().state())


def test_a_disk_that_is_too_slow_refuses_adds_until_it_has_caught_up() -> None:
    server = new_server(policy="everysec")
    server.run_pass(2000)
    server.executor.at_once = False
    server.add(body=bytes(UNSYNCED_BYTES_MAX))
    server.run_pass(2000)
    assert "too slow" in server.runtime.error
    server.executor.at_once = True
    server.executor.wait()
    server.run_pass()

    assert server.runtime.error == ""


def test_fsync_runs_beside_the_loop_and_once_a_second() -> None:
    server = new_server(policy="everysec")
    server.run_pass(5000)
    server.executor.at_once = False
    before = server.disk.syncs
    for _ in range(30):
        server.add()
        server.run_pass(100)
    assert before == server.disk.syncs, "nothing in the loop waits for the disk"
    server.executor.wait()
    for _ in range(30):
        server.add()
        server.run_pass(100)
        server.executor.wait()
    assert 3 <= server.disk.syncs - before <= 5


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_much_at_once_is_forced_to_the_disk_before_the_second_is_over(policy: str) -> None:
    server = new_server(policy=policy)
    server.run_pass(5000)
    server.add()
    server.run_pass(5000)
    before = server.disk.syncs
    server.add(body=bytes(UNSYNCED_BYTES_SOON))
    server.run_pass(10)
    server.add()
    server.run_pass(10)
    assert server.disk.syncs == before + 1


def test_segments_go_on_when_the_next_one_cannot_be_made() -> None:
    server = new_server(policy="everysec", segment_bytes=500)
    server.disk.failing["create"] = errno.EMFILE
    ids = []
    for _ in range(20):
        ids.append(server.add())
        server.run_pass(100)
    assert server.runtime.error == ""
    assert any("beginning segment" in event for event, _ in server.events)
    server.disk.failing.clear()
    server.idle(passes=10)
    server.add()
    server.run_pass()

    assert server.runtime.table.active.number > 1
    assert set(ids) <= set(server.restarted().state())


@pytest.mark.parametrize("operation", ["create", "write", "sync", "replace", "remove", "sync_directory", "read"])
def test_compaction_survives_any_failing_operation(operation: str) -> None:
    server = new_server(3, policy="everysec", segment_bytes=600)
    random_history(server, Random(3), passes=40, longest_ms=50)
    server.runtime.compact()
    server.disk.rates[operation] = 0.3
    server.idle(passes=60, milliseconds=50)
    server.disk.rates.clear()
    for _ in range(500):
        if server.runtime.compactor.rewriting() or server.runtime.error:
            server.run_pass(100)
    server.end_pass()

    assert not server.runtime.compactor.rewriting()
    assert server.runtime.error == ""
    assert lasting(server.state()) == server.restarted().state()


# -- at the start


@pytest.mark.parametrize("operation", ["names", "read", "create", "write", "sync", "replace", "sync_directory"])
def test_a_start_that_fails_says_why_and_changes_nothing(operation: str) -> None:
    server = new_server()
    job_id = server.add()
    server.run_pass()
    server.disk.kill()
    server.disk.failing[operation] = errno.EACCES
    with pytest.raises(JournalError, match="Permission denied"):
        server.successor().start()
    server.disk.failing.clear()
    server.disk.kill()

    assert [job_id] == server.successor().start().queued()


def break_segment(server: Server, change: Any) -> JournalError:
    server.add()
    server.run_pass()
    server.disk.kill()
    change(server.disk, active_name(server))
    with pytest.raises(JournalError) as caught:
        server.successor().start()
    return caught.value


def test_a_missing_segment_is_refused() -> None:
    error = break_segment(new_server(), lambda disk, name: disk.remove(name))
    assert "missing" in error.problem
    assert "segment-0000000001" in error.file
    assert "check-journal" in error.remedy


def test_a_segment_that_no_manifest_names_is_refused() -> None:
    error = break_segment(new_server(), lambda disk, _name: disk.create("segment-0000000009"))
    assert "segment-0000000009" in error.file
    assert "manifest" in error.problem


def test_a_manifest_that_is_gone_is_refused() -> None:
    error = break_segment(new_server(), lambda disk, _name: disk.remove(MANIFEST))
    assert "no manifest" in error.problem


def test_a_segment_of_another_node_is_refused() -> None:
    other = new_server(node_id=b"f" * 40)
    other.run_pass()
    foreign = other.disk.read("segment-0000000001", 0, 10_000)

    def exchange(disk: SimulatedDisk, name: str) -> None:
        disk.create(name).write(foreign)

    error = break_segment(new_server(), exchange)
    assert "of node " + "f" * 40 in error.problem


def test_a_journal_of_another_node_is_refused() -> None:
    server = new_server()
    server.run_pass()
    server.disk.kill()
    with pytest.raises(JournalError, match=r"belongs to node 0123.*nodes.conf with the line `0123"):
        Server(server.disk, node_id=b"f" * 40).start()


def test_a_journal_of_a_later_release_is_refused() -> None:
    def rewrite(disk: SimulatedDisk, _name: str) -> None:
        text = (
            disk.read(MANIFEST, 0, 10_000)
            .split(b"\n")[0]
            .replace(b'"format":%d' % FORMAT_VERSION, b'"format":%d' % (FORMAT_VERSION + 1))
        )
        disk.create(MANIFEST).write(b"%s\ncrc32c %08x\n" % (text, crc32c(text)))

    error = break_segment(new_server(), rewrite)
    assert f"format {FORMAT_VERSION + 1}" in error.problem
    assert "release" in error.remedy


def test_two_servers_never_write_one_journal() -> None:
    server = new_server()
    with pytest.raises(JournalError, match="another process"):
        Server(server.disk).start()


def test_a_cut_tail_is_loaded_and_told() -> None:
    server = new_server()
    first = server.add()
    server.run_pass()
    server.add()
    server.run_pass()
    server.disk.kill()
    name = active_name(server)
    server.disk.open(name).truncate(server.disk.size(name) - 7)
    again = server.successor().start()

    assert [first] == again.queued()
    event, fields = next((event, fields) for event, fields in again.events if "cut" in event)
    assert event.startswith("warning")
    assert name in fields["file"]
    assert server.disk.size(name) == fields["offset"]
    assert [first] == again.restarted().queued(), "the second start finds a whole journal"


def test_a_cut_tail_is_refused_where_the_configuration_says_so() -> None:
    server = new_server(load_truncated=False)
    error = break_segment(server, lambda disk, name: disk.open(name).truncate(disk.size(name) - 7))
    assert "aof-load-truncated" in error.problem
    assert error.offset > 0


def test_a_journal_that_was_closed_shows_damage_of_its_last_record() -> None:
    server = new_server()
    server.add()
    server.run_pass()
    name = active_name(server)
    at = server.disk.size(name) - 10
    assert server.runtime.stop() == ""
    server.disk.kill()
    server.disk.flip_bit(name, at * 8)
    with pytest.raises(JournalError, match="damaged here"):
        server.successor().start()


def test_a_manifest_that_could_not_be_stored_is_stored_when_the_disk_is_well_again() -> None:
    """Also when no segment goes that would bring it along; and nobody is woken for nothing meanwhile."""
    server = new_server()
    server.add()
    server.run_pass()
    server.disk.failing["replace"] = errno.EIO
    server.runtime.compactor.store_soon()
    server.idle(passes=5)
    assert "giving back the space of the journal failed" in server.runtime.compactor.error
    del server.disk.failing["replace"]
    server.idle(passes=10)

    assert server.runtime.compactor.error == ""
    assert server.runtime.compactor.deadline_ms(server.node.now_ms) == -1


def test_what_waits_for_space_is_not_looked_at_all_the_time() -> None:
    server = new_server()
    server.add()
    server.run_pass()
    server.disk.failing["replace"] = errno.EIO
    server.runtime.compactor.store_soon()
    server.idle(passes=5)
    server.runtime.writer.busy = True  # another task stores manifests
    server.idle(passes=10)
    assert server.runtime.compactor.deadline_ms(server.node.now_ms) > server.node.now_ms


def test_ends_that_were_cut_off_count_where_they_are_written_again() -> None:
    server = new_server(policy="always", segment_bytes=1000)
    first = server.add()
    server.run_pass()
    while server.runtime.table.active.number < 3:
        server.add(body=b"x" * 300)
        server.run_pass()
    last = server.runtime.table.active
    server.disk.failing["sync"] = errno.EIO
    server.ack(first)
    server.run_pass()
    assert last.endings == {1: 55}
    server.disk.failing.clear()
    server.idle(passes=8)

    active = server.runtime.table.active
    assert active is not last
    assert active.endings == {1: 55}
    assert sum(last.endings.values()) == 0
