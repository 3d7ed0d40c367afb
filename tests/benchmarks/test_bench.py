"""`disqueue bench` against real servers and scripted ones."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from disqueue.cli import bench
from disqueue.cli.bench_latency import LatencyResult
from disqueue.cli.bench_process import Usage
from disqueue.cli.bench_report import latency_remarks, throughput_remarks
from disqueue.cli.bench_throughput import Measured
from disqueue.testing.server import Cluster, Server
from tests.cli.fake_server import FakeServer


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as one:
        yield one


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, object]]:
    assert bench.run([*arguments, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    return {result["phase"]: result for result in results}


def test_cycles_and_phases_do_every_job(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "-p", str(server.port), "-n", "103", "-P", "10", "-c", "3")
    assert {phase: result["jobs"] for phase, result in found.items()} == {"cycle": 103, "add": 103, "get": 103, "ack": 103}
    with server.client() as client:
        assert client.info()["registered_jobs"] == 0


def test_the_servers_process_is_found_and_measured(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.run(["-p", str(server.port), "-n", "500", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["conditions"]["server_pids"] == [server.pid]
    assert all(result["server_cpu_us_per_job"] > 0 for result in answer["results"])


def test_bodies_larger_than_the_buffers_of_a_socket(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "-p", str(server.port), "-n", "8", "-P", "4", "-c", "2", "-d", "1000000", "--mode", "cycle")
    assert found["cycle"]["jobs"] == 8


def test_latency_counts_every_job(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "-p", str(server.port), "--mode", "latency", "--rate", "1000", "-n", "50")["latency"]
    assert found["sent"] == found["delivered"]["count"] == found["added"]["count"] == 50
    assert 0 < found["delivered"]["p50_us"] <= found["delivered"]["p99_us"] <= found["delivered"]["max_us"]
    assert sum(count for _, count in found["delivered"]["buckets"]) == 50


def test_consuming_at_another_node(capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(2) as cluster:
        first, second = cluster.servers
        there = ["--consume-from", f":{second.port}", "-r", "2"]
        found = figures(capsys, "-p", str(first.port), *there, "-n", "40", "-P", "5", "-c", "2", "--mode", "cycle")
        assert found["cycle"]["jobs"] == 40
        found = figures(capsys, "-p", str(first.port), *there, "-n", "20", "--rate", "500", "--mode", "latency")
        assert found["latency"]["delivered"]["count"] == 20


def test_the_time_ends_a_run_and_nothing_is_left(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.run(["-p", str(server.port), "-n", "10000000", "--seconds", "0.05", "-P", "10"]) == 0
    told = capsys.readouterr()
    assert "of 10000000 jobs were added in 0.05 seconds" in told.err
    with server.client() as client:
        assert client.info()["registered_jobs"] == 0


def test_an_error_of_the_server_is_told(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.run(["-p", str(server.port), "-n", "10", "-r", "9"]) == 1
    assert "NOREPL" in capsys.readouterr().err


def test_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.run(["-p", "1"]) == 1
    assert "can't connect to 127.0.0.1:1" in capsys.readouterr().err


def test_a_server_that_goes_away_in_the_middle(capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeServer(lambda words: b"$0\r\n\r\n" if words[0] in (b"INFO", b"HELLO") else None)
    try:
        assert bench.run(["-p", str(fake.port), "-n", "10"]) == 1
    finally:
        fake.close()
    assert "the server closed a connection" in capsys.readouterr().err


def test_servers_elsewhere_have_no_cpu_time_but_a_remark() -> None:
    told = throughput_remarks([Measured("cycle", 10, Usage(1.0, 0.0, 0.1))], False)
    assert len(told) == 1
    assert "--pid" in told[0]


def test_a_busy_load_generator_is_told() -> None:
    told = throughput_remarks([Measured("cycle", 10, Usage(1.0, 0.3, 0.95)), Measured("add", 10, Usage(1.0, 0.9, 0.5))], True)
    assert len(told) == 1
    assert told[0].startswith("cycle: the load generator was the limit, it kept a processor busy to 95%")


def test_a_late_load_generator_and_lost_jobs_are_told() -> None:
    result = LatencyResult(sent=3)
    result.late.record(50_000)
    result.delivered.record(1000)
    late, lost = latency_remarks(result)
    assert "50.0 ms after it was due" in late
    assert lost == "2 of 3 jobs did not reach a consumer in time"
