"""Commands about jobs: arguments in, calls of the node out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.commands.numbers import INVALID, parse_integer
from disqueue.commands.table import Command
from disqueue.core.client import Client
from disqueue.core.forwarding import ACKJOB, DELJOB, DEQUEUE, ENQUEUE, FASTACK, NACK
from disqueue.core.ids import is_valid_id
from disqueue.wire.resp import keep_words

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker
    from disqueue.wire.resp import ReplyWriter

SYNTAX_ERROR = b"ERR syntax error"
BAD_ID = b"BADID Invalid Job ID format."
TIMEOUT_NOT_INTEGER = b"ERR timeout is not an integer or out of range"
TIMEOUT_NEGATIVE = b"ERR timeout is negative"
MAX_SECONDS = 0x7FFFFFFF
"""About 68 years; TTL, RETRY and DELAY above it are refused."""
DEFAULT_TTL_S = 86_400
MAX_DEFAULT_RETRY_S = 300
MAX_TIMEOUT_MS = 1 << 46
LAST_I64 = b"9223372036854775807"

NONE = 0
REPLICATE = 1
TTL = 2
RETRY = 3
DELAY = 4
MAXLEN = 5
ASYNC = 6
TIMEOUT = 7
COUNT = 8
NOHANG = 9
WITHCOUNTERS = 10
FROM = 11

RETRY_WORD, REPLICATE_WORD, FROM_WORD = b"RETRY", b"REPLICATE", b"FROM"
OPTIONS = {
    REPLICATE_WORD: REPLICATE,
    b"TTL": TTL,
    RETRY_WORD: RETRY,
    b"DELAY": DELAY,
    b"MAXLEN": MAXLEN,
    b"ASYNC": ASYNC,
}
GET_OPTIONS = {
    b"TIMEOUT": TIMEOUT,
    b"COUNT": COUNT,
    b"NOHANG": NOHANG,
    b"WITHCOUNTERS": WITHCOUNTERS,
    FROM_WORD: FROM,
}
keep_words((*OPTIONS, *GET_OPTIONS))
LOWEST = {REPLICATE: 1, TTL: 1, RETRY: 0, DELAY: 0, MAXLEN: 1}
HIGHEST = {REPLICATE: 65535, TTL: MAX_SECONDS, RETRY: MAX_SECONDS, DELAY: MAX_SECONDS, MAXLEN: 1 << 62}
OPTION_ERRORS = {
    REPLICATE: b"ERR REPLICATE must be between 1 and 65535",
    TTL: b"ERR TTL must be a number > 0",
    RETRY: b"ERR RETRY time must be a non negative number",
    DELAY: b"ERR DELAY time must be a non negative number",
    MAXLEN: b"ERR MAXLEN must be a positive number",
}
TOO_LONG = b" and not above 2147483647 seconds (68 years)"
RETRY_0_COPIES = b"ERR With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
DELAY_ABOVE_TTL = b"ERR The specified DELAY is greater than TTL. Job refused since would never be delivered"


class AddOptions:
    """The options of one ADDJOB; -1: not given. Made by `_no_options`: a call of the class costs more."""

    def clear(self) -> None:
        """Forget all options."""
        self.replicate = -1
        self.ttl_s = -1
        self.retry_s = -1
        self.delay_s = 0
        self.maxlen = 0
        self.asynchronous = False


def _no_options() -> AddOptions:
    options = AddOptions.__new__(AddOptions)
    options.clear()
    return options


def addjob(broker: Broker, client: Client, args: list[bytes]) -> None:
    """ADDJOB queue job timeout [options]"""
    node = broker.node
    error = _check_sizes(node.settings.max_queue_name_bytes, node.settings.max_job_bytes, args)
    options = _no_options()
    if error is None and len(args) > 4:
        error = _parse_options(args, options)
    timeout_ms = _timeout(args[3])
    if error is None and timeout_ms < 0:
        error = _error_of_timeout(timeout_ms)
    if error is not None:
        client.reply.error(error)
        return
    ttl_s = options.ttl_s
    if ttl_s < 0:
        ttl_s = DEFAULT_TTL_S
    retry_s = options.retry_s
    if retry_s == 0 and options.replicate > 1:
        client.reply.error(RETRY_0_COPIES)
        return
    if options.delay_s >= ttl_s:
        client.reply.error(DELAY_ABOVE_TTL)
        return
    if retry_s < 0:
        retry_s = _default_retry(ttl_s)
    replicate = options.replicate
    if replicate < 0:
        replicate = 0
    node.add_job(
        client, args[1], args[2], timeout_ms, replicate, ttl_s, retry_s, options.delay_s, options.maxlen, options.asynchronous
    )


def _default_retry(ttl_s: int) -> int:
    retry_s = ttl_s // 10
    if retry_s > MAX_DEFAULT_RETRY_S:
        return MAX_DEFAULT_RETRY_S
    if retry_s == 0:
        return 1
    return retry_s


def _check_sizes(max_name_bytes: int, max_job_bytes: int, args: list[bytes]) -> bytes | None:
    name = args[1]
    body = args[2]
    if len(name) == 0:
        return b"ERR the queue name is empty; give the queue a name"
    if len(name) > max_name_bytes:
        return b"ERR the queue name has %d bytes, the limit is %d (max-queue-name-bytes)" % (len(name), max_name_bytes)
    if len(body) > max_job_bytes:
        return b"ERR the job has %d bytes, the limit is %d (max-job-size)" % (len(body), max_job_bytes)
    return None


def _parse_options(args: list[bytes], options: AddOptions) -> bytes | None:
    """Read the options of ADDJOB; return an error, or None."""
    index = 4
    count = len(args)
    while index < count:
        code = _add_option(args[index])
        if code == NONE:
            return SYNTAX_ERROR
        if code == ASYNC:
            options.asynchronous = True
            index += 1
            continue
        index += 1
        if index == count:
            return SYNTAX_ERROR
        value = parse_integer(args[index])
        index += 1
        error = _set_option(options, code, value)
        if error is not None:
            return error
    return None


def _add_option(word: bytes) -> int:
    """Return the option of ADDJOB that a word names, or NONE. The usual ones come as the very words that the parser keeps."""
    if word is RETRY_WORD:
        return RETRY
    if word is REPLICATE_WORD:
        return REPLICATE
    code = OPTIONS.get(word, NONE)
    return code if code != NONE else OPTIONS.get(word.upper(), NONE)


def _get_option(word: bytes) -> int:
    """Return the option of GETJOB that a word names, or NONE."""
    if word is FROM_WORD:
        return FROM
    code = GET_OPTIONS.get(word, NONE)
    return code if code != NONE else GET_OPTIONS.get(word.upper(), NONE)


def _set_option(options: AddOptions, code: int, value: int) -> bytes | None:
    if code == RETRY:
        if value < 0 or value > MAX_SECONDS:
            return _option_error(code, value)
        options.retry_s = value
    elif code == REPLICATE:
        if value < 1 or value > 65535:
            return _option_error(code, value)
        options.replicate = value
    elif code == TTL:
        if value < 1 or value > MAX_SECONDS:
            return _option_error(code, value)
        options.ttl_s = value
    elif code == DELAY:
        if value < 0 or value > MAX_SECONDS:
            return _option_error(code, value)
        options.delay_s = value
    else:
        if value < 1:
            return _option_error(code, value)
        options.maxlen = value
    return None


def _option_error(code: int, value: int) -> bytes:
    error = OPTION_ERRORS[code]
    if value > MAX_SECONDS and code in (TTL, RETRY, DELAY):
        return error + TOO_LONG
    return error


def _error_of_timeout(value: int) -> bytes:
    """Return what is wrong with a timeout below 0."""
    return TIMEOUT_NOT_INTEGER if value == INVALID else TIMEOUT_NEGATIVE


def _timeout(text: bytes) -> int:
    """Return a timeout in ms, cut to what a timer can hold, or INVALID."""
    value = parse_integer(text)
    if value > MAX_TIMEOUT_MS or (value == INVALID and _is_huge(text)):
        return MAX_TIMEOUT_MS
    return value


def _is_huge(text: bytes) -> bool:
    """Tell whether this is a number of 19 digits that fits 64 bits."""
    return len(text) == len(LAST_I64) and text.isdigit() and text[:1] != b"0" and text <= LAST_I64


def getjob(broker: Broker, client: Client, args: list[bytes]) -> None:
    """GETJOB [NOHANG] [TIMEOUT ms] [COUNT n] [WITHCOUNTERS] FROM queue [queue ...]"""
    timeout_ms = 0
    wanted = 1
    nohang = False
    with_counters = False
    index = 1
    count = len(args)
    while index < count:
        code = _get_option(args[index])
        if code == NONE:
            break
        index += 1
        if code == FROM:
            if index == count:
                break
            if _names_valid(broker, client, args, index):
                if index + 1 == count and wanted == 1 and broker.node.get_first(client, args[index], with_counters):
                    return
                broker.node.get_jobs(client, args[index:], wanted, timeout_ms, nohang, with_counters)
            return
        if code == NOHANG:
            nohang = True
        elif code == WITHCOUNTERS:
            with_counters = True
        elif index == count:
            break
        elif code == TIMEOUT:
            timeout_ms = _timeout(args[index])
            if timeout_ms < 0:
                client.reply.error(_error_of_timeout(timeout_ms))
                return
            index += 1
        else:
            wanted = parse_integer(args[index])
            if wanted <= 0:
                client.reply.error(b"ERR COUNT must be a number greater than zero")
                return
            index += 1
    client.reply.error(SYNTAX_ERROR)


def _names_valid(broker: Broker, client: Client, args: list[bytes], first: int) -> bool:
    """Check the queue names from place `first` on; reply with an error when one is none."""
    limit = broker.node.settings.max_queue_name_bytes
    for index in range(first, len(args)):
        length = len(args[index])
        if length == 0 or length > limit:
            client.reply.error(b"ERR a queue name has between 1 and %d bytes (max-queue-name-bytes)" % limit)
            return False
    return True


def _ids_valid(client: Client, args: list[bytes]) -> bool:
    """Check the ids from the second argument on; reply with an error when one is none."""
    for index in range(1, len(args)):
        if not is_valid_id(args[index]):
            client.reply.error(BAD_ID)
            return False
    return True


def _id_command(broker: Broker, client: Client, verb: int, args: list[bytes]) -> None:
    if _ids_valid(client, args):
        broker.node.id_command(client, verb, args, 1)


def ackjob(broker: Broker, client: Client, args: list[bytes]) -> None:
    """ACKJOB id [id ...]"""
    _id_command(broker, client, ACKJOB, args)


def fastack(broker: Broker, client: Client, args: list[bytes]) -> None:
    """FASTACK id [id ...]"""
    _id_command(broker, client, FASTACK, args)


def deljob(broker: Broker, client: Client, args: list[bytes]) -> None:
    """DELJOB id [id ...]"""
    _id_command(broker, client, DELJOB, args)


def nack(broker: Broker, client: Client, args: list[bytes]) -> None:
    """NACK id [id ...]"""
    _id_command(broker, client, NACK, args)


def enqueue(broker: Broker, client: Client, args: list[bytes]) -> None:
    """ENQUEUE id [id ...]"""
    _id_command(broker, client, ENQUEUE, args)


def dequeue(broker: Broker, client: Client, args: list[bytes]) -> None:
    """DEQUEUE id [id ...]"""
    _id_command(broker, client, DEQUEUE, args)


def working(broker: Broker, client: Client, args: list[bytes]) -> None:
    """WORKING id"""
    if _ids_valid(client, args):
        broker.node.working(client, args[1])


def write_fields(reply: ReplyWriter, fields: list[tuple[bytes, object]]) -> None:
    """Write names and values one after the other in a flat array; None as a null bulk, lists as arrays of bulks."""
    reply.array(len(fields) * 2)
    for name, value in fields:
        reply.bulk(name)
        if value is None:
            reply.null_bulk()
        elif isinstance(value, bytes):
            reply.bulk(value)
        elif isinstance(value, int):
            reply.integer(value)
        elif isinstance(value, list):
            reply.bulk_array(value)


def show(broker: Broker, client: Client, args: list[bytes]) -> None:
    """SHOW id"""
    if not _ids_valid(client, args):
        return
    node = broker.node
    job = node.find_job(args[1])
    if job is None:
        client.reply.null_bulk()
    else:
        write_fields(client.reply, node.job_fields(job))


COMMANDS = (
    Command(
        b"addjob",
        -4,
        ("write", "denyoom", "fast"),
        "Add a job to a queue; the reply is its id once the copies are made",
        "jobs",
        "queue job timeout-ms [REPLICATE n] [DELAY s] [RETRY s] [TTL s] [MAXLEN n] [ASYNC]",
        addjob,
    ),
    Command(
        b"getjob",
        -2,
        ("write", "fast"),
        "Get jobs, or wait for one (for ever without TIMEOUT or NOHANG); a job that is not acknowledged comes back",
        "jobs",
        "[NOHANG] [TIMEOUT ms] [COUNT n] [WITHCOUNTERS] FROM queue [queue ...]",
        getjob,
    ),
    Command(
        b"ackjob",
        -1,
        ("write", "fast"),
        "Acknowledge jobs: they are done and never come back",
        "jobs",
        "job-id [job-id ...]",
        ackjob,
    ),
    Command(
        b"fastack",
        -1,
        ("write", "fast"),
        "Acknowledge jobs with a single message to their owners; one that is away may deliver them again",
        "jobs",
        "job-id [job-id ...]",
        fastack,
    ),
    Command(
        b"deljob",
        -1,
        ("write", "fast"),
        "Delete jobs everywhere, whatever their state",
        "jobs",
        "job-id [job-id ...]",
        deljob,
    ),
    Command(
        b"nack",
        -1,
        ("write", "fast"),
        "Give jobs back: they are queued again at once, behind what is queued now",
        "jobs",
        "job-id [job-id ...]",
        nack,
    ),
    Command(
        b"enqueue",
        -1,
        ("write", "fast"),
        "Queue jobs that are not queued, without waiting for their RETRY or DELAY",
        "jobs",
        "job-id [job-id ...]",
        enqueue,
    ),
    Command(
        b"dequeue",
        -1,
        ("write", "fast"),
        "Take jobs out of their queue; they come back after their RETRY",
        "jobs",
        "job-id [job-id ...]",
        dequeue,
    ),
    Command(
        b"working",
        2,
        ("write", "fast"),
        "Ask for more time for a job: its RETRY starts again",
        "jobs",
        "job-id",
        working,
    ),
    Command(
        b"show",
        2,
        ("readonly", "fast"),
        "Show all that this node knows of a job",
        "jobs",
        "job-id",
        show,
    ),
)
