"""Replies from a writer straight into a socket: the usual one fits, and no bytes object is made of it.

The compiled twin is `sending.pyx`.
"""

from __future__ import annotations

import os

from disqueue.wire.resp import ReplyWriter


def send_now(writer: ReplyWriter, descriptor: int) -> int:
    """Send what a socket takes without waiting, and return how many bytes that is; the rest stays in the writer.

    An error counts as nothing sent: whoever sends the rest in the usual way meets it again.
    """
    data = writer.take()
    try:
        sent = os.write(descriptor, data)
    except OSError:
        sent = 0
    if sent < len(data):
        writer.raw(data[sent:])
    return sent
