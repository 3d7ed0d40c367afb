"""Disqueue: a distributed, in-memory message broker for jobs."""

__version__ = "0.1.0"
