"""What clients find in COMMAND and INFO: the commands with arity and flags, the sections with their fields in order."""

from __future__ import annotations

import re

import pytest

from .server_process import original_under_test
from .socket_session import SocketSession

COMMANDS = """
ackjob -1 write fast
addjob -4 write denyoom fast
auth 2 readonly loading fast
bgrewriteaof 1 readonly admin
client -2 readonly admin
cluster -2 readonly admin
command 0 readonly loading
config -2 readonly admin
debug -2 admin
deljob -1 write fast
dequeue -1 write fast
enqueue -1 write denyoom fast
fastack -1 write fast
getjob -2 write fast
hello 1 readonly fast
info -1 readonly loading
jscan -1 readonly
latency -2 readonly admin loading
loadjob 2 write
monitor 1 readonly admin
nack -1 write denyoom fast
pause -3 readonly fast
ping -1 readonly fast
qlen 2 readonly fast
qpeek 3 readonly
qscan -1 readonly
qstat 2 readonly fast
show 2 readonly fast
shutdown -1 readonly admin loading
slowlog -2 readonly
time 1 readonly fast
working 2 write fast
"""
WIDENED = {"hello", "qpeek", "command"}
"""Commands that take more arguments than the original's."""
FREED = {"nack", "enqueue"}
"""Commands that are not refused for lack of memory."""
EXTRA_FLAGS = {"noauth", "loading"}
"""Flags that may come with any command: before AUTH, and while the journal is read."""

SECTIONS = {
    "server": "disque_version disque_git_sha1 disque_git_dirty disque_build_id os arch_bits multiplexing_api gcc_version"
    " process_id run_id tcp_port uptime_in_seconds uptime_in_days hz executable config_file",
    "clients": "connected_clients client_longest_output_list client_biggest_input_buf blocked_clients",
    "memory": "used_memory used_memory_human used_memory_rss used_memory_peak used_memory_peak_human mem_fragmentation_ratio"
    " mem_allocator",
    "jobs": "registered_jobs",
    "queues": "registered_queues",
    "persistence": "loading aof_enabled aof_state aof_rewrite_in_progress aof_rewrite_scheduled aof_last_rewrite_time_sec"
    " aof_current_rewrite_time_sec aof_last_bgrewrite_status aof_last_write_status",
    "stats": "total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes"
    " total_net_output_bytes instantaneous_input_kbps instantaneous_output_kbps rejected_connections latest_fork_usec",
    "cpu": "used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children",
}
VALUES = {
    "run_id": r"[0-9a-f]{40}",
    "arch_bits": "64|32",
    "loading": "0",
    "aof_enabled": "0",
    "aof_state": "off",
    "aof_last_write_status": "ok",
    "used_memory_human": r"\d+(\.\d\d)?[BKMGTP]",
    "mem_fragmentation_ratio": r"\d+\.\d\d",
    "instantaneous_input_kbps": r"\d+\.\d\d",
    "used_cpu_user": r"\d+\.\d\d",
    "tcp_port": r"\d+",
    "registered_jobs": "0",
    "blocked_clients": "0",
}


def commands(session: SocketSession) -> dict[str, tuple[str, list[str]]]:
    """Arity and flags by name."""
    rows = [entry.items for entry in session.connection("A").call("COMMAND").items]
    for row in rows:
        assert [str(item) for item in row[3:6]] == [":0", ":0", ":0"]
    return {row[0].data.decode(): (str(row[1].number), [flag.data.decode() for flag in row[2].items]) for row in rows}


@pytest.mark.parametrize("line", COMMANDS.split("\n")[1:-1], ids=lambda line: line.split()[0])
def test_command(session: SocketSession, line: str) -> None:
    name, arity, *flags = line.split()
    found_arity, found_flags = commands(session)[name]
    if name not in WIDENED:
        assert found_arity == arity
    wanted = [flag for flag in flags if flag != "denyoom" or name not in FREED or original_under_test()]
    assert [flag for flag in found_flags if flag not in EXTRA_FLAGS or flag in flags] == wanted


def test_command_count_is_their_number(session: SocketSession) -> None:
    assert session.connection("A").call("COMMAND", "COUNT").number == len(commands(session))


@pytest.mark.parametrize("section", SECTIONS)
def test_info_section(session: SocketSession, section: str) -> None:
    text = session.connection("A").call("INFO", section).data.decode()
    lines = text.split("\r\n")
    assert lines[0] == f"# {section.upper() if section == 'cpu' else section.capitalize()}"
    assert lines[-1] == ""
    fields = dict(line.split(":", 1) for line in lines[1:-1])
    wanted = SECTIONS[section].split()
    assert [name for name in fields if name in wanted] == wanted
    for name in set(fields) & set(VALUES):
        assert re.fullmatch(VALUES[name], fields[name]), name


def test_info_lists_the_sections_in_order(session: SocketSession) -> None:
    client = session.connection("A")
    default = re.findall("# (.*)\r\n", client.call("INFO").data.decode())
    everything = re.findall("# (.*)\r\n", client.call("INFO", "all").data.decode())
    wanted = ["Server", "Clients", "Memory", "Jobs", "Queues", "Persistence", "Stats", "CPU"]
    assert [name for name in default if name in wanted] == wanted
    assert "Commandstats" not in default
    assert [name for name in everything if name in {*wanted, "Commandstats"}] == [*wanted, "Commandstats"]
    assert client.call("INFO", "default").data.count(b"# ") == len(default)
    assert b"\r\n\r\n# Clients\r\n" in client.call("INFO").data


def test_counters_move(session: SocketSession) -> None:
    client = session.connection("A")

    def stat(name: str) -> int:
        return int(re.search(rf"\r\n{name}:(\d+)", client.call("INFO", "stats").data.decode())[1])  # type: ignore[index]

    before = stat("total_commands_processed"), stat("total_net_input_bytes"), stat("total_connections_received")
    session.connection("B").call("PING")
    after = stat("total_commands_processed"), stat("total_net_input_bytes"), stat("total_connections_received")
    assert all(old < new for old, new in zip(before, after, strict=True))
