"""A server's journal: its directory, the options that steer it, a thread for what blocks, and what comes of its errors."""

from __future__ import annotations

import asyncio
import gc
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from disqueue.config.configuration import Configuration
from disqueue.config.kinds import Value
from disqueue.config.rewrite import rewrite as rewrite_configuration
from disqueue.config.sources import ConfigError
from disqueue.journal.disk import OsDisk
from disqueue.journal.errors import JournalError
from disqueue.journal.reserve import RESERVE_BYTES
from disqueue.journal.runtime import LOADING, ON, JournalRuntime, JournalSettings
from disqueue.journal.writer import ALWAYS
from disqueue.server import logs

if TYPE_CHECKING:
    from disqueue.server.shell import Shell

Done = Callable[[BaseException | None], None]


class ThreadExecutor:
    """Runs one task after the other in a thread; the loop hears of each in a pass."""

    def __init__(self, begin_event: Callable[[], None]) -> None:
        self._begin_event = begin_event
        self._thread = ThreadPoolExecutor(1, "journal")
        self._running: deque[tuple[Future[None], Done]] = deque()

    def submit(self, task: Callable[[], None], done: Done) -> None:
        loop = asyncio.get_running_loop()
        future = self._thread.submit(task)
        self._running.append((future, done))
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._finish))

    def wait(self) -> None:
        while self._running:
            future, done = self._running.popleft()
            done(future.exception())

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown()

    def _finish(self) -> None:
        while self._running and self._running[0][0].done():
            self._begin_event()
            future, done = self._running.popleft()
            done(future.exception())


class ServerJournal:
    """Made with the shell; `load` is awaited before other nodes are spoken to, and `let_clients_in` called when they are met."""

    def __init__(self, shell: Shell, configuration: Configuration) -> None:
        self.shell = shell
        self.configuration = configuration
        directory = os.path.join(configuration.text("dir"), configuration.text("appendfilename"))
        self.executor = ThreadExecutor(self._begin_event)
        self.settings = JournalSettings(reserve_bytes=RESERVE_BYTES)
        self.runtime = JournalRuntime(self.settings, OsDisk(directory), self.executor, shell.node, logs.log_event)
        self.runtime.on_error = self._error_changed
        self._loaded = False
        shell.broker.journal = shell.runtime = self.runtime
        self._follow_configuration()

    def _begin_event(self) -> None:
        self.shell.begin_event()

    # -- options

    def _follow_configuration(self) -> None:
        listen = self.configuration.listen
        for option in ("appendfsync", "auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size", "aof-load-truncated"):
            listen(option, self._settings_changed)
        listen("appendonly", self._switched)

    def _settings_changed(self, _value: Value) -> None:
        configuration = self.configuration
        self.settings.policy = configuration.text("appendfsync")
        self.settings.rewrite_percentage = configuration.number("auto-aof-rewrite-percentage")
        self.settings.rewrite_min_bytes = configuration.number("auto-aof-rewrite-min-size")
        self.settings.load_truncated = configuration.flag("aof-load-truncated")
        self.runtime.apply_settings()
        self._error_changed(self.runtime.refusal())

    def _switched(self, value: Value) -> None:
        """`appendonly` at run time. Raises `ConfigError`."""
        runtime = self.runtime
        if runtime.state == LOADING:
            raise ConfigError("The journal is being loaded; try again when that is done")
        if not self._loaded or bool(value) == (runtime.state == ON):
            return
        if not value:
            problem = runtime.stop(switched_off=True)
            self._error_changed("")
            if problem:
                logs.log_event("warning", "the journal was switched off in trouble", why=problem)
            return
        try:
            runtime.start()
        except JournalError as error:
            logs.log_event("warning", "the journal cannot be switched on", why=str(error))
            raise ConfigError(f"Unable to turn on AOF. Check server logs. {error}") from None

    # -- the start

    def will_load(self) -> bool:
        """Tell whether there is a journal to load; no client is served before `load` is through, from the first one on."""
        loads = self.configuration.flag("appendonly") or self.configuration.flag("aof-enqueue-jobs-once")
        if loads:
            self.shell.dispatcher.set_guards(loading=b", 0% is done")
        return loads

    async def load(self) -> None:
        """Load the journal if one is kept or a restart asks for it; clients are told to wait. Raises `ConfigError`."""
        once = self.configuration.flag("aof-enqueue-jobs-once")
        keep = self.configuration.flag("appendonly")
        try:
            if keep or once:
                await self._load_all()
            if self.shell.stopped.is_set():
                return
            if keep:
                self.runtime.start()
            elif once:
                # What happens from now on is not written: nobody may take this journal for the whole truth again.
                self.runtime.start()
                self.runtime.stop(switched_off=True)
        except JournalError as error:
            logs.log_event("warning", "the journal cannot be used", why=str(error))
            raise ConfigError(str(error)) from None
        self._loaded = True
        if once:
            self._once_is_over()

    def let_clients_in(self) -> None:
        """Serve clients, and not before: what a server took that is about to end because of its journal would be lost."""
        self.shell.dispatcher.set_guards(loading=b"")

    async def _load_all(self) -> None:
        gc.disable()  # nothing becomes garbage, and millions of new objects would be walked through again and again
        try:
            await self._load_in_steps()
        finally:
            gc.enable()

    async def _load_in_steps(self) -> None:
        runtime = self.runtime
        shell = self.shell
        self._begin_event()
        runtime.load()
        shown = -1
        settled = False
        while True:
            percent = int(runtime.progress() * 100)
            shell.dispatcher.set_guards(loading=b", %d%% is done" % percent)
            if percent // 10 != shown:
                shown = percent // 10
                logs.log_event("notice", "loading the journal", percent=percent)
            if runtime.is_read() and not settled:
                settled = True
                await asyncio.to_thread(runtime.settle)  # up to a whole segment is written again
            self._begin_event()
            if runtime.load_step() or shell.stopped.is_set():
                return
            await asyncio.sleep(0)

    def _once_is_over(self) -> None:
        self.configuration.change("aof-enqueue-jobs-once", False)
        if self.configuration.path:
            try:
                rewrite_configuration(self.configuration)
            except ConfigError as error:
                logs.log_event("warning", "aof-enqueue-jobs-once stays yes in the configuration file", why=str(error))

    # -- the end

    def save_for_shutdown(self) -> str:
        """`SHUTDOWN REWRITE-AOF`: have all jobs on disk although the journal is off; return why that failed, or ""."""
        if self.runtime.state == ON:
            return ""
        return self.runtime.write_all()

    def stop(self) -> str:
        """The end of the process: all is written. Returns why not, or ""."""
        problem = self.runtime.stop() if self.runtime.state == ON else ""
        if problem:
            logs.log_event("warning", "the journal could not be written to its end", why=problem)
        self.executor.close()
        return problem

    def _error_changed(self, error: str) -> None:
        # With a full disk and a reserve what changes jobs is still kept: only adds are refused.
        self.shell.dispatcher.all_synced = self.settings.policy == ALWAYS and self.runtime.error != ""
        self.shell.dispatcher.set_guards(write_error=error.encode("utf-8", "surrogateescape"))
