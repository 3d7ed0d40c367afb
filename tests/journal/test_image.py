"""What records add up to when some that came before them are lost."""

from __future__ import annotations

from disqueue.core.job import ACTIVE
from disqueue.journal.image import Image
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.wire.journal_format import FRAME_BYTES, JOB, NODES
from disqueue.wire.journal_meta import Nodes, encode_meta
from disqueue.wire.journal_records import append_job

ME, OTHER = b"0" * 40, b"1" * 40
JOB_ID = b"D-01234567-" + b"j" * 24 + b"-05a1"


def test_an_owner_that_no_record_names_is_not_taken_for_another_node() -> None:
    """The record that named it was damaged and given up in a repair. Nodes met since have other slots."""
    table = SegmentTable(ME)
    segment = Segment(1, 0)
    table.add(segment)
    image = Image(table, {ME: 0, OTHER: 5}.__getitem__)
    record = bytearray()
    append_job(record, 0, JOB_ID, ACTIVE, 0, 0, 0, 1, 1, 0b111, 0b100, 1, 2, 3, 0, 5, 3, b"q", b"body")

    def owners() -> tuple[int, int]:
        image.apply(JOB, bytes(record), FRAME_BYTES + 1, len(record), segment)
        job = image.jobs.get(JOB_ID)
        assert job is not None
        return job.owners, job.confirmed

    assert owners() == (0b1, 0)
    payload = encode_meta(Nodes([ME, OTHER]))
    image.apply(NODES, payload, 0, len(payload), segment)
    assert owners() == (0b100001, 0)
