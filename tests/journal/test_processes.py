"""Real servers, real disks, kill -9: what only processes show."""

from __future__ import annotations

import resource
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from disqueue.testing.server import Cluster, Server, ServerFailedError, server_command, wait_for

KEEP = ("--appendonly", "yes")
ALWAYS = (*KEEP, "--appendfsync", "always")
Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that keep their files in the test's directory."""
    with ExitStack() as stack:

        def start_server(*options: str) -> Server:
            server = Server(*options, directory=tmp_path)
            stack.callback(server.kill)
            return server.start()

        yield start_server


def ask(server: Server, *words: str | int) -> Any:
    with redis.Redis(port=server.port, protocol=2, retry=Retry(NoBackoff(), 0)) as client:
        return client.execute_command(*words)


def shown(server: Server, job_id: bytes) -> dict[bytes, Any]:
    fields = ask(server, "SHOW", job_id)
    return {} if fields is None else dict(zip(fields[::2], fields[1::2], strict=True))


def persistence(server: Server) -> dict[str, str]:
    with redis.Redis(port=server.port) as client:
        return {name: str(value) for name, value in client.info("persistence").items()}


def get_ids(server: Server, queue: str = "q", count: int = 100) -> list[bytes]:
    return [job[1] for job in ask(server, "GETJOB", "NOHANG", "COUNT", count, "FROM", queue) or []]


# -- what a restart keeps


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_leaving_and_bans_outlast_a_kill_whatever_the_policy(policy: str) -> None:
    """They are in nodes.conf, which is stored before the answer."""
    with Cluster(2, [*KEEP, "--appendfsync", policy]) as cluster:
        server, other = cluster.servers
        forgotten = ask(other, "CLUSTER", "MYID").decode()
        assert ask(server, "CLUSTER", "LEAVING", "yes") == b"OK"
        assert ask(server, "CLUSTER", "FORGET", forgotten) == b"OK"
        server.kill()
        server.start()
        assert ask(server, "CLUSTER", "LEAVING") == b"yes"
        assert f"vars bans {forgotten}," in (server.directory / "nodes.conf").read_text()
        assert forgotten not in ask(server, "CLUSTER", "NODES").decode()


def test_queued_delayed_and_at_most_once_jobs_are_what_they_were(start: Start) -> None:
    server = start(*KEEP)
    queued = ask(server, "ADDJOB", "q", "x", 0)
    once = ask(server, "ADDJOB", "q", "x", 0, "RETRY", 0)
    delayed = ask(server, "ADDJOB", "d", "x", 0, "DELAY", 5)
    ask(server, "PAUSE", "p", "in")
    server.restart()

    assert set(get_ids(server)) == {queued, once}
    fields = shown(server, delayed)
    assert fields[b"next-requeue-within"] <= 5000
    assert ask(server, "PAUSE", "p", "state") == b"in"
    server.restart()
    assert get_ids(server) == []
    assert shown(server, once) == {}
    assert 0 < shown(server, queued)[b"next-requeue-within"] <= 300_000


def test_an_acknowledged_job_stays_away_although_the_server_is_killed_at_once(start: Start) -> None:
    server = start(*KEEP)
    job_id = ask(server, "ADDJOB", "q", "x", 0)
    assert get_ids(server) == [job_id]
    with redis.Redis(port=server.port) as client:
        assert client.execute_command("ACKJOB", job_id) == 1
        server.kill()
    server.start()

    assert shown(server, job_id) == {}


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_killed_under_load_what_was_confirmed_is_there(start: Start, policy: str) -> None:
    server = start(*KEEP, "--appendfsync", policy, "--auto-aof-rewrite-min-size", "100kb")
    added: set[bytes] = set()
    acked: set[bytes] = set()
    tried: set[bytes] = set()
    once: list[bytes] = []

    def work() -> None:
        client = redis.Redis(port=server.port, protocol=2)
        try:
            for number in range(1_000_000):
                added.add(client.execute_command("ADDJOB", "q", b"x" * (number % 300), 0, "RETRY", 300))
                client.execute_command("ADDJOB", "once", "x", 0, "RETRY", 0)
                once.extend(job[1] for job in client.execute_command("GETJOB", "NOHANG", "FROM", "once") or [])
                for job in client.execute_command("GETJOB", "NOHANG", "COUNT", number % 3, "FROM", "q") if number % 3 else ():
                    tried.add(job[1])
                    if client.execute_command("ACKJOB", job[1]):
                        acked.add(job[1])
        except redis.ConnectionError:
            pass

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    wait_for(lambda: len(added) > 400, "some load")
    server.kill()
    for worker in workers:
        worker.join()
    server.start()
    there = set(ask(server, "JSCAN", 0, "COUNT", 100_000)[1])

    assert added - tried <= there
    assert not acked & there
    assert not set(once) & set(get_ids(server, "once", 10_000))


def test_an_acknowledgement_waits_on_disk_for_an_owner_that_is_away() -> None:
    cluster = Cluster(3, [*ALWAYS, "--cluster-node-timeout", "1000"])
    try:
        cluster.start()
        first, second, third = cluster.servers
        ids = [ask(first, "ADDJOB", "q", "x", 5000, "REPLICATE", 3, "RETRY", 2) for _ in range(5)]
        third.kill()
        assert set(get_ids(first)) == set(ids)
        assert ask(first, "ACKJOB", *ids) == 5
        wait_for(lambda: all(shown(second, one).get(b"state") in (None, b"acked") for one in ids), "the other owner knows")
        first.restart()
        second.restart()
        third.start()
        wait_for(lambda: not any(shown(third, one) for one in ids), "the acknowledgements come to the third")

        assert all(ask(server, "QLEN", "q") == 0 for server in cluster.servers)
        wait_for(lambda: not any(shown(server, one) for server in cluster.servers for one in ids), "nobody keeps them")
    finally:
        cluster.close()


# -- faults


def test_a_full_disk_is_told_and_heals(start: Start) -> None:
    server = start(*KEEP)
    kept = ask(server, "ADDJOB", "q", "x", 0)
    size = int(persistence(server)["aof_current_size"])
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size + 100, hard))
    with pytest.raises(redis.ConnectionError):
        ask(server, "ADDJOB", "q", "x" * 500, 0)  # whether it is kept is not known

    with pytest.raises(redis.ResponseError, match=r"^MISCONF .*File too large"):
        ask(server, "ADDJOB", "q", "x", 0)
    assert persistence(server)["aof_last_write_status"] == "err"
    assert kept in get_ids(server), "consumers go on"
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
    wait_for(lambda: persistence(server)["aof_last_write_status"] == "ok", "the journal heals")
    added = ask(server, "ADDJOB", "q", "x", 0)
    server.restart()
    assert shown(server, added)


def test_a_journal_that_is_removed_under_a_server_is_missed_and_can_be_made_anew(start: Start, tmp_path: Path) -> None:
    server = start(*ALWAYS)
    kept = ask(server, "ADDJOB", "q", "x", 0)
    shutil.rmtree(tmp_path / "disque.aof")
    with pytest.raises(redis.ConnectionError):
        ask(server, "ADDJOB", "q", "x", 0)
    with pytest.raises(redis.ResponseError, match=r"^MISCONF .*(removed|No such file)"):
        ask(server, "ADDJOB", "q", "x", 0)
    assert persistence(server)["aof_last_write_status"] == "err"
    ask(server, "CONFIG", "SET", "appendonly", "no")
    ask(server, "CONFIG", "SET", "appendonly", "yes")
    wait_for(lambda: persistence(server)["aof_state"] == "on", "all jobs are written")
    assert persistence(server)["aof_last_write_status"] == "ok"
    added = ask(server, "ADDJOB", "q", "x", 0)
    server.restart()
    assert shown(server, kept)
    assert shown(server, added)


def test_a_cut_journal_loads_and_a_damaged_one_does_not(start: Start, tmp_path: Path) -> None:
    server = start(*KEEP)
    first = ask(server, "ADDJOB", "q", "x", 0)
    second = ask(server, "ADDJOB", "q", "x", 0)
    server.kill()
    segment = max((tmp_path / "disque.aof").glob("segment-*"))
    whole = segment.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    segment.write_bytes(damaged)
    with pytest.raises(ServerFailedError, match=r"offset \d+: .*damaged.*check-journal"):
        server.start()

    segment.write_bytes(whole[:-7])
    server.start()
    assert shown(server, first)
    assert shown(server, second) == {}
    assert f"offset={segment.stat().st_size}" in server.log_tail()


def test_who_connects_while_a_small_journal_is_loaded_waits_for_the_answer() -> None:
    """A restart is not seen as an error, though the node also waits a moment for a peer that is away."""
    with Cluster(2, KEEP) as cluster:
        server, other = cluster.servers
        ask(server, "ADDJOB", "q", "body", 0, "REPLICATE", 1)
        other.kill()
        server.kill()
        answers: list[Any] = []

        def ask_until_answered() -> None:
            while not answers:
                with suppress(redis.ConnectionError):
                    answers.append(ask(server, "QLEN", "q"))

        asking = threading.Thread(target=ask_until_answered)
        asking.start()
        server.start()
        asking.join(30.0)
        assert answers == [1]


def test_a_second_server_is_kept_off_a_journal(start: Start, tmp_path: Path) -> None:
    first = start(*KEEP)
    ask(first, "ADDJOB", "q", "x", 0)
    other = tmp_path / "other"
    other.mkdir()
    (other / "nodes.conf").write_bytes((tmp_path / "nodes.conf").read_bytes())
    (other / "disque.aof").symlink_to(tmp_path / "disque.aof")
    with Server(directory=other) as second, pytest.raises(redis.ResponseError, match="Unable to turn on AOF"):
        ask(second, "CONFIG", "SET", "appendonly", "yes")
    assert ask(first, "CONFIG", "GET", "appendonly") == [b"appendonly", b"yes"]


# -- the procedures


class ConfiguredServer(Server):
    """A server that is started with a configuration file and nothing else."""

    def start(self) -> Self:
        path = self.directory / "disque.conf"
        if not path.exists():
            path.write_text(f"port {self.port}\ndir {self.directory}\n")
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen([*server_command(), str(path)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for(self._answers, "the server answers")
        return self

    def end_with(self, *words: str) -> None:
        """Send a command that ends the server, and wait for its end."""
        process, self._process = self._process, None
        assert process is not None
        with pytest.raises(redis.ConnectionError):
            ask(self, *words)
        assert process.wait(20) == 0


def test_a_node_in_memory_is_restarted_in_a_controlled_way(tmp_path: Path) -> None:
    with ConfiguredServer(directory=tmp_path) as server:
        job_id = ask(server, "ADDJOB", "q", "x", 0)
        once = ask(server, "ADDJOB", "q", "x", 0, "RETRY", 0)
        ask(server, "CONFIG", "SET", "aof-enqueue-jobs-once", "yes")
        ask(server, "CONFIG", "REWRITE")
        server.end_with("SHUTDOWN", "REWRITE-AOF")
        server.start()

        assert set(get_ids(server)) == {job_id, once}
        assert ask(server, "CONFIG", "GET", "aof-enqueue-jobs-once")[1] == b"no"
        assert "aof-enqueue-jobs-once yes" not in (tmp_path / "disque.conf").read_text()
        assert persistence(server)["aof_enabled"] == "0"


def test_a_server_that_is_told_to_queue_jobs_once_and_has_no_journal_starts(start: Start) -> None:
    server = start("--aof-enqueue-jobs-once", "yes")
    assert ask(server, "CONFIG", "GET", "aof-enqueue-jobs-once")[1] == b"no"


def test_the_journal_is_switched_on_and_off_at_run_time(start: Start) -> None:
    server = start()
    job_id = ask(server, "ADDJOB", "q", "x", 0)
    assert ask(server, "CONFIG", "SET", "appendonly", "yes") == b"OK"
    wait_for(lambda: persistence(server)["aof_state"] == "on", "all jobs are written")
    assert ask(server, "BGREWRITEAOF")
    wait_for(lambda: persistence(server)["aof_rewrite_in_progress"] == "0", "it is compacted")
    assert int(persistence(server)["aof_base_size"]) > 0
    assert ask(server, "DEBUG", "LOADAOF") == b"OK"
    assert shown(server, job_id)
    assert ask(server, "CONFIG", "SET", "appendonly", "no") == b"OK"
    assert persistence(server)["aof_enabled"] == "0"
    server.stop()
    server.options = [*KEEP]
    server.start()
    assert shown(server, job_id)


def test_an_orderly_end_writes_the_last_second_too(start: Start) -> None:
    server = start(*KEEP)
    job_id = ask(server, "ADDJOB", "q", "x", 0)
    server.stop()
    server.start()
    assert shown(server, job_id)
    assert "journal loaded" in server.log_tail()
