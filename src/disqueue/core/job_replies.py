"""What a client is told of a job: its id after ADDJOB, and the job as GETJOB hands it out.

The compiled twin is `job_replies.pyx`: it copies from the job's own memory into the reply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.job import Job

if TYPE_CHECKING:
    from disqueue.core.queue import Queue
    from disqueue.wire.resp import ReplyWriter


def reply_id(reply: ReplyWriter, job: Job) -> None:
    """Write the id of a job that this node has made."""
    reply.status(job.id)


def reply_job(reply: ReplyWriter, job: Job, with_counters: bool) -> None:
    """Write a job that has a queue, as one element of GETJOB's reply."""
    queue: Queue = job.queue
    if with_counters:
        reply.job_with_counters(queue.name, job.id, job.body, job.nacks, job.deliveries)
    else:
        reply.job(queue.name, job.id, job.body)
