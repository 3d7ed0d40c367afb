"""Three nodes of which one after the other dies under load; a minute of it is in `churn.py`."""

from __future__ import annotations

from collections.abc import Callable

from disqueue.testing import Cluster

from .churn import Churn, report


def test_nodes_die_under_load(start_cluster: Callable[[int], Cluster], queue: str) -> None:
    tally = Churn(start_cluster(3), queue).run(deaths=3, interval=0.5)
    assert not tally.lost, report(tally, 0)
    assert not tally.unexpected, report(tally, 0)
    assert not tally.consumer_errors, report(tally, 0)
    assert len(tally.promised) > 300
