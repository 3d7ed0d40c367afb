"""Job ids: `D-NNNNNNNN-RRRRRRRRRRRRRRRRRRRRRRRR-TTTT`, 40 bytes.

N: the first 8 digits of the id of the node that made the job. R: 144 random bits in base64. T: the TTL in minutes as 4 hex
digits, odd for at-least-once jobs and even for at-most-once ones, so that a node that does not know a job can tell
whether its acknowledgement has to be spread, and for how long. The compiled twin is `ids.pyx`.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable

ID_BYTES = 40
RANDOM_BYTES = 18
RANDOM_TEXT_BYTES = 24
BLOCK_IDS = 256
"""Ids whose random part is drawn at once: one system call for 256 jobs, 6 KiB kept."""
BLOCK_BYTES = RANDOM_BYTES * BLOCK_IDS
MAX_TTL_MINUTES = 0xFFFF
DASH = 45
RANDOM_START = 11


class JobIds:
    """Makes job ids for one node. `entropy(n)` returns n random bytes."""

    def __init__(self, node_id: bytes, entropy: Callable[[int], bytes]) -> None:
        self.prefix = b"D-" + node_id[:8] + b"-"
        if len(self.prefix) != RANDOM_START:
            raise ValueError(f"a node id has 40 characters, not {len(node_id)}")
        self.entropy = entropy
        self.block = b""
        self.offset = 0

    def make(self, ttl_s: int, retry_s: int) -> bytes:
        """Return a new id for a job that lives `ttl_s` seconds."""
        offset = self.offset
        if offset + RANDOM_TEXT_BYTES > len(self.block):
            drawn = self.entropy(BLOCK_BYTES)
            if len(drawn) != BLOCK_BYTES:
                raise ValueError(f"entropy must give the {BLOCK_BYTES} bytes that it is asked for, not {len(drawn)}")
            self.block = b2a_base64(drawn, newline=False)
            offset = 0
        self.offset = offset + RANDOM_TEXT_BYTES
        random_text = self.block[offset : offset + RANDOM_TEXT_BYTES]
        return b"%b%b-%04x" % (self.prefix, random_text, ttl_field(ttl_s, retry_s))


def ttl_field(ttl_s: int, retry_s: int) -> int:
    """Return the TTL field of an id: minutes, odd when the job is delivered at least once."""
    minutes = min(ttl_s // 60, MAX_TTL_MINUTES)
    return minutes | 1 if retry_s > 0 else minutes & ~1


def is_valid_id(job_id: bytes) -> bool:
    """Tell whether the bytes have the shape of a job id."""
    return len(job_id) == 40 and job_id[0] == 68 and job_id[1] == DASH and job_id[10] == DASH and job_id[35] == DASH


def id_ttl_minutes(job_id: bytes) -> int:
    """Return the TTL field of a valid id in minutes; a digit that is not hexadecimal counts as 0."""
    minutes = 0
    for digit in job_id[36:40].lower():
        value = b"0123456789abcdef".find(digit)
        minutes = minutes * 16 + max(value, 0)
    return minutes


def is_at_least_once(job_id: bytes) -> bool:
    """Tell from its id whether a job comes back until it is acknowledged."""
    return id_ttl_minutes(job_id) & 1 == 1
