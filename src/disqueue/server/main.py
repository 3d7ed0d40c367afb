"""Starting a server: `run` is what `disqueue server` and `disqueue-server` call."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable

from disqueue import __version__
from disqueue._twins import build_info
from disqueue.config.configuration import Configuration, load
from disqueue.config.help import options_text
from disqueue.config.sources import ConfigError
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.server import listeners, logs, process
from disqueue.server.cluster import Cluster
from disqueue.server.journal import ServerJournal
from disqueue.server.shell import Shell

LOADING_GRACE_S = 1.0
"""How long a client that connects while the journal is loaded waits before it is told -LOADING: most journals are loaded
by then, and most clients wait longer for an answer."""

USAGE = """\
Usage: disqueue server [CONF | -] [--option value ...]

  CONF              a configuration file; - reads it from standard input
  --option value    any option of the file, for example --port 7712 --appendonly yes
  -v, --version     print the version
  -h, --help        print this and all options

Environment variables override the file: DISQUEUE_PORT=7712. The command line overrides both.
"""


def run(argv: list[str]) -> int:
    """Run a server with the arguments after the program's name; return the exit code."""
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(help_text())
        return 0
    if argv and argv[0] in ("-v", "--version"):
        sys.stdout.write(f"Disqueue {__version__} ({build_info().form} Python {platform.python_version()})\n")
        return 0
    try:
        configuration = load(argv, os.environ)
        return _serve(configuration)
    except ConfigError as error:
        logs.logger.handlers.clear()
        sys.stderr.write(f"disqueue server: {error}\n")
        return 1
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        sys.stderr.write(f"disqueue server: {error.strerror}: the limit (ulimit -n, LimitNOFILE=) is too low to start\n")
        return 1


def help_text() -> str:
    """Return the usage with all options by group."""
    return f"{USAGE}\n{options_text()}"


def _serve(configuration: Configuration) -> int:
    try:
        log = logs.open_log(configuration.text("logfile"), configuration.text("loglevel"), configuration.text("log-format"))
    except OSError as error:
        raise ConfigError(f"logfile {configuration.text('logfile')}: {error.strerror}") from None
    try:
        with contextlib.ExitStack() as stack:
            shell = _run_until_stopped(configuration, log, stack)
    except ConfigError as error:
        if configuration.text("logfile"):  # in the background nobody sees standard error
            logs.log_event("warning", "the server can't start", reason=error)
        raise
    if shell.restart_wanted:
        logs.log_event("notice", "starting again")
        process.start_again()
    logs.log_event("notice", "bye")
    return shell.exit_code


def _run_until_stopped(configuration: Configuration, log: logs.LogFile, stack: contextlib.ExitStack) -> Shell:
    """Bind everything while errors still reach the terminal, then go to the background if that is wanted, then serve."""
    # Clients' port first: of two servers with one port it is the one to be named.
    sockets = listeners.open_listeners(configuration)
    if path := configuration.text("unixsocket"):
        stack.callback(listeners.remove_unix, path)
    try:
        cluster = Cluster(configuration)
    except ConfigError:
        listeners.close_all(sockets)
        raise
    if configuration.flag("daemonize"):
        process.go_to_background()
    if path := configuration.text("pidfile"):
        process.write_pid_file(path)
        stack.callback(process.remove_pid_file, path)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_main(configuration, sockets, cluster, log))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where it is installed."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return factory


async def _main(configuration: Configuration, sockets: list[socket.socket], cluster: Cluster, log: logs.LogFile) -> Shell:
    node = Node(Settings(), os.urandom, cluster.members.me.node_id, cluster.members)
    node.log = logs.log_event
    shell = Shell(node, configuration)
    cluster.attach(shell)
    journal = shell.journal = ServerJournal(shell, configuration)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_log_exception)
    loads = journal.will_load()
    shell.use_loop(loop)
    _handle_signals(loop, shell, log)
    if not loads:  # peers first: a client that is served before this node has met them is told that there are too few
        await cluster.start(shell)
        await cluster.met_peers()
    ready = asyncio.Event()
    listening = loop.create_task(_listen(shell, sockets, ready))
    for remark in configuration.remarks:
        logs.log_event("warning", remark)
    await journal.load()
    if not shell.stopped.is_set():  # a signal while the journal was read
        if loads:
            await cluster.start(shell)
            await cluster.met_peers()
            journal.let_clients_in()
        ready.set()
        await listening
        _log_start(configuration, shell)
        process.tune_garbage_collection()
        await shell.stopped.wait()
    cluster.stop()
    # One more turn of the loop sends what the transports still hold.
    await asyncio.sleep(0)
    return shell


async def _listen(shell: Shell, sockets: list[socket.socket], ready: asyncio.Event) -> None:
    """Serve clients once all is ready, or once that takes long. Until then their connections are made, and wait."""
    for one in sockets:
        listeners.listen(one, shell.configuration.number("tcp-backlog"))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ready.wait(), LOADING_GRACE_S)
    await shell.start(sockets)


def _log_start(configuration: Configuration, shell: Shell) -> None:
    build = build_info()
    logs.log_event(
        "notice",
        f"Disqueue {__version__} is ready",
        port=configuration.number("port"),
        unixsocket=configuration.text("unixsocket") or "none",
        python=f"{platform.python_version()}, {build.form}: {build.reason}",
        loop=shell.facts().event_loop,
        config=configuration.path or "none",
        node=shell.node.node_id.decode(),
    )
    if not configuration.path:
        logs.log_event("verbose", "no configuration file: CONFIG REWRITE has nothing to write to")


def _handle_signals(loop: asyncio.AbstractEventLoop, shell: Shell, log: logs.LogFile) -> None:
    def terminate(name: str) -> None:
        logs.log_event("notice", "signal received", signal=name)
        # Whoever asks again is in a hurry.
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, lambda *_: os._exit(1))
        shell.shutdown(False)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, terminate, number.name)
    loop.add_signal_handler(signal.SIGHUP, log.reopen)


def _log_exception(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    error = context.get("exception")
    fields = {"exception": error} if isinstance(error, BaseException) else {}
    logs.log_event("warning", str(context.get("message")), **fields)
