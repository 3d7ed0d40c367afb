"""Connections: order, turns, limits, closing; over real sockets in one event loop."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from disqueue.core.client import Client
from disqueue.server.connection import OUTPUT_BYTES_PAUSE, REQUESTS_A_TURN
from disqueue.server.shell import PROTECTED, TOO_MANY_CLIENTS
from disqueue.wire.resp import ReplyWriter
from tests.server.conftest import Factory
from tests.server.harness import Place, Talker, play

PING, PONG = b"PING\r\n", b"+PONG\r\n"


def test_requests_are_answered_in_order(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        await talker.ask(PING * 3 + b"ECHO 1\r\n*2\r\n$4\r\nECHO\r\n$1\r\n2\r\n", PONG * 3 + b"$1\r\n1\r\n$1\r\n2\r\n")

    play(scene, factory)


def test_a_blocked_client_goes_on_when_its_job_comes(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        waiting, other = await place.connect(), await place.connect()
        waiting.send(b"GETJOB FROM q\r\nPING\r\nECHO x\r\n")
        await place.until(lambda: place.node.blocked_clients)
        await other.ask(PING, PONG)
        other.send(b"ADDJOB q body 0\r\n")
        job_id = (await other.line())[1:-2]
        await waiting.ask(b"", b"*1\r\n*3\r\n$1\r\nq\r\n$40\r\n" + job_id + b"\r\n$4\r\nbody\r\n" + PONG + b"$1\r\nx\r\n")

    play(scene, factory)


def test_a_wait_ends_at_its_time_and_an_idle_server_sleeps(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        await talker.ask(b"GETJOB TIMEOUT 30 FROM q\r\n", b"*-1\r\n")
        passes = place.passes
        await asyncio.sleep(0.05)
        assert place.passes - passes <= 1

    play(scene, factory)


def test_a_blocked_client_that_goes_away_takes_no_job(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        waiting, other = await place.connect(), await place.connect()
        waiting.send(b"GETJOB FROM q\r\n")
        await place.until(lambda: place.node.blocked_clients)
        await waiting.close()
        await place.until(lambda: not place.node.blocked_clients)
        other.send(b"ADDJOB q body 0\r\n")
        await other.line()
        await other.ask(b"QLEN q\r\n", b":1\r\n")

    play(scene, factory)


def test_replies_are_sent_before_a_half_closed_connection_is_closed(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        talker.send(PING * 2)
        talker.writer.write_eof()
        assert await talker.rest() == PONG * 2

    play(scene, factory)


def test_quit_ends_and_what_follows_is_not_executed(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        talker.send(b"PING\r\nQUIT\r\nADDJOB q x 0\r\n")
        assert await talker.rest() == PONG + b"+OK\r\n"
        assert not place.node.queued_jobs

    play(scene, factory)


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        (b"*1\r\nfoo\r\n", b"-ERR Protocol error: expected '$', got 'f'\r\n"),
        (b"x" * 1_000_000, b"-ERR Protocol error: too big inline request\r\n"),
        (b'"\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
        (b"*1048577\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
    ],
)
def test_what_can_not_be_understood_is_answered_and_closed(factory: Factory, data: bytes, reply: bytes) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        talker.send(PING + data + PING)
        assert await talker.rest() == PONG + reply
        assert place.shell.statistics.input_faults == 1
        await (await place.connect()).ask(PING, PONG)

    play(scene, factory)


def test_a_client_too_many_is_told_and_closed(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        first, second, third = await place.connect(), await place.connect(), await place.connect()
        third.send(b"ADDJOB q x 0\r\n")
        assert await third.rest() == b"-" + TOO_MANY_CLIENTS + b"\r\n"
        await first.ask(PING, PONG)
        await second.ask(b"QLEN q\r\n", b":0\r\n")
        assert place.shell.statistics.rejected_connections == 1
        await first.close()
        await place.until(lambda: len(place.shell.connections) == 1)
        await (await place.connect()).ask(PING, PONG)

    play(scene, factory, maxclients="2")


def test_protected_mode_serves_this_machine_only(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        def refusal(address: str) -> bytes:
            return place.shell.refusal(Client(1, ReplyWriter(), address))

        for address in ("127.0.0.1:5", "127.9.9.9:5", "[::1]:5", "[::ffff:127.0.0.1]:5"):
            assert refusal(address) == b""
        for address in ("10.0.0.1:5", "[fe80::1]:5", "1.127.0.1:5"):
            assert refusal(address) == PROTECTED
        place.shell.configuration.set([("protected-mode", "no")])
        assert refusal("10.0.0.1:5") == b""
        place.shell.configuration.set([("protected-mode", "yes"), ("requirepass", "pw")])
        assert refusal("10.0.0.1:5") == b""
        place.shell.configuration.set([("requirepass", "")])
        place.shell.configuration.values["bind"] = ("10.0.0.2",)
        assert refusal("10.0.0.1:5") == b""

    play(scene, factory)


def test_a_deep_pipeline_leaves_others_their_turn(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        greedy, other = await place.connect(), await place.connect()
        per_pass: list[int] = []
        place.shell.end_of_pass.append(lambda: per_pass.append(place.shell.dispatcher.commands_processed()))
        greedy.send(PING * 50_000)
        other.send(PING)
        await other.ask(b"", PONG)
        assert place.shell.dispatcher.commands_processed() < 50_000
        await greedy.ask(b"", PONG * 50_000)
        steps = [after - before for before, after in itertools.pairwise(per_pass)]
        assert max(steps) <= 2 * REQUESTS_A_TURN

    play(scene, factory)


def echo(size: int) -> tuple[bytes, bytes]:
    body = b"$%d\r\n%b\r\n" % (size, b"x" * size)
    return b"*2\r\n$4\r\nECHO\r\n" + body, body


def pending(place: Place) -> int:
    return max(place.shell.describe(client).output_bytes for client in place.shell.clients())


def stop_reading(talker: Talker) -> None:
    talker.writer.transport.pause_reading()  # type: ignore[attr-defined]


def test_requests_of_a_slow_reader_wait(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        request, reply = echo(100_000)
        slow, other = await place.connect(), await place.connect()
        stop_reading(slow)
        slow.send(request * 300)
        await place.until(lambda: pending(place) > OUTPUT_BYTES_PAUSE)
        calls = -1
        while calls != place.shell.dispatcher.commands_processed():
            calls = place.shell.dispatcher.commands_processed()
            await other.ask(PING, PONG)
            calls += 1
        assert pending(place) < 3 * OUTPUT_BYTES_PAUSE
        assert place.node.buffer_bytes > OUTPUT_BYTES_PAUSE
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await slow.ask(b"", reply * 300)

    play(scene, factory)


def test_a_reply_that_is_not_read_counts_as_memory(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        request, reply = echo(24_000_000)
        slow, other = await place.connect(), await place.connect()
        stop_reading(slow)
        slow.send(request)
        await place.until(lambda: pending(place) > OUTPUT_BYTES_PAUSE)
        await other.ask(PING, PONG)
        assert place.node.buffer_bytes >= pending(place) > OUTPUT_BYTES_PAUSE
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await slow.ask(b"", reply)
        await other.ask(PING, PONG)

    play(scene, factory)


@pytest.mark.parametrize("limit", ["normal 2mb 0 0", "normal 0 1mb 0"])
def test_a_slow_reader_is_closed_above_a_limit(factory: Factory, limit: str) -> None:
    async def scene(place: Place) -> None:
        request, _ = echo(24_000_000)
        slow, other = await place.connect(), await place.connect()
        stop_reading(slow)
        slow.send(request)
        await place.until(lambda: place.shell.statistics.output_limit_closes)
        await place.until(lambda: len(place.shell.connections) == 1)
        await other.ask(PING, PONG)

    play(scene, factory, client_output_buffer_limit=limit)


def test_a_blocked_client_may_not_send_without_end(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        talker.send(b"GETJOB FROM q\r\n")
        await place.until(lambda: place.node.blocked_clients)
        talker.send(PING * 400_000)
        reply = await talker.rest()
        assert reply.startswith(b"-ERR Protocol error: ")
        assert b"1048576" in reply

    play(scene, factory, client_query_buffer_limit="1mb")


def test_a_client_that_is_closed_may_not_send_without_end(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        talker.send(b"*1\r\nfoo\r\n" + b"x" * (64 << 20))
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(talker.writer.drain(), 20)

    play(scene, factory)


def test_an_idle_client_is_closed_but_not_one_that_waits(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        idle, waiting, other = [await place.connect() for _ in range(3)]
        await idle.ask(PING, PONG)
        waiting.send(b"GETJOB FROM q\r\n")
        await place.until(lambda: place.node.blocked_clients)
        for client in place.shell.clients():
            client.active_ms -= 5000
        await other.ask(b"CONFIG SET timeout 3\r\n", b"+OK\r\n")
        assert await idle.rest() == b""
        await other.ask(b"ADDJOB q x 0 RETRY 0\r\n", b"+D-")
        assert (await waiting.line()) == b"*1\r\n"

    play(scene, factory)


def test_pause_holds_requests_back_and_ends(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        one, two = await place.connect(), await place.connect()
        await one.ask(b"CLIENT PAUSE 60000\r\n", b"+OK\r\n")
        two.send(b"PING\r\nECHO x\r\n")
        await place.until(lambda: any(connection.held for connection in place.shell.connections.values()))
        one.send(b"CLIENT UNPAUSE\r\nPING\r\n")
        await one.ask(b"", b"+OK\r\n" + PONG)
        await two.ask(b"", PONG + b"$1\r\nx\r\n")
        await one.ask(b"CLIENT PAUSE 20\r\nPING\r\n", b"+OK\r\n" + PONG)
        assert not place.shell.paused

    play(scene, factory)


def test_a_killed_client_is_closed_while_it_waits(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        waiting, other = await place.connect(), await place.connect()
        waiting.send(b"GETJOB FROM q\r\n")
        await place.until(lambda: place.node.blocked_clients)
        await other.ask(b"CLIENT KILL TYPE normal\r\n", b":1\r\n")
        assert await waiting.rest() == b""
        await other.ask(b"CLIENT KILL SKIPME no TYPE normal\r\n", b":1\r\n")
        assert await other.rest() == b""

    play(scene, factory)


def test_a_monitor_sees_the_commands_of_others(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        watcher, other = await place.connect(), await place.connect()
        await watcher.ask(b"MONITOR\r\n", b"+OK\r\n")
        await other.ask(b"ECHO hi\r\n", b"$2\r\nhi\r\n")
        assert (await watcher.line()).endswith(b'] "ECHO" "hi"\r\n')
        await watcher.close()
        await place.until(lambda: not place.shell.dispatcher.monitors)
        await other.ask(PING, PONG)

    play(scene, factory)


def test_a_fault_in_a_pass_does_not_stop_the_server(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        await talker.ask(PING, PONG)

        def fail() -> None:
            raise RuntimeError("boom")

        place.shell.end_of_pass.insert(0, fail)
        await talker.ask(PING, PONG)
        monkeypatch.setattr(place.shell, "close_politely", lambda _connection: fail())
        other = await place.connect()
        await other.ask(b"QUIT\r\n", b"+OK\r\n")
        await talker.ask(PING, PONG)

    play(scene, factory)


def test_limits_follow_the_configuration_for_new_clients(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        talker = await place.connect()
        await talker.ask(b"CONFIG SET proto-max-bulk-len 1kb max-arguments 16\r\n", b"+OK\r\n")
        large, many = await place.connect(), await place.connect()
        large.send(echo(2000)[0])
        assert await large.rest() == b"-ERR Protocol error: invalid bulk length\r\n"
        many.send(b"*17\r\n")
        assert await many.rest() == b"-ERR Protocol error: invalid multibulk length\r\n"
        request, reply = echo(2000)
        await talker.ask(request, reply)

    play(scene, factory)


def test_shutdown_closes_everything(factory: Factory) -> None:
    async def scene(place: Place) -> None:
        one, two = await place.connect(), await place.connect()
        await two.ask(PING, PONG)
        one.send(b"SHUTDOWN\r\n")
        assert await one.rest() == b""
        assert await two.rest() == b""
        await asyncio.wait_for(place.shell.stopped.wait(), 5)

    play(scene, factory)
