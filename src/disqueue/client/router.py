"""Which node to talk to next. A state machine without I/O: it is told what happened, and asked.

Each node has a back-off after failures, a time during which it is better avoided (it is leaving, or full),
and the priority that HELLO gave it. A `Route` is one user's view of it: the node it stays with while that is good.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from dataclasses import dataclass, field

from disqueue.client.endpoints import Endpoint
from disqueue.client.values import Hello

FIRST_BACKOFF_S = 0.05
MAX_BACKOFF_S = 3.0
AVOID_S = 5.0
# So long after its last failure a node is not trusted: others that work come first, also for the jobs it delivered.
SUSPECT_S = 10.0
HELLO_INTERVAL_S = 30.0
# From this priority on HELLO speaks of a node that fails, has failed or leaves.
BAD_PRIORITY = 10
# A cluster never has that many; what HELLO says beyond is not believed.
MAX_NODES = 1000

# A consumer moves when, of at least this many jobs in at least this time, more than this share came from one other node.
MOVE_JOBS = 100
MOVE_INTERVAL_S = 5.0
MOVE_SHARE = 0.6
# Ids begin with D- and the first eight characters of the node that made them.
NODE_PREFIX = slice(2, 10)


@dataclass(slots=True, eq=False)
class Node:
    """What is known of one node."""

    endpoint: Endpoint
    seed: bool = False
    node_id: str = ""
    priority: int = 1
    failures: int = 0
    failed_at: float = 0.0
    retry_at: float = 0.0
    avoid_until: float = 0.0
    hello_at: float | None = None


@dataclass(slots=True, eq=False)
class Route:
    """The node that one user stays with.

    `pinned`: only the connection decides, not that the node leaves or is full: the jobs in question are there.
    `strict`: no other node will do (cursors of scans).
    """

    node: Node | None = None
    pinned: bool = False
    strict: bool = False
    origins: Counter[str] = field(default_factory=Counter)
    origins_since: float = 0.0


class Router:
    """All nodes that are known, and their health. Safe for threads; never blocks."""

    def __init__(self, seeds: list[Endpoint], *, discover: bool = True, rng: random.Random | None = None) -> None:
        self._nodes = {endpoint: Node(endpoint, seed=True) for endpoint in seeds}
        self._discover = discover
        self._rng = rng or random.Random()
        self._lock = threading.Lock()

    def after_fork(self) -> None:
        """A lock that another thread held at the fork would never be released in the child."""
        self._lock = threading.Lock()

    @property
    def nodes(self) -> list[Node]:
        """A copy of the list of nodes."""
        with self._lock:
            return list(self._nodes.values())

    # -- asking

    def choose(self, route: Route, now: float) -> Node | float:
        """A node to try now, or the seconds until one may be tried."""
        with self._lock:
            node = route.node
            if node is not None and (route.strict or self._good_for(route, node, now)):
                return node
            ready = [node for node in self._nodes.values() if node.retry_at <= now]
            if not ready:
                return max(0.0, min(node.retry_at for node in self._nodes.values()) - now)
            best = min(ready, key=lambda node: self._badness(node, now))
            if not route.pinned:
                self._settle(route, best, now)
            return best

    def _badness(self, node: Node, now: float) -> tuple[bool, int, bool, float]:
        return (node.avoid_until > now, node.priority, self._suspect(node, now), self._rng.random())

    @staticmethod
    def _suspect(node: Node, now: float) -> bool:
        return node.failures > 0 and now < node.failed_at + SUSPECT_S

    def _healthy(self, node: Node, now: float) -> bool:
        return node.retry_at <= now and not self._suspect(node, now)

    def _welcoming(self, node: Node, now: float) -> bool:
        return node.avoid_until <= now and node.priority < BAD_PRIORITY

    def _good_for(self, route: Route, node: Node, now: float) -> bool:
        if node.retry_at > now or self._nodes.get(node.endpoint) is not node:
            return False
        others = [other for other in self._nodes.values() if self._healthy(other, now)]
        # A bad node is still better than none.
        if not self._healthy(node, now) and others:
            return False
        return route.pinned or self._welcoming(node, now) or not any(self._welcoming(other, now) for other in others)

    def others_left(self, tried: set[Endpoint], now: float) -> bool:
        """Whether a node that was not tried yet can be tried now."""
        with self._lock:
            return any(node.endpoint not in tried and node.retry_at <= now for node in self._nodes.values())

    def wants_hello(self, node: Node, now: float) -> bool:
        """Whether the node should be asked who is in the cluster, before anything else."""
        return self._discover and (node.hello_at is None or now - node.hello_at >= HELLO_INTERVAL_S)

    # -- telling

    def failed(self, node: Node, now: float) -> None:
        """The node could not be reached, or broke off: back off, longer each time, never all clients at once."""
        with self._lock:
            node.failures += 1
            node.failed_at = now
            node.hello_at = None
            backoff = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(node.failures - 1, 20))
            node.retry_at = now + backoff * (0.5 + self._rng.random() / 2)

    def succeeded(self, node: Node) -> None:
        """The node answered."""
        node.failures = 0
        node.retry_at = 0.0

    def avoid(self, node: Node, now: float) -> None:
        """The node said that it is leaving, or full: others first, for a while."""
        with self._lock:
            node.avoid_until = now + AVOID_S * (0.5 + self._rng.random() / 2)
            node.hello_at = None

    def heard(self, node: Node, hello: Hello, now: float) -> None:
        """The node told of its cluster: learn new nodes, forget those that are gone, note priorities."""
        with self._lock:
            node.hello_at = now
            node.node_id = hello.node_id
            by_id = {other.node_id: other for other in self._nodes.values() if other.node_id}
            by_id[hello.node_id] = node
            listed = set()
            for entry in hello.nodes[:MAX_NODES]:
                listed.add(entry.id)
                known = by_id.get(entry.id)
                endpoint = Endpoint(entry.host, entry.port)
                if known is None and entry.host and entry.port:
                    known = self._nodes.setdefault(endpoint, Node(endpoint))
                    known.node_id = entry.id
                elif known is not None and known.failures and entry.host and known.endpoint != endpoint:
                    # It moved to another address, or the one we had never worked from here.
                    self._nodes.setdefault(endpoint, Node(endpoint)).node_id = entry.id
                for other in self._nodes.values():
                    if other.node_id == entry.id:
                        other.priority = entry.priority
            for other in list(self._nodes.values()):
                if other.node_id not in listed and other is not node and not other.seed:
                    del self._nodes[other.endpoint]

    # -- moving to where the jobs come from

    def note_jobs(self, route: Route, ids: list[str]) -> None:
        """Jobs with these ids came by this route."""
        route.origins.update(job_id[NODE_PREFIX] for job_id in ids)

    def move(self, route: Route, now: float) -> bool:
        """Settle at the node where most of the route's jobs were made, if that is another one and healthy."""
        total = route.origins.total()
        if total < MOVE_JOBS or now - route.origins_since < MOVE_INTERVAL_S:
            return False
        with self._lock:
            prefix, jobs = route.origins.most_common(1)[0]
            target = next((node for node in self._nodes.values() if node.node_id[:8] == prefix), None)
            route.origins.clear()
            route.origins_since = now
            if target is None or target is route.node or jobs <= total * MOVE_SHARE:
                return False
            if target.retry_at > now or target.avoid_until > now or target.priority >= BAD_PRIORITY:
                return False
            self._settle(route, target, now)
            return True

    def _settle(self, route: Route, node: Node, now: float) -> None:
        route.node = node
        route.origins.clear()
        route.origins_since = now
