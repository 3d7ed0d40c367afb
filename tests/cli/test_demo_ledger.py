"""The demo's verdict: every promise that is broken is named."""

from __future__ import annotations

import pytest

from disqueue.cli.demo_ledger import Kind, Ledger, Line

PLAIN = Kind("mail", "", 1, ("RETRY", "30"))
ONCE = Kind("payment", "", 1, ("RETRY", "0", "REPLICATE", "1"))
DELAYED = Kind("invoice", "", 1, ("DELAY", "60"), delay_ms=60_000)
DYING = Kind("thumbnail", "", 1, ("RETRY", "1"), abandon=1)
REFUSING = Kind("parcel", "", 1, (), refuse=1)


def ledger_of(kind: Kind, deliveries: int, *, ack: bool = True, again: bool = False) -> Ledger:
    ledger = Ledger([kind])
    ledger.sent("D-1", kind, 0.0)
    for _ in range(deliveries):
        entry = ledger.delivered("D-1", kind, again=again)
        entry.abandoned, entry.refused = bool(kind.abandon), bool(kind.refuse)
        if ack:
            ledger.acked(entry)
    return ledger


def verdict(ledger: Ledger, *, exact: bool = True) -> list[str]:
    (texts,) = ledger.verdicts(exact=exact).values()
    return texts


def test_kept() -> None:
    ledger = ledger_of(PLAIN, 1)
    assert verdict(ledger) == []
    assert ledger.all_acked()
    assert ledger.line(PLAIN) == Line(sent=1, delivered=1, again=0, acked=1)
    assert verdict(ledger_of(DYING, 2, again=True)) == []
    assert verdict(ledger_of(REFUSING, 2, again=True)) == []


def test_lost_and_not_acknowledged() -> None:
    assert verdict(ledger_of(PLAIN, 0)) == ["1 never delivered", "1 not acknowledged"]
    assert verdict(ledger_of(PLAIN, 1, ack=False)) == ["1 not acknowledged"]
    assert not ledger_of(PLAIN, 1, ack=False).all_acked()


def test_not_sent() -> None:
    ledger = Ledger([PLAIN])
    assert verdict(ledger) == ["1 not sent"]
    assert not ledger.all_acked()


def test_twice() -> None:
    assert verdict(ledger_of(PLAIN, 2)) == ["1 delivered too often"]
    assert verdict(ledger_of(PLAIN, 2), exact=False) == []
    assert verdict(ledger_of(ONCE, 2), exact=False) == ["1 delivered too often"]


def test_early() -> None:
    ledger = Ledger([DELAYED])
    ledger.sent("D-1", DELAYED, ledger.started_s)
    ledger.acked(ledger.delivered("D-1", DELAYED, again=False))
    assert verdict(ledger) == ["1 delivered before time"]


@pytest.mark.parametrize("kind", [DYING, REFUSING])
def test_a_redelivery_that_is_missing_or_does_not_say_so(kind: Kind) -> None:
    assert verdict(ledger_of(kind, 1)) == ["1 not redelivered"]
    assert verdict(ledger_of(kind, 2)) == ["1 redelivered without a counter that says so"]


def test_acts_that_did_not_take_place() -> None:
    for kind, text in ((DYING, "worker that did not die"), (REFUSING, "refusal that did not happen")):
        ledger = Ledger([kind])
        ledger.sent("D-1", kind, 0.0)
        ledger.acked(ledger.delivered("D-1", kind, again=False))
        assert verdict(ledger) == [f"1 {text}"]


def test_a_delivery_may_be_heard_of_before_the_confirmation() -> None:
    ledger = Ledger([PLAIN])
    ledger.acked(ledger.delivered("D-1", PLAIN, again=False))
    ledger.sent("D-1", PLAIN, 0.0)
    assert verdict(ledger) == []
