"""The table of options: the only description of each of them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from disqueue.config.kinds import (
    I64_MAX,
    Addresses,
    Choice,
    FileName,
    Integer,
    KeepAlive,
    Kind,
    Octal,
    OutputLimit,
    OutputLimits,
    Path,
    Size,
    Text,
    Value,
    Words,
    YesNo,
)

GROUPS = ("network", "limits", "security", "memory", "journal", "cluster", "logging", "process", "watching", "ignored")

U32_MAX = (1 << 32) - 1


@dataclass(frozen=True)
class Directive:
    """One option.

    `runtime`: CONFIG SET may change it. `secret`: never shown in logs. `hidden`: not even CONFIG GET shows it.
    Options of the group "ignored" are accepted so that old files load; they do nothing.
    """

    group: str
    name: str
    kind: Kind
    default: Value
    help: str
    runtime: bool = True
    secret: bool = False
    hidden: bool = False

    def __post_init__(self) -> None:
        assert self.group in GROUPS

    @property
    def ignored(self) -> bool:
        return self.group == "ignored"

    @property
    def default_text(self) -> str:
        return self.kind.write(self.default)


class DirectiveError(ValueError):
    """A value that an option does not take, or an option that does not exist; the text is for people."""


DIRECTIVES: tuple[Directive, ...] = (
    # network
    Directive("network", "port", Integer(0, 65535), 7711, "TCP port for clients; 0: no TCP.", runtime=False),
    Directive("network", "bind", Addresses(), (), "Addresses to listen on; none: all, IPv4 and IPv6.", runtime=False),
    Directive(
        "network",
        "protected-mode",
        YesNo(),
        True,
        "While neither requirepass nor bind is set, serve clients of this machine only.",
    ),
    Directive(
        "network", "tcp-backlog", Integer(0, 65535), 511, "Length of the queue of connections not yet accepted.", runtime=False
    ),
    Directive("network", "unixsocket", Path(), "", "Path of a Unix socket for clients; empty: none.", runtime=False),
    Directive(
        "network", "unixsocketperm", Octal(), 0, "Permissions of the Unix socket in octal; 0: those of the umask.", runtime=False
    ),
    Directive(
        "network", "timeout", Integer(0, U32_MAX, "seconds"), 0, "Close a client that has been idle for so long; 0: never."
    ),
    Directive(
        "network",
        "tcp-keepalive",
        KeepAlive(0, 32767, "seconds"),
        300,
        "Probe silent TCP clients after so long, so that dead ones are noticed; 0: never.",
    ),
    # limits
    Directive(
        "limits",
        "maxclients",
        Integer(1, 1_000_000),
        10000,
        "Most clients at a time; lowered when the system allows fewer files.",
    ),
    Directive(
        "limits",
        "proto-max-bulk-len",
        Size(1 << 10, 1 << 29),
        1 << 29,
        "Largest argument of a command. A larger one closes the connection.",
    ),
    Directive(
        "limits", "max-job-size", Size(1, 1 << 29), 1 << 29, "Largest body of a job. A larger one is refused with an error."
    ),
    Directive("limits", "max-queue-name-bytes", Integer(1, 65535), 4096, "Longest name of a queue."),
    Directive("limits", "max-arguments", Integer(16, 1 << 20), 1 << 20, "Most arguments of a command."),
    Directive(
        "limits",
        "client-query-buffer-limit",
        Size(1 << 20, 1 << 40),
        1 << 30,
        "Close a client with more unprocessed input than this.",
    ),
    Directive(
        "limits",
        "client-output-buffer-limit",
        OutputLimits(),
        OutputLimit(0, 0, 0),
        "Close a client that does not read its replies: at once above HARD bytes, or after SECONDS above SOFT bytes."
        " Without limits a client's commands wait while its replies are not read.",
    ),
    # security
    Directive(
        "security", "requirepass", Text(512), "", "Password that clients have to give with AUTH; empty: none.", secret=True
    ),
    # memory
    Directive("memory", "maxmemory", Size(), 1 << 30, "Memory for jobs, queues and buffers; 0: no limit."),
    Directive(
        "memory",
        "maxmemory-policy",
        Choice(("acks", "noeviction")),
        "acks",
        "What may be dropped above 95 % of maxmemory: acknowledged and delivered at-most-once jobs (acks), or nothing.",
    ),
    Directive(
        "memory", "queue-idle-seconds", Integer(1, U32_MAX, "seconds"), 300, "Forget an empty queue that nobody used for so long."
    ),
    # journal
    Directive("journal", "appendonly", YesNo(), False, "Keep a journal on disk."),
    Directive("journal", "appendfilename", FileName(), "disque.aof", "Name of the journal in dir.", runtime=False),
    Directive(
        "journal",
        "appendfsync",
        Choice(("everysec", "always", "no")),
        "everysec",
        "When the journal is forced to disk: each second, before each reply, or when the system likes.",
    ),
    Directive(
        "journal", "no-appendfsync-on-rewrite", YesNo(), False, "Do not force the journal to disk while it is being compacted."
    ),
    Directive(
        "journal",
        "auto-aof-rewrite-percentage",
        Integer(0, U32_MAX, "percent"),
        100,
        "Compact the journal when it has grown by this much; 0: only when asked.",
    ),
    Directive("journal", "auto-aof-rewrite-min-size", Size(), 64 << 20, "Never compact a journal smaller than this."),
    Directive("journal", "aof-rewrite-incremental-fsync", YesNo(), True, "Force what compaction writes to disk in small steps."),
    Directive("journal", "aof-load-truncated", YesNo(), True, "Load a journal whose end is cut off up to its last whole record."),
    Directive(
        "journal",
        "aof-enqueue-jobs-once",
        YesNo(),
        False,
        "At the next start queue the jobs of the journal again, then set this to no.",
    ),
    # cluster
    Directive(
        "cluster",
        "cluster-config-file",
        FileName(),
        "nodes.conf",
        "Name of the file in dir in which the node keeps its id and the nodes it knows.",
        runtime=False,
    ),
    Directive(
        "cluster",
        "cluster-node-timeout",
        Integer(1, 86_400_000, "milliseconds"),
        15000,
        "A node that does not answer for so long counts as failing.",
    ),
    Directive(
        "cluster",
        "cluster-port",
        Integer(0, 65535),
        0,
        "TCP port for other nodes; 0: port + 10000 (port is then at most 55535).",
        runtime=False,
    ),
    Directive(
        "cluster", "cluster-announce-ip", Text(255), "", "Address that other nodes and clients shall use; empty: what nodes see."
    ),
    Directive("cluster", "cluster-announce-port", Integer(0, 65535), 0, "Port that clients shall use; 0: port."),
    Directive("cluster", "cluster-announce-bus-port", Integer(0, 65535), 0, "Port that other nodes shall use; 0: cluster-port."),
    Directive(
        "cluster",
        "cluster-secret",
        Text(512),
        "",
        "Secret that all nodes share; a node without it is not let in. Empty: none.",
        secret=True,
        hidden=True,
    ),
    Directive(
        "cluster",
        "tls-cluster",
        YesNo(),
        False,
        "Encrypt the links between nodes, with certificates on both sides.",
        runtime=False,
    ),
    Directive("cluster", "tls-cert-file", Path(), "", "Certificate of this node (PEM).", runtime=False),
    Directive("cluster", "tls-key-file", Path(), "", "Private key of the certificate (PEM).", runtime=False),
    Directive(
        "cluster",
        "tls-ca-cert-file",
        Path(),
        "",
        "Certificates of the authorities that sign the nodes' ones (PEM).",
        runtime=False,
    ),
    # logging
    Directive(
        "logging",
        "loglevel",
        Choice(("debug", "verbose", "notice", "warning")),
        "notice",
        "What is logged: this level and those after it.",
    ),
    Directive("logging", "logfile", Path(), "", "File for the log; empty: standard output.", runtime=False),
    Directive("logging", "log-format", Choice(("human", "json")), "human", "Lines for people, or one JSON object a line."),
    # process
    Directive(
        "process",
        "dir",
        Path(),
        ".",
        "Directory of the journal, nodes.conf and relative paths. A change counts from the next start.",
    ),
    Directive("process", "daemonize", YesNo(), False, "Go to the background.", runtime=False),
    Directive(
        "process", "pidfile", Path(), "", "File that holds the process id while the server runs; empty: none.", runtime=False
    ),
    # watching
    Directive(
        "watching",
        "slowlog-log-slower-than",
        Integer(-1, I64_MAX, "microseconds"),
        10000,
        "Note commands that take so long in SLOWLOG; 0: all, -1: none.",
    ),
    Directive("watching", "slowlog-max-len", Integer(0, 1_000_000), 128, "Most entries of SLOWLOG."),
    Directive(
        "watching",
        "latency-monitor-threshold",
        Integer(0, U32_MAX, "milliseconds"),
        0,
        "Note what takes so long in LATENCY; 0: nothing.",
    ),
    # accepted, without effect
    Directive("ignored", "save", Words(), "", "There are no snapshots: appendonly keeps jobs on disk."),
    Directive("ignored", "databases", Integer(1, I64_MAX), 16, "There is one database."),
    Directive("ignored", "maxmemory-samples", Integer(1, I64_MAX), 5, "What may be dropped is known exactly."),
    Directive("ignored", "activerehashing", YesNo(), True, "Tables grow by themselves."),
    Directive("ignored", "hz", Integer(0, I64_MAX), 10, "Nothing is polled."),
    Directive("ignored", "watchdog-period", Integer(0, I64_MAX), 0, "LATENCY tells about pauses."),
    Directive("ignored", "syslog-enabled", YesNo(), False, "Log to standard output and let the system collect it."),
    Directive("ignored", "syslog-ident", Text(), "disque", "See syslog-enabled."),
    Directive(
        "ignored",
        "syslog-facility",
        Choice(("user", *(f"local{n}" for n in range(8)))),
        "local0",
        "See syslog-enabled.",
    ),
)

BY_NAME: dict[str, Directive] = {directive.name: directive for directive in DIRECTIVES}

SPECIAL = {
    "include": "Read another file in place; a relative path counts from the file that names it.",
    "rename-command": 'Give a command another name (rename-command OLD NEW), or none (rename-command OLD "").',
}
"""Options that may be repeated and hold no value of their own."""


def find(name: str) -> Directive:
    """Return the option called `name`, in any case. Raises DirectiveError with the nearest name."""
    directive = BY_NAME.get(name.lower())
    if directive is None:
        raise DirectiveError(f"there is no option '{name}'{suggestion(name)}")
    return directive


def suggestion(name: str) -> str:
    """Return "; did you mean '…'?" when an option with a similar name exists."""
    near = get_close_matches(name.lower().replace("_", "-"), [*BY_NAME, *SPECIAL], n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def parse(directive: Directive, words: list[str]) -> Value:
    """Read a value. Raises DirectiveError with the option, the value and what is allowed."""
    try:
        return directive.kind.parse(words)
    except ValueError as error:
        given = "…" if directive.secret else " ".join(words) or '""' if words else "nothing"
        raise DirectiveError(f"{directive.name} {given}: {error}; allowed is {directive.kind.allowed}") from None
