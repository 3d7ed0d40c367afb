# The C side of a job's records.

from disqueue.core.job cimport Job

cpdef void append_whole(bytearray buffer, long long base, Job job, long long wall_offset_ms) except *
cpdef void append_changed(bytearray buffer, long long base, Job job, long long wall_offset_ms) except *
cpdef void append_ended(bytearray buffer, long long base, Job job, long long segment) except *
