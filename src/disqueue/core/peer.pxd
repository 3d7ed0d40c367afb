from disqueue.core.peer_jobs cimport PeerJobs

cdef class Peer:
    cdef public int slot
    cdef public object bit
    cdef public bytes node_id
    cdef public int state
    cdef public object address
    cdef public int port
    cdef public int bus_port
    cdef public unsigned long long incarnation
    cdef public PeerJobs data
    cdef public bint leaving
    cdef public bint suspected
    cdef public bint failed
    cdef public bint no_address
    cdef public bint reachable
    cdef public object link
    cdef public list incoming
    cdef public object dial
    cdef public bint link_up
    cdef public bint incoming_up
    cdef public long long link_up_ms
    cdef public int version
    cdef public list outbox
    cdef public object open_record
    cdef public object open_type
    cdef public int open_kind
    cdef public list open_items
    cdef public list open_numbers
    cdef public bint dialling
    cdef public long long dialled_ms
    cdef public int dial_attempts
    cdef public long long next_dial_ms
    cdef public tuple dial_target
    cdef public tuple alternate
    cdef public long long takeover_ms
    cdef public int intent
    cdef public bytes introducer
    cdef public bytes expected_id
    cdef public long long expires_ms
    cdef public object failure
    cdef public unsigned long long ping_stamp
    cdef public long long ping_sent_ms
    cdef public long long pong_ms
    cdef public unsigned long long pong_owed
    cdef public long long silent_since_ms
    cdef public double rtt_ms
    cdef public dict reports

    cpdef forget_open(self)
