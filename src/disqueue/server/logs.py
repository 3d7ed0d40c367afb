"""Log lines, for people or as JSON, to a file that can be reopened or to standard output.

Loggers are those of the standard library, below "disqueue"; `log_event` is what the core calls.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
import traceback
from collections.abc import Mapping
from typing import TextIO

VERBOSE = 15
NOTICE = 25
LEVELS = {"debug": logging.DEBUG, "verbose": VERBOSE, "notice": NOTICE, "warning": logging.WARNING}
SIGNS = {logging.DEBUG: ".", VERBOSE: "-", logging.INFO: "-", NOTICE: "*", logging.WARNING: "#", logging.ERROR: "#"}
TEXT_MAX = 8192
"""A line is cut here, so that no client can fill the disk with one request."""

logger = logging.getLogger("disqueue")


def _single_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, "fields", {})
    return fields


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return str(value)


class HumanFormatter(logging.Formatter):
    """`pid:P day month time sign text key=value …`, the shape of Disque's logs."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%d %b %H:%M:%S", time.localtime(record.created))
        text = record.getMessage()
        extra = "".join(f" {key}={_single_line(_text(value))}" for key, value in _fields(record).items())
        line = f"{record.process}:P {stamp}.{int(record.msecs):03d} {SIGNS.get(record.levelno, '#')} {_single_line(text)}{extra}"
        return line[:TEXT_MAX] + _trace(record)


class JsonFormatter(logging.Formatter):
    """One object a line: time (Unix seconds), level, pid, event, and the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        names = {number: name for name, number in LEVELS.items()}
        line: dict[str, object] = {
            "time": round(record.created, 3),
            "level": names.get(record.levelno, record.levelname.lower()),
            "pid": record.process,
            "event": record.getMessage()[:TEXT_MAX],
        }
        for key, value in _fields(record).items():
            line[key if key not in line else f"{key}_"] = (
                value if isinstance(value, int | float | bool) else _text(value)[:TEXT_MAX]
            )
        trace = _trace(record)
        if trace:
            line["traceback"] = trace
        return json.dumps(line)


def _trace(record: logging.LogRecord) -> str:
    error = (
        record.exc_info[1]
        if record.exc_info
        else next((v for v in _fields(record).values() if isinstance(v, BaseException)), None)
    )
    return "\n" + "".join(traceback.format_exception(error)).rstrip() if error is not None else ""


def _open(path: str) -> TextIO:
    return open(path, "a", encoding="utf-8", errors="backslashreplace")


class LogFile(logging.StreamHandler[TextIO]):
    """Writes to a file that is reopened on request, or to standard output."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(_open(path) if path else sys.stdout)

    def reopen(self) -> None:
        """Go on in a new file of the same name; when it can't be opened, stay with the old one."""
        if not self.path:
            return
        try:
            stream = _open(self.path)
        except OSError as error:
            log_event("warning", "the log file can't be reopened, the old one stays open", path=self.path, reason=error.strerror)
            return
        old = self.setStream(stream)
        if old is not None:
            old.close()

    def close(self) -> None:
        """End; what can't be written any more is given up."""
        super().close()
        if self.path:
            with contextlib.suppress(OSError):
                self.stream.close()

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk or a closed pipe must not stop the broker, and there is nowhere left to say so."""


def open_log(path: str, level: str, form: str) -> LogFile:
    """Send the log there. Raises OSError when the file can't be opened."""
    handler = LogFile(path)
    handler.setFormatter(JsonFormatter() if form == "json" else HumanFormatter())
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.addHandler(handler)
    logger.propagate = False
    set_level(level)
    return handler


def set_level(level: str) -> None:
    """Log this level and those after it."""
    logger.setLevel(LEVELS[level])


def log_event(level: str, event: str, fields: Mapping[str, object] | None = None, /, **more: object) -> None:
    """Write one line about an event, with the fields that belong to it."""
    number = LEVELS.get(level, logging.WARNING)
    if logger.isEnabledFor(number):
        logger.log(number, "%s", event, extra={"fields": {**(fields or {}), **more}})
