"""What has to be known of the machine and the programs to read the figures."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from comparison.peers.found import Peers
from disqueue import build_info


def machine() -> str:
    """Processor, cores, memory and system."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{_processor()}, {os.cpu_count()} cores, {memory_gb:.0f} GB; {platform.system()} {platform.release()}"


def versions(peers: Peers) -> str:
    """Each program's own words."""
    found = [f"{peers.ours.version()} ({build_info().form})"]
    found += [peer.version() for peer in peers.all()[1:]]
    return "; ".join(dict.fromkeys(found))


def load() -> str:
    """How many processes wanted to run lately: above the number of cores, walls and latencies tell of others."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
