"""Where Disqueue behaves otherwise than Disque, on purpose: the one table for the tests and for docs/differences.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One deviation: what Disque does, what Disqueue does, and why; `group` is the heading in the document."""

    group: str
    disque: str
    ours: str
    why: str


DELIVERY = "Delivery"
QUEUES = "Queues and scans"
NUMBERS = "Numbers and limits"
PROTOCOL = "Protocol and connections"
CLUSTER = "Clusters"
SERVER = "Server and configuration"

DIFFERENCES: dict[str, Difference] = {
    "lease-from-delivery": Difference(
        DELIVERY,
        "RETRY runs from the moment a job is queued.",
        "RETRY runs from the moment a job is handed to a worker.",
        "A job that has waited in the queue would be given to a second worker while the first still has most of its time.",
    ),
    "jitter-lengthens": Difference(
        DELIVERY,
        "RETRY varies by a quarter of a second both ways.",
        "RETRY only ever gets longer, by at most half a second.",
        "A worker may rely on the whole time it was promised.",
    ),
    "ttl-exact": Difference(
        DELIVERY,
        "TTL ends up to a second early or late, and a job may be delivered after it.",
        "TTL is kept in milliseconds, never ends early, and is checked at delivery.",
        "A job with a TTL of one second lived half of it.",
    ),
    "nack-goes-behind": Difference(
        DELIVERY,
        "A NACKed job goes back to the head of its queue.",
        "A NACKed job goes behind what is queued at that moment.",
        "One job that always fails would starve all the others.",
    ),
    "undelivered-at-most-once-not-stranded": Difference(
        DELIVERY,
        "DEQUEUE or WORKING on a queued job with RETRY 0 makes it undeliverable.",
        "It stays deliverable: ENQUEUE queues it. WORKING answers 0 and leaves it in its queue.",
        "It has not been delivered yet, so queueing it again breaks no promise.",
    ),
    "working-only-postpones": Difference(
        DELIVERY,
        "WORKING on a delayed job makes it due after its RETRY, before its DELAY has passed.",
        "WORKING never brings a job forward.",
        "A job must not be delivered before its DELAY unless ENQUEUE or NACK ask for it.",
    ),
    "delivered-at-most-once-forgotten": Difference(
        DELIVERY,
        "A delivered job with RETRY 0 is kept until its TTL ends.",
        "It is kept for a short time for SHOW, then forgotten; it is the first to go when memory is short.",
        "Fire-and-forget jobs filled the memory for a day.",
    ),
    "input-pause-holds-everywhere": Difference(
        DELIVERY,
        "ENQUEUE, NACK and delayed jobs with RETRY 0 get into a queue that is paused in input.",
        "Nothing gets in: NACK postpones the job by its RETRY, ENQUEUE answers 0, delayed jobs wait.",
        "A paused queue is paused.",
    ),
    "getjob-without-reply": Difference(
        DELIVERY,
        "GETJOB under CLIENT REPLY OFF or SKIP takes jobs and throws them away.",
        "Such a GETJOB takes no job.",
        "Jobs must not vanish into a reply that is never sent.",
    ),
    "count-for-blocked": Difference(
        DELIVERY,
        "A blocked GETJOB returns one job, whatever its COUNT.",
        "It returns up to COUNT of the jobs that are there when it is served.",
        "That is what COUNT says; jobs that arrive together cost one reply.",
    ),
    "addjob-default-replicate": Difference(
        DELIVERY,
        "The default of REPLICATE counts nodes that are known to be down.",
        "The default is min(3, reachable nodes including this one); an explicit REPLICATE stays strict.",
        "With one of three nodes down a plain ADDJOB failed.",
    ),
    "polling-makes-no-queue": Difference(
        QUEUES,
        "GETJOB on an unknown name makes a queue.",
        "GETJOB on an unknown name only waits.",
        "Polling filled the table of queues.",
    ),
    "qstat-counts-apart": Difference(
        QUEUES,
        "QSTAT has ten fields; jobs-in counts requeues too.",
        "The ten fields are the same; after them come added, requeued, delivered and others (see protocol.md).",
        "Requeued jobs looked like lost ones.",
    ),
    "qpeek-offset": Difference(
        QUEUES,
        "QPEEK shows only the ends of a queue.",
        "QPEEK has OFFSET.",
        "Paging through a long queue.",
    ),
    "jscan-several-queues": Difference(
        QUEUES,
        "The last QUEUE of JSCAN counts.",
        "Several QUEUE are ORed, as several STATE are.",
        "Scanning a group of queues in one pass.",
    ),
    "jscan-delayed": Difference(
        QUEUES,
        "A delayed job is one of many `active` ones.",
        "JSCAN STATE delayed finds jobs whose DELAY has not passed; SHOW still says `active`.",
        "Delayed jobs could not be seen.",
    ),
    "strict-numbers": Difference(
        NUMBERS,
        'Numbers may have a plus sign, leading zeros, bytes after a NUL, and "" is 0.',
        "A number is an optional minus and digits without leading zeros; anything else is refused with the usual error.",
        "A mistake should not become a value.",
    ),
    "ranges": Difference(
        NUMBERS,
        "TTL, RETRY and DELAY are cut to 32 bits.",
        "Values out of range are refused with an error that says the limit.",
        "A TTL of 2^32 seconds expired at once, a RETRY of 2^32 became at-most-once.",
    ),
    "long-timeouts": Difference(
        NUMBERS,
        "A huge timeout overflows and fires at once.",
        "A huge timeout is as good as none.",
        "It is what was asked.",
    ),
    "maxmemory-zero": Difference(
        NUMBERS,
        "`maxmemory 0` means that memory is full.",
        "`maxmemory 0` means no limit.",
        "As in Redis.",
    ),
    "alone-above-three-quarters": Difference(
        NUMBERS,
        "Above 75 % of maxmemory a node without others to reach refuses jobs with NOREPL.",
        "It takes jobs up to 95 %; only when others can be reached do new jobs go to them above 75 %.",
        "A quarter of the memory of a single node could not be used, and dropping what may be dropped did not help.",
    ),
    "consumers-work-without-memory": Difference(
        NUMBERS,
        "NACK and ENQUEUE are refused with OOM above 95 % of maxmemory, like ADDJOB.",
        "Only ADDJOB is refused.",
        "They need no memory, and help consumers to get rid of jobs.",
    ),
    "size-limits": Difference(
        NUMBERS,
        "A job may have 512 MiB, a queue's name too, and the name may be empty.",
        "max-job-size and max-queue-name-bytes limit them, with an error that names the limit; an empty name is refused.",
        "One huge job or name hurts every node.",
    ),
    "inline-requests": Difference(
        PROTOCOL,
        'Inline: a bare LF swallows the next byte, `""` vanishes, a NUL byte stalls the connection.',
        'A line ends at LF or CRLF, `""` is an empty argument, NUL is a byte like others.',
        "Requests were lost or changed.",
    ),
    "resp3": Difference(
        PROTOCOL,
        "RESP2 only.",
        "RESP3 after HELLO 3, with AUTH and SETNAME; HELLO without arguments stays Disque's.",
        "Redis clients of today open with HELLO 3.",
    ),
    "redis-clients": Difference(
        PROTOCOL,
        "SELECT, ECHO, RESET, CLIENT ID, CLIENT SETINFO, COMMAND DOCS and their like are errors.",
        "They answer as Redis clients need it (SELECT 0 only).",
        "Redis clients connect without errors, redis-cli --pipe works.",
    ),
    "slow-readers-wait": Difference(
        PROTOCOL,
        "Replies that a client does not read pile up, without limit by default.",
        "Commands of a client that does not read its replies wait; its input is taken up to client-query-buffer-limit.",
        "One stuck client would fill the memory.",
    ),
    "strangers-are-limited": Difference(
        PROTOCOL,
        "A client that has not given the password may send as much as any other.",
        "Until AUTH a request has at most 16 arguments of 16 KiB; a larger one closes the connection.",
        "Strangers could fill the memory.",
    ),
    "monitor-twice": Difference(
        PROTOCOL,
        "A second MONITOR on a connection has no reply.",
        "It answers OK.",
        "Each request has exactly one reply.",
    ),
    "passwords-hidden": Difference(
        SERVER,
        "MONITOR and SLOWLOG show passwords.",
        "AUTH, HELLO and CONFIG SET requirepass are shown without their passwords.",
        "A password is not for other eyes.",
    ),
    "auth-failure-keeps-login": Difference(
        SERVER,
        "A failed AUTH takes an earlier login away.",
        "An earlier login stays.",
        "As in Redis.",
    ),
    "protected-mode": Difference(
        SERVER,
        "Without a password anyone who reaches the port may do anything.",
        "Without a password only loopback and Unix sockets are served, unless protected-mode is no.",
        "A forgotten password should not open the broker to the network.",
    ),
    "info-fields": Difference(
        SERVER,
        "INFO has one figure for all jobs.",
        "Disque's fields come first in each section, then others: jobs by state, evicted and expired ones, maxmemory and more.",
        "Operators saw that memory was used, but not by what.",
    ),
    "configuration": Difference(
        SERVER,
        "Some directives cannot be set or read at run time, or take other words than in the file.",
        "CONFIG SET takes what the file takes; every directive is in CONFIG GET.",
        "One table describes each directive.",
    ),
    "leaving-shutdown": Difference(
        CLUSTER,
        "SHUTDOWN of a leaving node ends it, whatever it still holds.",
        "It is refused while the node holds jobs, and says what holds them; CLUSTER LEAVING no, or a signal, ends it at once.",
        "A node that was meant to leave without loss lost what it had left.",
    ),
    "any-node": Difference(
        CLUSTER,
        "NACK, WORKING, ENQUEUE, DEQUEUE, DELJOB and FASTACK act on the node that is asked only.",
        "A node that does not know a job passes the command to the nodes that may.",
        "A consumer that was connected to another node could not give a job back, or work longer on it.",
    ),
    "delete-everywhere": Difference(
        CLUSTER,
        "DELJOB deletes one copy; the others queue the job again.",
        "DELJOB deletes all copies, those of nodes that are away when they come back.",
        "Deleted jobs were delivered.",
    ),
    "forget-spreads": Difference(
        CLUSTER,
        "CLUSTER FORGET has to be sent to every node within a minute.",
        "One is enough: it spreads, and keeps the node out for a minute.",
        "A dead node stayed in some tables and came back from there.",
    ),
    "served-at-once": Difference(
        CLUSTER,
        "A waiting consumer gets a job of another node after up to some seconds.",
        "It gets it within a round trip.",
        "The other node is told that somebody waits.",
    ),
    "pause-elsewhere": Difference(
        CLUSTER,
        "ADDJOB that fails because the queue is paused on another node answers NOREPL after its timeout.",
        "It answers PAUSED at once.",
        "The producer should know why.",
    ),
}
