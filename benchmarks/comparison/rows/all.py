"""The rows in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from comparison.rows.base import Row
from comparison.rows.burst import Burst, Spread
from comparison.rows.cluster import Across, Apart, Replicated
from comparison.rows.growth import Growth
from comparison.rows.journal import Always, Everysec
from comparison.rows.one_node import Cycle, Delivery, Memory, Single
from comparison.rows.pauses import Compacting
from comparison.rows.shapes import Bodies, Consumers, Nodes, Queues

ROWS: Sequence[Row] = (
    Cycle(),
    Single(),
    Replicated(),
    Apart(),
    Across(),
    Delivery(),
    Memory(),
    Growth(),
    Bodies(),
    Nodes(),
    Queues(),
    Consumers(),
    Compacting(),
    Burst(),
    Spread(),
    Everysec(),
    Always(),
)
