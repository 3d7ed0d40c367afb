"""Choosing nodes, on a clock of the test's own."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.client.endpoints import Endpoint
from disqueue.client.router import AVOID_S, HELLO_INTERVAL_S, MAX_BACKOFF_S, SUSPECT_S, Node, Route, Router
from disqueue.client.values import Hello, NodeInfo

A, B, C = (Endpoint("h", port) for port in (1, 2, 3))
ID_A, ID_B, ID_C = (letter * 40 for letter in "abc")


def make_router(*seeds: Endpoint) -> Router:
    return Router(list(seeds), rng=random.Random(1))


def hello(me: str, *nodes: tuple[str, Endpoint, int]) -> Hello:
    return Hello(1, me, tuple(NodeInfo(node_id, endpoint.host, endpoint.port, priority) for node_id, endpoint, priority in nodes))


def choose(router: Router, route: Route, now: float) -> Node:
    node = router.choose(route, now)
    assert isinstance(node, Node)
    return node


def node_at(router: Router, endpoint: Endpoint) -> Node:
    return next(node for node in router.nodes if node.endpoint == endpoint)


def test_a_route_stays_where_it_is() -> None:
    router, route = make_router(A, B, C), Route()
    first = choose(router, route, 0)
    assert all(choose(router, route, now) is first for now in range(100))


def test_new_routes_spread() -> None:
    router = make_router(A, B, C)
    assert {choose(router, Route(), 0).endpoint for _ in range(100)} == {A, B, C}


def test_a_failed_node_is_left_and_waited_for_longer_each_time() -> None:
    router, route = make_router(A), Route()
    node = choose(router, route, 0)
    waits = []
    for _ in range(12):
        router.failed(node, 0)
        wait = router.choose(route, 0)
        assert isinstance(wait, float)
        waits.append(wait)
    assert waits[0] <= 0.05
    assert waits[-1] > MAX_BACKOFF_S / 2 > waits[0]
    assert max(waits) <= MAX_BACKOFF_S
    assert choose(router, route, MAX_BACKOFF_S) is node
    router.succeeded(node)
    router.failed(node, 10)
    assert router.choose(route, 10.051) is node


def test_the_other_node_is_taken_at_once() -> None:
    router, route = make_router(A, B), Route()
    first = choose(router, route, 0)
    router.failed(first, 0)
    assert choose(router, route, 0) is not first


def test_hello_brings_nodes_and_takes_them_away() -> None:
    router = make_router(A)
    node = node_at(router, A)
    assert router.wants_hello(node, 0)
    router.heard(node, hello(ID_A, (ID_A, Endpoint("", 1), 1), (ID_B, B, 1), (ID_C, Endpoint("", 0), 1)), 0)
    assert {known.endpoint for known in router.nodes} == {A, B}
    assert not router.wants_hello(node, HELLO_INTERVAL_S - 1)
    assert router.wants_hello(node, HELLO_INTERVAL_S)
    router.heard(node, hello(ID_A, (ID_A, A, 1), (ID_C, C, 1)), 1)
    assert {known.endpoint for known in router.nodes} == {A, C}


def test_the_same_node_by_another_address_is_one_node() -> None:
    local = Endpoint("localhost", 1)
    router = make_router(local)
    router.heard(node_at(router, local), hello(ID_A, (ID_A, A, 1)), 0)
    assert [node.endpoint for node in router.nodes] == [local]


def test_a_node_that_moved_is_found_at_its_new_address() -> None:
    router = make_router(A, B)
    router.heard(node_at(router, A), hello(ID_A, (ID_A, A, 1), (ID_B, B, 1)), 0)
    router.heard(node_at(router, B), hello(ID_B, (ID_A, A, 1), (ID_B, B, 1)), 0)
    router.failed(node_at(router, B), 1)
    router.heard(node_at(router, A), hello(ID_A, (ID_A, A, 1), (ID_B, C, 1)), 2)
    assert {node.endpoint for node in router.nodes} == {A, B, C}


def test_discovery_can_be_off() -> None:
    router = Router([A], discover=False)
    assert not router.wants_hello(node_at(router, A), 0)


def test_priorities() -> None:
    router, route = make_router(A, B), Route()
    node_a, node_b = node_at(router, A), node_at(router, B)
    for node, node_id in ((node_a, ID_A), (node_b, ID_B)):
        router.heard(node, hello(node_id, (ID_A, A, 5), (ID_B, B, 1)), 0)
    assert choose(router, Route(), 0) is node_b
    route.node = node_a  # 5 is not bad enough to move
    assert choose(router, route, 0) is node_a
    router.heard(node_b, hello(ID_B, (ID_A, A, 100), (ID_B, B, 1)), 0)
    assert choose(router, route, 0) is node_b
    router.failed(node_b, 0)  # a bad node is better than none
    assert choose(router, Route(), 0) is node_a


def test_a_leaving_node_is_avoided_for_a_while() -> None:
    router, route = make_router(A, B), Route()
    first = choose(router, route, 0)
    router.avoid(first, 0)
    second = choose(router, route, 0)
    assert second is not first
    router.avoid(second, 0)
    assert choose(router, Route(), AVOID_S) in (first, second)
    assert choose(router, Route(), 0) in (first, second)


def test_jobs_stay_with_the_node_they_came_from() -> None:
    router = make_router(A, B)
    node = node_at(router, A)
    route = Route(node, pinned=True)
    router.avoid(node, 0)
    assert choose(router, route, 0) is node
    router.failed(node, 0)
    assert choose(router, route, 0).endpoint == B
    assert choose(router, route, SUSPECT_S / 2).endpoint == B
    assert choose(router, route, SUSPECT_S) is node  # back again when it may be there again
    router.failed(node_at(router, B), SUSPECT_S)
    router.failed(node, SUSPECT_S)
    assert choose(router, route, SUSPECT_S + 1) is node  # none is good: then its own


def test_strict_routes_never_change() -> None:
    router = make_router(A, B)
    node = node_at(router, A)
    router.failed(node, 0)
    assert choose(router, Route(node, strict=True), 0) is node


def known_pair() -> tuple[Router, Route]:
    router = make_router(A, B)
    for endpoint, node_id in ((A, ID_A), (B, ID_B)):
        router.heard(node_at(router, endpoint), hello(node_id, (ID_A, A, 1), (ID_B, B, 1)), 0)
    return router, Route(node_at(router, A))


def test_a_consumer_moves_to_where_its_jobs_come_from() -> None:
    router, route = known_pair()
    router.note_jobs(route, [f"D-{ID_B[:8]}-x"] * 99)
    assert not router.move(route, 10)  # too few
    router.note_jobs(route, [f"D-{ID_A[:8]}-x"] * 20)
    assert router.move(route, 10)
    assert route.node is node_at(router, B)


@pytest.mark.parametrize(("foreign", "own"), [(100, 100), (0, 100)])
def test_it_does_not_pay_to_move(foreign: int, own: int) -> None:
    router, route = known_pair()
    router.note_jobs(route, [f"D-{ID_B[:8]}-x"] * foreign + [f"D-{ID_A[:8]}-x"] * own)
    assert not router.move(route, 10)
    assert route.node is node_at(router, A)


def test_no_move_to_a_bad_node() -> None:
    router, route = known_pair()
    router.note_jobs(route, [f"D-{ID_B[:8]}-x"] * 200)
    router.failed(node_at(router, B), 10)
    assert not router.move(route, 10)
    router.note_jobs(route, ["D-unknown0-x"] * 200)
    assert not router.move(route, 20)


@given(
    st.lists(st.tuples(st.sampled_from(["choose", "fail", "succeed", "avoid", "hello", "wait"]), st.integers(0, 2)), max_size=60)
)
def test_there_is_always_a_node_or_a_bounded_wait(steps: list[tuple[str, int]]) -> None:
    router, route, now = make_router(A, B, C), Route(), 0.0
    for action, which in steps:
        node = router.nodes[which % len(router.nodes)]
        match action:
            case "fail":
                router.failed(node, now)
            case "succeed":
                router.succeeded(node)
            case "avoid":
                router.avoid(node, now)
            case "hello":
                listed = [(ID_A, A, 1), (ID_B, B, 10), (ID_C, C, 100)][: which + 1]
                router.heard(node, hello(listed[0][0], *listed), now)
            case "wait":
                now += which
        choice = router.choose(route, now)
        if isinstance(choice, float):
            assert 0 < choice <= MAX_BACKOFF_S
            assert all(known.retry_at > now for known in router.nodes)
        else:
            assert choice.retry_at <= now
    assert {A, B, C} <= {node.endpoint for node in router.nodes}
