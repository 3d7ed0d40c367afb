"""Disqueue: a distributed, in-memory message broker for jobs."""

from importlib import import_module
from typing import TYPE_CHECKING

from disqueue._twins import BuildInfo, build_info, install_if_wanted

if TYPE_CHECKING:
    from disqueue.client import AsyncClient, AsyncJob, Client, DisqueueError, Job

__version__ = "0.1.0"
__all__ = ["AsyncClient", "AsyncJob", "BuildInfo", "Client", "DisqueueError", "Job", "__version__", "build_info"]

install_if_wanted()

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The client's names, imported when they are first used: the server has no need of them."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("disqueue.client"), name)
