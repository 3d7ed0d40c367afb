"""Whole runs: they repeat exactly, known seeds stay clean, and a few fresh ones are tried each time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from disqueue.simulation.ledger import Violation
from disqueue.simulation.main import main
from disqueue.simulation.options import draw
from disqueue.simulation.report import failure_lines
from disqueue.simulation.run import Run, run_seed

FOUND = {
    2: "a client that left during ADDJOB stayed counted as blocked",
    3: "an at-most-once job held for a node that died",
    6: "copies of an ASYNC job did not know its delay, and were handed out before it",
    9: "an at-most-once job was taken out of its queue by DEQUEUE, and came back to nobody",
    14: "a leaving node still asked its peers for jobs",
    18: "an acknowledgement during the handover of a leaving node missed the new owner",
    19: "the same, with the copy of a replica",
    21: "ASYNC through a node that keeps no copies: the job was lost with the link",
    24: "a node without its nodes.conf did not wait for owners that it had not met yet",
    31: "nodes that each said HELD because of another one waited for ever; an offered job hung after a lost ACCEPT",
    62: "an at-most-once job evicted in the pass in which it was handed out",
    64: "a FORGET on one node ended an acknowledgement for the others",
    67: "a node queued a job again before the lease that it had given had ended",
    76: "an at-most-once job held for one node and offered by another was kept by neither",
    60025: "whoever kept a copy for a node short of memory did not count that node as an owner: an ack did not reach it",
    20056: "an at-most-once job was held for ever after an answer was lost",
    79: "a leaving node gave its last copy to owners that had lost theirs",
    92: "an order to queue that came late broke a running lease",
    90036: "a leaving node took it that the owner to which it handed a job off knew of all others: an ack missed one",
    100030: "a copy that had asked its owners did not ask one that it heard of after that, and was queued beside it",
    100067: "an owner that had failed while a node left never heard of the node that the job had gone to",
    100219: "a failed ADDJOB told a node, which spread an acknowledgement, to forget it",
    100465: "the copies of a failed ADDJOB did not all know each other: an acknowledgement missed one",
    101087: "a node that was to stay after all still gave up the copies that it had begun to hand over",
    101218: "a node that keeps no copies, and waited for the owners to know each other, queued a job before its delay",
    102430: "a WORKING on another node left two leases that ended at the same time: both queued the job",
    104124: "a node that had acknowledged a job without knowing it took a copy that came late",
    104496: "a node that left said so to an owner that did not know where the job had gone",
    300259: "a node that left, stayed and left again told a delayed copy twice to queue itself later: it did so at once",
    201118: "a node short of memory passed a job on, and the only node that was to keep it lost power: no fault",
    400081: "the same, of a job that was added with ASYNC, and its node stood still meanwhile",
    201486: "a queue was paused while its node stood still, and unpaused by the end of all faults in the same pass",
    108: "refused copies were sent again at once, to all, for ever: a storm",
    2000235: "a job that went through four nodes and waited: the first did not ask the one that knew the last",
    402366: "two owners asked each other at the same time, and both queued the job",
    900390: "two nodes that had left a job told each other its owners without end",
}
"""Seeds that showed a fault of the core, and which."""
FOUND_WITH_JOURNALS = {
    30057: "a journal, and no fault: two nodes queued a job after WORKING",
    30192: "a node that was told to leave and then to stay forgot its copy",
    40088: "a copy that was forgotten while the disk failed is back after a restart: no ack that was given up early",
    40110: "a job that came and went twice while nothing could be written pointed to a segment that is gone",
    40136: "a flipped bit in a record of which three zeros stood in a sector of their own was taken for a cut",
    50256: "after a repair the number of a segment that was given up was used again: new at-most-once jobs were in doubt",
    40203: "a lease that ended before the restart",
    60053: "a node that took back a job that it had left did not know who else had it: an ack missed one",
    200596: "a disk lost what it had been given: the node does not know any more where a job went, and an ack missed it",
    200912: "a node short of memory could not know yet that the one that kept its job had died",
    201704: "a broadcast ended a pause in the pass of the command that had set it",
    201872: "a node that was asked twice to queue a job after its delay queued it at once",
    500166: "a job whose copies were missing was written to the journal, without its end; who had copies died with it",
    731045: "a node that left while an owner was away was stopped: nobody told that owner who had its job",
    740977: "a disk lost the end of a journal, where it stood that an at-most-once job was handed out: it came back",
    750070: "a hole that ended within the first bytes of a record was taken for damage",
    900104: "a held job that changed hands was not written so: after a restart the wrong node was asked",
    1101008: "owners that were asked after one had left did not know of it when it came back: an ack missed it",
    1300476: "a node without its nodes.conf left a job, and did not tell an owner that it met later who has it now",
    1300688: "a flipped bit in the last record was taken for a cut: an at-most-once job came back",
    1600872: "a node that had stood still ended a lease of its own before its time",
    960047: "a node that held an at-most-once job was told that it is over, and the one that had it by then was not",
    2100143: "a node left while its disk was full, and came back with what it had left: it does not know who has it",
    2100649: "after a repair a segment did not name its nodes; the one before was removed, and a job lost its owners",
    2301002: "a node that had left a job acknowledged it, and did not say who else has it, although it knew",
    2500452: "WORKING came in the pass in which the job was handed out again, and was answered before",
    960112: "a segment that replaced what a failed disk had lost did not name its nodes before its first jobs",
}
"""The same with `draw_journaled`."""
FRESH_RUNS = 4


def assert_clean(seed: int, journaled: bool = False) -> None:
    result = run_seed(seed, journaled)
    assert not result.violation, "\n".join(failure_lines(result, 60))


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_found_something(seed: int) -> None:
    assert_clean(seed)


@pytest.mark.parametrize("seed", FOUND_WITH_JOURNALS)
def test_seeds_that_found_something_with_journals(seed: int) -> None:
    assert_clean(seed, journaled=True)


@pytest.mark.parametrize("number", range(FRESH_RUNS))
def test_fresh_seeds(number: int) -> None:
    """New ones each time where `DISQUEUE_FRESH_SEEDS` is set, as in a nightly run; the same ones elsewhere, so that a change is
    judged by what it changes."""
    first = int.from_bytes(os.urandom(4), "big") if os.environ.get("DISQUEUE_FRESH_SEEDS") else 1_000_000
    assert_clean(first + number, journaled=number % 2 == 1)


def test_a_seed_runs_the_same_again() -> None:
    assert run_seed(11).digest == run_seed(11).digest


def test_the_order_of_hashes_does_not_matter() -> None:
    program = "from disqueue.simulation.run import run_seed; print(run_seed(35).digest)"
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "DISQUEUE_PURE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1


def test_plain_and_compiled_modules_run_a_seed_alike() -> None:
    program = "from disqueue.simulation.run import run_seed; print(run_seed(106).digest)"
    environment = {**os.environ, "DISQUEUE_PURE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == run_seed(106).digest


def test_different_seeds_differ() -> None:
    assert run_seed(11).digest != run_seed(12).digest
    assert str(draw(11)) != str(draw(12))


def test_a_violation_names_its_seed_and_shows_the_job() -> None:
    run = Run(draw(4))

    def complain() -> None:
        entry = next(entry for entry in run.checker.ledger.by_mark.values() if entry.id)
        raise Violation("S0 made up", f"{entry} is fine", entry)

    run.cluster.world.after(5000, complain)
    result = run.execute()
    assert result.invariant == "S0 made up"
    lines = failure_lines(result, 60)
    assert lines[0].startswith("seed 4: ")
    assert any("executes ADDJOB" in line for line in lines)
    assert lines[-1] == "again: disqueue simulate --seed 4"


def test_the_command_reports_and_exits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "11"]) == 0
    shown = capsys.readouterr().out
    assert "1 runs, 0 with a violation" in shown
    assert "digest of the run" in shown
    assert main(["--seed", "11", "--journal"]) == 0
    assert "journal always" in capsys.readouterr().out
    assert main(["--first", "11", "--seeds", "2"]) == 0
    assert "2 runs, 0 with a violation" in capsys.readouterr().out


@pytest.mark.parametrize("argument", ["--seeds=0", "--seed=-1", "--jobs=0", "--minutes=x"])
def test_wrong_arguments_are_refused(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([argument])
    assert argument.partition("=")[0] in capsys.readouterr().err
