"""The process itself: background, pid file, open files, figures, garbage collection."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys

from disqueue.commands.ports import ProcessFacts
from disqueue.config.sources import ConfigError

RESERVED_FILES = 64
"""Files beside those of clients: listeners, log, journal, links to other nodes."""
DRAINING_MAX = 256
"""So many connections that were sent an error are closed only when their peers have had time to read it; more are cut."""
DRAINING_MIN = 8
"""So many also where few files are allowed: those of the journal and of the links must not be used up by refused clients."""

IN_BACKGROUND = "DISQUEUE_IN_BACKGROUND"
"""Set for a server that replaces another one in the same process."""

YOUNG_OBJECTS = 20_000
MIDDLE_COLLECTIONS = 5


def go_to_background() -> None:
    """Leave the terminal; the parent ends with 0. Called before any thread or event loop exists."""
    if os.environ.pop(IN_BACKGROUND, ""):
        return  # started again from the background: the process id stays
    sys.stdout.flush()
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)


def write_pid_file(path: str) -> None:
    """Write the process id. Raises ConfigError."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:
        raise ConfigError(f"pidfile {path}: {error.strerror}") from None


def remove_pid_file(path: str) -> None:
    """Remove the pid file at the end."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def allow_files(clients: int) -> tuple[int, int]:
    """Raise the limit of open files so that `clients` fit; return how many clients really fit, and how many may be draining."""
    wanted = clients + DRAINING_MAX + RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return clients, DRAINING_MAX
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    fits = max(1, min(clients, soft - RESERVED_FILES))
    return fits, max(DRAINING_MIN, min(DRAINING_MAX, soft - RESERVED_FILES - fits))


def tune_garbage_collection() -> None:
    """Decide about the cyclic garbage collector.

    The core makes no reference cycles, so that reference counting frees jobs at once; a full collection would only walk through
    millions of living ones and stop the loop for it. What exists after the start is frozen: never looked at again. Young objects
    are still collected, in steps of at most YOUNG_OBJECTS * MIDDLE_COLLECTIONS objects (some milliseconds), for the cycles of
    exceptions and of the event loop. The oldest generation is collected only by `collect_if_small`.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, MIDDLE_COLLECTIONS, 1_000_000)


def collect_if_small(objects: int) -> None:
    """Collect everything when that is quick; `objects` is about how many live ones there are."""
    if objects < YOUNG_OBJECTS:
        gc.collect()


def facts(event_loop: str, tcp_port: int, max_clients: int) -> ProcessFacts:
    """Return what INFO says of the process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ProcessFacts(
        process_id=os.getpid(),
        executable=sys.executable,
        event_loop=event_loop,
        tcp_port=tcp_port,
        max_clients=max_clients,
        resident_bytes=resident_bytes(),
        cpu_system_s=own.ru_stime,
        cpu_user_s=own.ru_utime,
        cpu_system_children_s=children.ru_stime,
        cpu_user_children_s=children.ru_utime,
    )


def resident_bytes() -> int:
    """Return the memory that the system has given to this process, as far as it says so."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        # The highest figure so far is what other systems tell: in bytes on macOS, in KiB elsewhere.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def start_again() -> None:
    """Replace this process by a new one with the same command line and process id."""
    os.environ[IN_BACKGROUND] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
