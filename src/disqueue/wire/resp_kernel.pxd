# Only for cimports that still use this name; the module is disqueue.wire.resp.
from disqueue.wire.resp cimport ReplyWriter, RequestParser
