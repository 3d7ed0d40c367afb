"""RESP requests and replies: the compiled kernel where it exists, its plain twin where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue._twins import plain_wanted
from disqueue.wire.resp_common import ParserLimits, ProtocolError

if TYPE_CHECKING or plain_wanted():
    from disqueue.wire.resp_plain import ReplyWriter, RequestParser
else:
    try:
        from disqueue.wire.resp_kernel import ReplyWriter, RequestParser
    except ModuleNotFoundError:
        from disqueue.wire.resp_plain import ReplyWriter, RequestParser

__all__ = ["ParserLimits", "ProtocolError", "ReplyWriter", "RequestParser"]
