from disqueue.core.job cimport Job
from disqueue.wire.resp cimport ReplyWriter

cpdef reply_id(ReplyWriter reply, Job job)
cpdef reply_job(ReplyWriter reply, Job job, bint with_counters)
