"""The rows in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from comparison.rows.base import Row
from comparison.rows.burst import Burst
from comparison.rows.cluster import Across, Apart, Replicated
from comparison.rows.growth import Growth
from comparison.rows.journal import Always, Everysec
from comparison.rows.one_node import Cycle, Delivery, Memory, Single
from comparison.rows.pauses import Compacting

ROWS: Sequence[Row] = (
    Cycle(),
    Single(),
    Replicated(),
    Apart(),
    Across(),
    Delivery(),
    Memory(),
    Growth(),
    Compacting(),
    Burst(),
    Everysec(),
    Always(),
)
