"""redis-py's connections, set up for Disqueue. Both clients take their pools from here."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import redis
from redis import _parsers
from redis.exceptions import AuthenticationWrongNumberOfArgsError
from redis.utils import HIREDIS_AVAILABLE

from disqueue import __version__
from disqueue.client.endpoints import Endpoint, Settings
from disqueue.client.errors import ReplyError, error_from_reply

# redis-py closes the connection on errors that it has connection classes for (LOADING, NOAUTH); here they are
# replies like all others. Three stay: redis-py's handshake wants them, or would drop them and go on.
HANDSHAKE_ERRORS: dict[str, Any] = {
    "DENIED": redis.ConnectionError,  # protected mode; the server closes the connection
    "ERR": {
        "max number of clients reached": redis.ConnectionError,
        "wrong number of arguments for 'auth' command": AuthenticationWrongNumberOfArgsError,
    },
}


def _plain(parser: type) -> type:
    """A parser of redis-py, with the server's errors as plain replies."""
    return type(parser.__name__, (parser,), {"EXCEPTION_CLASSES": HANDSHAKE_ERRORS})


# The parsers in Python are for one protocol each, and redis-py changes only its own for one that fits; hiredis, where it
# is installed, reads both.
PYTHON_PARSERS = {2: _plain(_parsers._RESP2Parser), 3: _plain(_parsers._RESP3Parser)}
ASYNC_PYTHON_PARSERS = {2: _plain(_parsers._AsyncRESP2Parser), 3: _plain(_parsers._AsyncRESP3Parser)}
PARSERS, ASYNC_PARSERS = PYTHON_PARSERS, ASYNC_PYTHON_PARSERS
if HIREDIS_AVAILABLE:
    PARSERS = dict.fromkeys((2, 3), _plain(_parsers._HiredisParser))
    ASYNC_PARSERS = dict.fromkeys((2, 3), _plain(_parsers._AsyncHiredisParser))


def version_arguments(kind: type) -> dict[str, Any]:
    """How the library is named to the server, and maintenance notifications switched off, in this version of redis-py.

    `kind`: the class of the connections.
    """
    known = {name for base in kind.__mro__ for name in inspect.signature(vars(base).get("__init__", object)).parameters}
    arguments: dict[str, Any] = {}
    if "driver_info" in known:
        arguments["driver_info"] = redis.DriverInfo(name="disqueue", lib_version=__version__)
    else:
        arguments |= {"lib_name": "disqueue", "lib_version": __version__}
    if "maint_notifications_config" in known:
        maintenance = importlib.import_module("redis.maint_notifications")
        arguments["maint_notifications_config"] = maintenance.MaintNotificationsConfig(enabled=False)
    return arguments


def connection_arguments(kind: type, endpoint: Endpoint, settings: Settings) -> dict[str, Any]:
    """What every connection to a node is made with, sync and async."""
    arguments: dict[str, Any] = {
        "username": settings.username,
        "password": settings.password,
        "protocol": settings.protocol,
        "socket_timeout": settings.connect_timeout,  # of the handshake; each exchange sets its own
        "socket_connect_timeout": settings.connect_timeout,
        "client_name": settings.client_name,
    }
    if endpoint.path:
        arguments["path"] = endpoint.path
    else:
        arguments |= {"host": endpoint.host, "port": endpoint.port}
    return arguments | version_arguments(kind) | dict(settings.connection_options)


def reply_error(error: redis.RedisError) -> ReplyError:
    """redis-py's exception for an error reply as ours; it takes the prefix off where it knows it."""
    code = getattr(error, "status_code", None)
    return error_from_reply(f"{code} {error}" if code else str(error))


def reason(error: BaseException) -> str:
    """One line on why a connection failed."""
    return str(error) or type(error).__name__
