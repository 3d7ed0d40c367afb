"""The network: hosts, listeners, and connections that behave as TCP does when things go wrong.

Bytes of a connection arrive in order or not at all, cut and joined as it happens. Between two addresses a direction may be
blocked: what was sent waits (TCP sends it again) until it is free or an end gives up. A connection may be reset, at both ends or
so that one end does not hear of it (half-open), also in the middle of a frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from disqueue.simulation.world import World

if TYPE_CHECKING:
    from disqueue.simulation.trace import Trace

RETRY_DIAL_MS = 1000
"""A connection request that nobody answers is sent again after this."""
RETRY_SEND_MS = 200
"""Bytes that waited for a free way are on their way again so long after it is free."""
RESET = "connection reset"
CLOSED = "closed by the other end"
REFUSED = "connection refused"


class Receiver(Protocol):
    """Who hears of an end of a connection. Called in the process that it belongs to."""

    def received(self, data: bytes) -> None: ...
    def lost(self, reason: str) -> None: ...


class Host:
    """An address, what listens there, and how calls get into the process that runs there.

    `post` hands a call to the process; it is None while nothing runs there.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.listeners: dict[int, Callable[[Endpoint], Receiver]] = {}
        self.post: Callable[[Callable[[], None]], None] | None = None
        self.endpoints: dict[Endpoint, None] = {}


class Endpoint:
    """One end of a connection; the transport that the product writes to."""

    def __init__(self, network: Network, host: Host, far: Host) -> None:
        self.network = network
        self.host = host
        self.far = far
        self.other: Endpoint = self
        self.receiver: Receiver | None = None
        self.open = True
        self.waiting: deque[tuple[int, bytes]] = deque()
        self.waiting_bytes = 0
        self.arrival_ms = 0
        self.ending: str = ""
        """What the other end hears after the last byte: set by `close`."""
        self.pump_planned = False
        host.endpoints[self] = None

    # -- the transport

    def write(self, data: bytes) -> None:
        """Send bytes; nothing happens when the connection has gone."""
        if not self.open or self.ending or not data:
            return
        network = self.network
        network.bytes_sent += len(data)
        dice = network.random
        pieces = [data]
        if len(data) > 1 and dice.random() < network.cut_share:
            at = dice.randrange(1, len(data))
            pieces = [data[:at], data[at:]]
        for piece in pieces:
            delay_ms = network.latency_ms(self.host, self.far) + network.sending_ms(self.host, self.far, len(piece))
            self.arrival_ms = max(self.arrival_ms, network.world.now_ms + delay_ms)
            self.waiting.append((self.arrival_ms, piece))
            self.waiting_bytes += len(piece)
        self._plan_pump(self.waiting[0][0])

    def close(self) -> None:
        """Send what was written, then end the connection; this end hears no more."""
        if self.open and not self.ending:
            self.ending = CLOSED
            self.receiver = None
            delay_ms = self.network.latency_ms(self.host, self.far)
            self.arrival_ms = max(self.arrival_ms, self.network.world.now_ms + delay_ms)
            self._plan_pump(self.waiting[0][0] if self.waiting else self.arrival_ms)

    def abort(self) -> None:
        """End the connection and drop what waits; the other end hears of it if the way is free."""
        if self.open:
            self.vanish()
            self.network.send_reset(self)

    def buffered_bytes(self) -> int:
        """Bytes written that have not arrived."""
        return self.waiting_bytes

    # -- the network's side

    def vanish(self) -> None:
        """This end is gone, without a word to anybody."""
        self.open = False
        self.receiver = None
        self.waiting.clear()
        self.waiting_bytes = 0
        self.host.endpoints.pop(self, None)

    def _plan_pump(self, when_ms: int) -> None:
        if not self.pump_planned:
            self.pump_planned = True
            self.network.world.at(when_ms, self.pump)

    def pump(self) -> None:
        """Deliver what has arrived, when the way is free."""
        self.pump_planned = False
        if not self.open:
            return
        network = self.network
        if network.is_blocked(self.host, self.far):
            network.stalled[self] = None
            return
        other = self.other
        if not other.open:  # the host at the other end knows nothing of this connection
            network.send_reset(other)
            self.waiting.clear()
            self.waiting_bytes = 0
            return
        now_ms = network.world.now_ms
        data = b""
        while self.waiting and self.waiting[0][0] <= now_ms:
            piece = self.waiting.popleft()[1]
            self.waiting_bytes -= len(piece)
            data += piece
        if data:
            network.hand_over(other, data)
        if self.waiting:
            self._plan_pump(self.waiting[0][0])
        elif self.ending:
            self._end()

    def _end(self) -> None:
        other, reason = self.other, self.ending
        self.vanish()
        if other.open:
            self.network.tell_lost(other, reason)


class Network:
    """All hosts and connections.

    `cut_share`: how many writes arrive in two pieces. `latency` and `bandwidth` are drawn for each pair by the options.
    """

    def __init__(self, world: World, trace: Trace) -> None:
        self.world = world
        self.trace = trace
        self.random = world.random("network")
        self.hosts: dict[str, Host] = {}
        self.blocked: dict[tuple[str, str], int] = {}
        self.stalled: dict[Endpoint, None] = {}
        self.silent_hosts: dict[str, None] = {}
        """Hosts whose machine is off: they answer nothing, not even a reset."""
        self.slow: dict[tuple[str, str], tuple[int, int]] = {}
        """Ways with so many ms more of delay and at most so many bytes a second (0: any)."""
        self.min_latency_ms = 1
        self.max_latency_ms = 3
        self.cut_share = 0.2
        self.bytes_sent = 0

    def host(self, address: str) -> Host:
        """Return the host at an address, made if need be."""
        host = self.hosts.get(address)
        if host is None:
            host = self.hosts[address] = Host(address)
        return host

    # -- ways

    def latency_ms(self, source: Host, target: Host) -> int:
        """Draw how long something takes from one host to another."""
        extra_ms = self.slow.get((source.address, target.address), (0, 0))[0]
        return extra_ms + self.random.randint(self.min_latency_ms, self.max_latency_ms)

    def sending_ms(self, source: Host, target: Host, size: int) -> int:
        """Return how long a slow way needs for so many bytes."""
        bytes_per_s = self.slow.get((source.address, target.address), (0, 0))[1]
        return size * 1000 // bytes_per_s if bytes_per_s else 0

    def is_blocked(self, source: Host, target: Host) -> bool:
        """Tell whether nothing gets from one host to another."""
        if target.address in self.silent_hosts or source.address in self.silent_hosts:
            return True
        return (source.address, target.address) in self.blocked

    def block(self, source: str, target: str) -> None:
        """Let nothing through from one address to another until `unblock`; blocks of two faults add up."""
        self.blocked[source, target] = self.blocked.get((source, target), 0) + 1

    def unblock(self, source: str, target: str) -> None:
        """End one block of a way."""
        left = self.blocked.get((source, target), 0) - 1
        if left > 0:
            self.blocked[source, target] = left
        else:
            self.blocked.pop((source, target), None)
            self._go_on()

    def heal(self) -> None:
        """All ways are free and quick."""
        self.blocked.clear()
        self.silent_hosts.clear()
        self.slow.clear()
        self._go_on()

    def silence(self, address: str, silent: bool) -> None:
        """Switch the machine of a host off or on."""
        if silent:
            self.silent_hosts[address] = None
        else:
            self.silent_hosts.pop(address, None)
            self._go_on()

    def _go_on(self) -> None:
        for endpoint in [one for one in self.stalled if not self.is_blocked(one.host, one.far)]:
            del self.stalled[endpoint]
            if endpoint.open:
                delay_ms = self.random.randint(1, RETRY_SEND_MS)
                endpoint.pump_planned = True
                self.world.after(delay_ms, endpoint.pump)

    # -- connections

    def dial(
        self,
        source: Host,
        address: str,
        port: int,
        connected: Callable[[Endpoint], None],
        failed: Callable[[str], None],
        given_up: Callable[[], bool],
    ) -> None:
        """Connect; ends in `connected` or `failed` in the process of the source, or never. `given_up`: nobody waits for it."""
        target = self.host(address)
        post = source.post

        def request() -> None:
            if source.post is not post or given_up():
                return
            if self.is_blocked(source, target) or self.is_blocked(target, source):
                self.world.after(RETRY_DIAL_MS, request)
                return
            accept = target.listeners.get(port)
            back_ms = self.latency_ms(target, source)
            if accept is None or target.post is None:
                self.world.after(back_ms, lambda: self._tell(source, post, lambda: failed(REFUSED)))
                return
            near, far = Endpoint(self, source, target), Endpoint(self, target, source)
            near.other, far.other = far, near
            self._tell(target, target.post, lambda: self._accept(far, accept))
            self.world.after(back_ms, lambda: self._tell(source, post, lambda: self._connect(near, connected, failed, given_up)))

        self.world.after(self.latency_ms(source, target), request)

    def _accept(self, endpoint: Endpoint, accept: Callable[[Endpoint], Receiver]) -> None:
        if endpoint.open:
            endpoint.receiver = accept(endpoint)

    def _connect(
        self,
        endpoint: Endpoint,
        connected: Callable[[Endpoint], None],
        failed: Callable[[str], None],
        given_up: Callable[[], bool],
    ) -> None:
        if given_up():
            endpoint.abort()
        elif endpoint.open:
            connected(endpoint)
        else:
            failed(RESET)

    def hand_over(self, endpoint: Endpoint, data: bytes) -> None:
        """Bytes have arrived at an end."""
        self.trace.bytes_arrived(endpoint.far.address, endpoint.host.address, data)

        def receive() -> None:
            if endpoint.open and endpoint.receiver is not None:
                endpoint.receiver.received(data)

        self._tell(endpoint.host, endpoint.host.post, receive)

    def tell_lost(self, endpoint: Endpoint, reason: str) -> None:
        """An end learns that the connection is over."""
        receiver = endpoint.receiver
        endpoint.vanish()
        if receiver is not None:
            self._tell(endpoint.host, endpoint.host.post, lambda: receiver.lost(reason))

    def send_reset(self, source: Endpoint) -> None:
        """The end `source`, which is gone, tells the other one; that gets lost where the way is blocked."""
        other = source.other
        if not other.open or self.is_blocked(source.host, source.far):
            return

        def arrive() -> None:
            if other.open:
                self.tell_lost(other, RESET)

        self.world.after(self.latency_ms(source.host, source.far), arrive)

    def reset(self, endpoint: Endpoint, half: bool) -> None:
        """Break a connection, in the middle of what is on its way; with `half` only `endpoint` hears of it."""
        other = endpoint.other
        for sender in (endpoint, other):
            if sender.open and sender.waiting and not self.is_blocked(sender.host, sender.far):
                piece = sender.waiting[0][1]
                if sender.other.open and len(piece) > 1:
                    self.hand_over(sender.other, piece[: self.random.randrange(1, len(piece))])
            sender.waiting.clear()
            sender.waiting_bytes = 0
        if endpoint.open:
            self.tell_lost(endpoint, RESET)
        if other.open and not half:
            self.tell_lost(other, RESET)

    def hang_up_all(self, host: Host, silently: bool) -> None:
        """The process of a host has died: its kernel resets all connections, or nobody does."""
        for endpoint in list(host.endpoints):
            if silently:
                endpoint.vanish()
            else:
                endpoint.abort()

    def _tell(self, host: Host, post: Callable[[Callable[[], None]], None] | None, call: Callable[[], None]) -> None:
        """Have something done in a process, if it is still the one that it was meant for."""
        if post is not None and host.post is post:
            post(call)
