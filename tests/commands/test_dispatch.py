"""What is checked before a command runs, in which order, and what is noted about it."""

from __future__ import annotations

import pytest

from disqueue.commands.catalogue import COMMANDS
from disqueue.commands.table import FLAGS, GROUPS, Command
from disqueue.config.configuration import Configuration
from disqueue.config.sources import ConfigError
from disqueue.core.client import Client
from tests.commands.desk import Desk

NOAUTH = b"-NOAUTH Authentication required.\r\n"


def test_names_are_found_in_any_case(desk: Desk) -> None:
    for name in ("ping", "PING", "PiNg"):
        assert desk.call(name) == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ((b"nosuch",), b"-ERR unknown command 'nosuch'\r\n"),
        ((b"no\r\nsuch",), b"-ERR unknown command 'no  such'\r\n"),
        ((b"x" * 500,), b"-ERR unknown command '" + b"x" * 128 + b"...'\r\n"),
        ((b"TIME", b"x"), b"-ERR wrong number of arguments for 'time' command\r\n"),
        ((b"AUTH", b"default", b"pw"), b"-ERR wrong number of arguments for 'auth' command\r\n"),
        ((b"ADDJOB", b"q"), b"-ERR wrong number of arguments for 'addjob' command\r\n"),
        ((b"",), b"-ERR unknown command ''\r\n"),
    ],
)
def test_refusals(desk: Desk, words: tuple[bytes, ...], reply: bytes) -> None:
    assert desk.call(*words) == reply


def test_without_a_password_only_some_commands_pass(desk: Desk) -> None:
    desk.call("CONFIG", "SET", "requirepass", "pw")
    assert desk.call("PING") == NOAUTH
    assert desk.call("nosuch") == b"-ERR unknown command 'nosuch'\r\n"
    assert desk.call("QUIT", "any", "thing") == b"+OK\r\n"
    assert desk.client.close_after_reply
    assert desk.call("AUTH", "pw") == b"+OK\r\n"
    assert desk.call("PING") == b"+PONG\r\n"


def test_a_full_memory_refuses_new_jobs_and_nothing_else(desk: Desk) -> None:
    job_id = desk.call("ADDJOB", "q", b"x" * 20_000, 0)[1:-2]
    desk.call("CONFIG", "SET", "maxmemory", 9000)
    assert desk.call("ADDJOB", "q", "x", 0) == b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
    assert desk.call("GETJOB", "FROM", "q").startswith(b"*1\r\n")
    assert desk.call("WORKING", job_id) == b":300\r\n"
    assert desk.call("NACK", job_id) == b":1\r\n"
    assert desk.call("ENQUEUE", job_id) == b":0\r\n"
    assert desk.call("ACKJOB", job_id) == b":1\r\n"
    assert desk.call("ADDJOB", "q", "x", 0).startswith(b"+D-")
    desk.call("CONFIG", "SET", "maxmemory", 0)
    assert desk.call("ADDJOB", "q", b"x" * 20_000, 0).startswith(b"+D-")


def test_a_journal_that_can_not_be_written_refuses_new_jobs(desk: Desk) -> None:
    desk.broker.dispatcher.set_guards(write_error=b"No space left on device")
    assert desk.call("ADDJOB", "q", "x", 0) == b"-MISCONF Errors writing to the AOF file: No space left on device\r\n"
    assert desk.call("PING") == b"+PONG\r\n"
    assert desk.call("GETJOB", "NOHANG", "FROM", "q") == b"*-1\r\n"
    desk.broker.dispatcher.set_guards(write_error=b"")
    assert desk.call("ADDJOB", "q", "x", 0).startswith(b"+D-")


def test_while_loading_some_commands_are_answered(desk: Desk) -> None:
    desk.broker.dispatcher.set_guards(loading=b": 7% done")
    assert desk.call("PING") == b"-LOADING Disque is loading the dataset in memory: 7% done\r\n"
    assert b"\r\nloading:1\r\n" in desk.call("INFO", "persistence")
    assert desk.call("HELLO", 3).startswith(b"%7\r\n")
    desk.broker.dispatcher.set_guards(loading=b"")
    assert desk.call("PING") == b"+PONG\r\n"


def test_a_command_can_be_renamed_or_removed() -> None:
    desk = Desk()
    dispatcher = desk.broker.dispatcher
    dispatcher.rename(b"debug", b"inspect")
    dispatcher.rename(b"shutdown", b"")
    assert desk.call("INSPECT", "ERROR", "x") == b"-x\r\n"
    assert desk.call("Inspect", "ERROR") == b"-ERR Unknown DEBUG subcommand or wrong number of arguments for 'ERROR'\r\n"
    assert desk.call("DEBUG", "ERROR", "x") == b"-ERR unknown command 'DEBUG'\r\n"
    assert desk.call("SHUTDOWN") == b"-ERR unknown command 'SHUTDOWN'\r\n"
    with pytest.raises(ConfigError, match="no such command"):
        dispatcher.rename(b"nosuch", b"x")
    with pytest.raises(ConfigError, match="taken"):
        dispatcher.rename(b"config", b"ping")


def test_renaming_comes_from_the_configuration() -> None:
    configuration = Configuration(renamed=[("ping", "pong")])
    desk = Desk()
    desk.broker.__init__(desk.node, configuration, desk.server, desk.clock)  # type: ignore[misc]
    assert desk.call("PONG") == b"+PONG\r\n"
    assert desk.call("PING") == b"-ERR unknown command 'PING'\r\n"


def test_calls_and_time_are_counted(desk: Desk) -> None:
    desk.clock.step_us = 7
    desk.broker.dispatcher.mark()
    desk.call("PING")
    desk.call("PING", "x")
    text = desk.call("INFO", "commandstats")
    assert b"cmdstat_ping:calls=2,usec=14,usec_per_call=7.00\r\n" in text
    assert b"cmdstat_time" not in text
    assert desk.call("CONFIG", "RESETSTAT") == b"+OK\r\n"
    assert b"cmdstat_ping" not in desk.call("INFO", "commandstats")


def test_a_fault_in_a_handler_is_an_error_and_a_log_line(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_seconds: float) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(desk.server, "sleep", fail)
    assert desk.call("DEBUG", "SLEEP", 0) == b"-ERR internal error in 'debug'; the server's log tells more\r\n"
    assert [event for _, event, _ in desk.logged] == ["a command failed inside the server"]
    assert not desk.client.close_asap


def test_the_last_command_is_known(desk: Desk) -> None:
    desk.call("pInG")
    assert b" cmd=client " in desk.call("CLIENT", "LIST")
    assert desk.client.last_command == b"client"


@pytest.mark.parametrize("entry", COMMANDS.values(), ids=lambda entry: entry.name.decode())
def test_every_entry_of_the_table_is_whole(entry: Command) -> None:
    assert entry.summary
    assert not entry.summary.endswith(".")
    assert entry.group in GROUPS
    assert set(entry.flags) <= set(FLAGS)
    assert entry.syntax.count("[") == entry.syntax.count("]")
    assert (entry.arity in (0, 1, -1)) or entry.syntax


def test_a_bad_table_entry_is_refused() -> None:
    def handler(_broker: object, _client: Client, _args: list[bytes]) -> None:
        """Never called."""

    with pytest.raises(ValueError, match="bad table entry"):
        Command(b"x", 1, ("quick",), "s", "server", "", handler)
