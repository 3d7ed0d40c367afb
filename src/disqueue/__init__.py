"""Disqueue: a distributed, in-memory message broker for jobs."""

from disqueue._twins import BuildInfo, build_info, install_if_wanted

__version__ = "0.1.0"
__all__ = ["BuildInfo", "__version__", "build_info"]

install_if_wanted()
