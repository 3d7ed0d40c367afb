"""What operators do with a journal: switch it on and off, compact it, load it again, save an in-memory node."""

from __future__ import annotations

import errno

import pytest

from disqueue.core.client import BLOCKED_GETJOB, NOT_BLOCKED, Client
from disqueue.core.journal_port import JournalPort
from disqueue.journal.errors import JournalError
from disqueue.journal.recorder import Recorder
from disqueue.journal.runtime import OFF, ON
from disqueue.simulation.disk import SimulatedDisk
from disqueue.wire.resp import ReplyWriter
from tests.journal.histories import lasting
from tests.journal.support import Random, Server, new_server


def in_memory(seed: int = 1) -> Server:
    """Return a server without a journal."""
    return Server(SimulatedDisk(Random(seed)))


def test_switched_on_at_run_time_it_soon_holds_all_jobs() -> None:
    server = in_memory()
    for _ in range(5000):
        server.add()
    server.run_pass()
    server.runtime.start()
    assert server.runtime.figures()["aof_state"] == "wait-rewrite"
    longest = 0
    for _ in range(10):
        before = server.disk.written_bytes
        server.add()
        server.run_pass()
        longest = max(longest, server.disk.written_bytes - before)
    assert server.runtime.figures()["aof_state"] == ON
    server.end_pass()

    assert longest < 1_000_000, "in steps"
    assert server.restarted().state() == server.state()


def test_a_job_changes_before_its_turn_to_be_written_comes() -> None:
    server = in_memory()
    first = server.add()
    second = server.add()
    server.runtime.start()
    server.ack(first)
    server.get()
    server.idle(passes=3, milliseconds=1)

    assert set(server.restarted().state()) == {second}


def test_switched_off_and_on_again_nothing_old_comes_back() -> None:
    server = new_server()
    old = server.add()
    server.run_pass()
    assert server.runtime.stop(switched_off=True) == ""
    assert server.runtime.state == OFF
    assert server.node.journal is None
    server.ack(old)
    kept = server.add()
    server.run_pass()
    server.runtime.start()
    server.idle(passes=5)
    server.ack(server.add())
    server.end_pass()

    assert set(server.restarted().state()) == {kept}


def test_a_journal_that_was_switched_off_delivers_no_at_most_once_jobs() -> None:
    """They may have been delivered since, and that is written nowhere."""
    server = new_server()
    once, kept = server.add(retry_s=0), server.add()
    server.run_pass()
    server.runtime.stop(switched_off=True)
    server.get(count=2)
    again = server.restarted()

    assert set(again.state()) == {kept}
    assert again.runtime.loaded.withheld == 1
    assert once not in again.restarted().state()


def test_a_journal_that_cannot_be_begun_is_off() -> None:
    server = in_memory()
    server.disk.failing["write"] = errno.ENOSPC
    with pytest.raises(JournalError, match="No space left"):
        server.runtime.start()
    assert server.runtime.figures()["aof_state"] == OFF


def test_a_node_in_memory_is_saved_for_a_restart() -> None:
    server = in_memory()
    server.add()
    server.add(retry_s=0)
    server.add(delay_s=30)
    server.get()
    server.run_pass()
    expected = lasting(server.state())
    assert server.runtime.write_all() == ""
    server.disk.lose_power()
    again = server.successor().start()

    assert again.state() == expected
    assert not any("switched on" in event for event, _ in again.events)


def test_a_node_in_memory_that_cannot_be_saved_goes_on_without_a_journal() -> None:
    server = in_memory()
    told: list[str] = []
    server.runtime.on_error = told.append
    server.add()
    server.run_pass()

    def port_on_a_full_disk(recorder: Recorder) -> JournalPort:
        server.disk.failing["write"] = errno.ENOSPC
        return recorder

    server.runtime.port_of = port_on_a_full_disk
    assert "No space left" in server.runtime.write_all()
    assert server.runtime.refusal() == ""
    assert told[-1] == ""
    assert server.runtime.figures()["aof_last_write_status"] == "ok"


def test_a_journal_that_fails_holds_nobody_back_once_it_is_switched_off() -> None:
    server = new_server()
    waiter = Client(2, ReplyWriter())
    server.node.get_jobs(waiter, [b"q"], 1, 0, False, False)
    server.disk.failing["write"] = errno.ENOSPC
    server.node.set_pause(b"other", 1, False)
    server.run_pass()
    server.add(retry_s=0)
    server.run_pass()
    assert waiter.blocked == BLOCKED_GETJOB
    assert server.runtime.stop(switched_off=True)
    server.run_pass()
    assert waiter.blocked == NOT_BLOCKED


def test_loading_again_brings_everything_back() -> None:
    server = new_server()
    for _ in range(3):
        server.add()
    server.get()
    server.run_pass()
    expected = server.state()
    assert server.runtime.reload() == ""
    assert server.state() == expected
    server.add()
    server.end_pass()

    assert len(server.restarted().state()) == 4


def test_flushing_forgets_on_disk_too() -> None:
    server = new_server()
    for _ in range(10):
        server.add()
    server.node.set_pause(b"p", 1, False)
    server.run_pass()
    server.node.flush()
    server.end_pass()
    again = server.restarted()

    assert again.state() == {}
    assert not any(queue.pause for queue in again.node.queues.values())


def test_compacting_on_demand_is_told_and_its_size_survives() -> None:
    server = new_server()
    for _ in range(50):
        server.ack(server.add())
        server.add()
        server.run_pass()
    assert server.runtime.compact() == ""
    assert "progress" in server.runtime.compact()
    for _ in range(300):
        if server.runtime.compactor.rewriting():
            server.run_pass(10)
    server.idle(passes=5)
    base = server.runtime.figures()["aof_base_size"]
    assert base
    assert server.runtime.figures()["aof_last_rewrite_time_sec"] == 0

    assert server.restarted().runtime.figures()["aof_base_size"] == base


def test_the_policy_changes_at_run_time() -> None:
    server = new_server(policy="no")
    server.settings.policy = "always"
    server.run_pass()
    syncs = server.disk.syncs
    for _ in range(3):
        server.add()
        server.run_pass()
    assert server.disk.syncs == syncs + 3
    once = server.add(retry_s=0)
    server.run_pass()
    server.disk.lose_power()

    assert once in server.successor().start().state(), "the journal says that it was always synced"


def test_at_most_once_jobs_are_withheld_after_power_loss_without_fsync() -> None:
    server = new_server(policy="everysec")
    once = server.add(retry_s=0)
    server.idle(passes=10)
    server.disk.lose_power()
    again = server.successor().start()

    assert once not in again.state()
    assert again.runtime.loaded.withheld == 1
    assert any("at-most-once" in event for event, _ in again.events)


def test_after_an_orderly_end_they_are_there_whatever_happened_to_the_machine() -> None:
    server = new_server(policy="everysec")
    once = server.add(retry_s=0)
    assert server.runtime.stop() == ""
    server.disk.lose_power()

    assert once in server.successor().start().state()


def test_many_starts_do_not_make_many_files() -> None:
    server = new_server()
    job_id = server.add()
    server.run_pass()
    for _ in range(100):
        server = server.restarted()
        server.run_pass()
    server.idle(passes=300, milliseconds=100)

    assert len(server.disk.names()) < 70
    assert set(server.restarted().state()) == {job_id}


def test_a_start_on_a_file_in_place_of_the_directory_says_so() -> None:
    server = new_server()
    server.disk.failing["names"] = 20
    server.disk.kill()
    with pytest.raises(JournalError, match="this is a file"):
        server.successor().start()
