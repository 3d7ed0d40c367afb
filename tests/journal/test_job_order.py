"""Jobs in the order in which a journal tells of them: what is taken out is gone, and gone jobs never outnumber the others."""

from __future__ import annotations

from random import Random

import pytest

from disqueue.core.job import Job, new_job
from disqueue.journal.job_order import BLOCK_JOBS, JobOrder


def job(number: int) -> Job:
    return new_job(b"D-01234567-%024d-05a0" % number, None, b"", number)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_hold_what_was_added_and_not_removed_in_order(seed: int) -> None:
    random = Random(seed)
    order = JobOrder()
    model: list[Job] = []
    for number in range(3 * BLOCK_JOBS):
        if model and random.random() < 0.1 * seed:
            order.remove(model.pop(random.randrange(len(model))))
        else:
            model.append(job(number))
            order.add(model[-1])
    assert sum(map(len, order.blocks)) <= 2 * len(model)
    taken = [order.take_block(number) for number in range(len(order.blocks))]
    assert max(map(len, taken)) <= BLOCK_JOBS
    assert model == [one for block in taken for one in block]
    assert {one.wake_ms for one in model} == {0}
    assert not any(order.blocks)
