"""INFO: figures of the node and its process, by section."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from disqueue import __version__
from disqueue.commands.arguments import SYNTAX_ERROR
from disqueue.commands.table import Command
from disqueue.core.client import NOT_BLOCKED, Client

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker

Fields = Iterable[tuple[str, object]]


def _server(broker: Broker) -> Fields:
    facts = broker.server.facts()
    uptime_s = max(0, broker.node.now_ms - broker.started_ms) // 1000
    return (
        ("disque_version", __version__),
        ("disque_git_sha1", "00000000"),
        ("disque_git_dirty", 0),
        ("disque_build_id", facts.platform.build_form),
        ("os", facts.platform.system),
        ("arch_bits", struct.calcsize("P") * 8),
        ("multiplexing_api", facts.event_loop),
        ("gcc_version", facts.platform.compiler),
        ("process_id", facts.process_id),
        ("run_id", broker.run_id.decode()),
        ("tcp_port", facts.tcp_port),
        ("uptime_in_seconds", uptime_s),
        ("uptime_in_days", uptime_s // 86400),
        ("hz", broker.configuration.number("hz")),
        ("executable", facts.executable),
        ("config_file", broker.configuration.path),
        ("disqueue_version", __version__),
        ("python_version", facts.platform.python_version),
        ("python_implementation", sys.implementation.name),
        ("build", facts.platform.build_form),
        ("node_id", broker.node.node_id.decode()),
    )


def _clients(broker: Broker) -> Fields:
    clients = list(broker.server.clients())
    facts = [broker.server.describe(client) for client in clients]
    possible = broker.server.facts().max_clients
    return (
        ("connected_clients", len(clients)),
        ("client_longest_output_list", max((fact.output_bytes for fact in facts), default=0)),
        ("client_biggest_input_buf", max((fact.input_bytes for fact in facts), default=0)),
        ("blocked_clients", sum(client.blocked != NOT_BLOCKED for client in clients)),
        ("maxclients", broker.configuration.number("maxclients") if possible is None else possible),
        ("monitoring_clients", len(broker.dispatcher.monitors)),
    )


def _memory(broker: Broker) -> Fields:
    node = broker.node
    used = node.memory_bytes()
    peak = max(node.peak_bytes, used)
    resident = broker.server.facts().resident_bytes
    limit = broker.configuration.number("maxmemory")
    return (
        ("used_memory", used),
        ("used_memory_human", human(used)),
        ("used_memory_rss", resident),
        ("used_memory_peak", peak),
        ("used_memory_peak_human", human(peak)),
        ("mem_fragmentation_ratio", f"{resident / used if used else 0:.2f}"),
        ("mem_allocator", "python"),
        ("used_memory_jobs_and_queues", node.used_bytes),
        ("used_memory_buffers", node.buffer_bytes),
        ("maxmemory", limit),
        ("maxmemory_human", human(limit)),
        ("maxmemory_policy", broker.configuration.text("maxmemory-policy")),
        ("memory_level", ("normal", "high", "full")[node.memory_level()]),
        ("evicted_jobs", node.evicted_jobs),
    )


def _jobs(broker: Broker) -> Fields:
    node = broker.node
    registered = len(node.jobs)
    return (
        ("registered_jobs", registered),
        ("queued_jobs", node.queued_jobs),
        ("active_jobs", max(0, registered - node.queued_jobs - node.acked_jobs - node.waiting_jobs - node.delayed_jobs)),
        ("delayed_jobs", node.delayed_jobs),
        ("waiting_for_replicas_jobs", node.waiting_jobs),
        ("acked_jobs", node.acked_jobs),
        ("expired_jobs", node.expired_jobs),
    )


def _queues(broker: Broker) -> Fields:
    return (("registered_queues", broker.node.visible_queues),)


def _persistence(broker: Broker) -> Fields:
    journal = broker.journal
    figures = journal.figures() if journal is not None else {}
    defaults: tuple[tuple[str, object], ...] = (
        ("loading", int(bool(broker.dispatcher.loading))),
        ("aof_enabled", 0),
        ("aof_state", "off"),
        ("aof_rewrite_in_progress", 0),
        ("aof_rewrite_scheduled", 0),
        ("aof_last_rewrite_time_sec", -1),
        ("aof_current_rewrite_time_sec", -1),
        ("aof_last_bgrewrite_status", "ok"),
        ("aof_last_write_status", "err" if broker.dispatcher.write_error else "ok"),
    )
    names = {name for name, _ in defaults}
    yield from ((name, figures.get(name, value)) for name, value in defaults)
    yield from ((name, value) for name, value in figures.items() if name not in names)


def _stats(broker: Broker) -> Fields:
    statistics = broker.statistics
    commands = broker.dispatcher.commands_processed()
    ops, input_rate, output_rate = statistics.rates(broker.node.now_ms, commands)
    return (
        ("total_connections_received", statistics.connections),
        ("total_commands_processed", commands),
        ("instantaneous_ops_per_sec", round(ops)),
        ("total_net_input_bytes", statistics.input_bytes),
        ("total_net_output_bytes", statistics.output_bytes),
        ("instantaneous_input_kbps", f"{input_rate / 1024:.2f}"),
        ("instantaneous_output_kbps", f"{output_rate / 1024:.2f}"),
        ("rejected_connections", statistics.rejected_connections),
        ("latest_fork_usec", 0),
        ("protocol_errors", statistics.input_faults),
        ("output_limit_closes", statistics.output_limit_closes),
    )


def _cpu(broker: Broker) -> Fields:
    facts = broker.server.facts()
    return (
        ("used_cpu_sys", f"{facts.cpu_system_s:.2f}"),
        ("used_cpu_user", f"{facts.cpu_user_s:.2f}"),
        ("used_cpu_sys_children", f"{facts.cpu_system_children_s:.2f}"),
        ("used_cpu_user_children", f"{facts.cpu_user_children_s:.2f}"),
    )


def _commandstats(broker: Broker) -> Fields:
    for name, entry in broker.dispatcher.by_name.items():
        if entry.calls:
            mean_us = entry.elapsed_us / entry.calls
            yield f"cmdstat_{name.decode()}", f"calls={entry.calls},usec={entry.elapsed_us},usec_per_call={mean_us:.2f}"


SECTIONS: dict[str, Callable[[Broker], Fields]] = {
    "Server": _server,
    "Clients": _clients,
    "Memory": _memory,
    "Jobs": _jobs,
    "Queues": _queues,
    "Persistence": _persistence,
    "Stats": _stats,
    "CPU": _cpu,
    "Commandstats": _commandstats,
}
ONLY_WHEN_ASKED = ("Commandstats",)


def human(size: int) -> str:
    """Return a size as people read it."""
    if size < 1024:
        return f"{size}B"
    value = float(size)
    for unit in "KMGTP":
        value /= 1024
        if value < 1024 or unit == "P":
            break
    return f"{value:.2f}{unit}"


def info(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`INFO [section]`"""
    if len(args) > 2:
        client.reply.error(SYNTAX_ERROR)
        return
    wanted = args[1].decode("latin-1").lower() if len(args) == 2 else "default"
    texts = []
    for title, fields in SECTIONS.items():
        if wanted in (title.lower(), "all", "everything") or (wanted == "default" and title not in ONLY_WHEN_ASKED):
            lines = [f"# {title}", *(f"{name}:{value}" for name, value in fields(broker))]
            texts.append("".join(line + "\r\n" for line in lines))
    client.reply.bulk("\r\n".join(texts).encode("utf-8", "surrogateescape"))


COMMANDS = (Command(b"info", -1, ("readonly", "loading"), "Figures of the node and its process", "server", "[section]", info),)
