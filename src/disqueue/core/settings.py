"""The run-time options that the core reads. The shell keeps them up to date with the configuration."""

from __future__ import annotations


class Settings:
    """Plain values; every one of them may change between two passes. See `docs/configuration.md` for their meaning."""

    def __init__(self) -> None:
        self.maxmemory_bytes = 1 << 30
        """0: no limit."""
        self.evict_acks = True
        self.max_job_bytes = 512 * 1024 * 1024
        self.max_queue_name_bytes = 4096
        self.queue_idle_ms = 300_000
        self.node_timeout_ms = 15_000
