"""What can go wrong: one class for each error prefix of the server, all under `DisqueueError`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class DisqueueError(Exception):
    """Base of everything that this client raises about servers and jobs."""


class ReplyError(DisqueueError):
    """The server answered with an error; `code` is its first word, `text` the rest."""

    code: ClassVar[str] = ""

    def __init__(self, text: str, code: str = "") -> None:
        self.text = text
        self.reply_code = code or self.code
        super().__init__(f"{self.reply_code} {text}".strip())


class CommandError(ReplyError):
    """The command itself was refused: unknown, wrong arguments, not possible now."""

    code = "ERR"


class BadJobIdError(ReplyError):
    """What was given as a job id is none."""

    code = "BADID"


class NotReplicatedError(ReplyError):
    """The job could not be copied to as many nodes as asked for, and was not added."""

    code = "NOREPL"


class QueueFullError(ReplyError):
    """The queue already holds `maxlen` jobs; the job was not added."""

    code = "MAXLEN"


class QueuePausedError(ReplyError):
    """The queue takes no jobs at present; the job was not added."""

    code = "PAUSED"


class NodeLeavingError(ReplyError):
    """The node is leaving the cluster, and there was no other to go to."""

    code = "LEAVING"


class UnknownJobError(ReplyError):
    """The server knows no such job: acknowledged, deleted, expired, or never there."""

    code = "NOJOB"


class TooLateError(ReplyError):
    """More than half of the job's time to live is over: its next delivery can't be postponed again."""

    code = "TOOLATE"


class AuthenticationError(ReplyError):
    """A password is needed, or the one given is wrong."""

    code = "NOAUTH"


class PermissionDeniedError(ReplyError):
    """This user may not run this command."""

    code = "NOPERM"


class OutOfMemoryError(ReplyError):
    """The node holds as much as it may; the job was not added."""

    code = "OOM"


class JournalError(ReplyError):
    """The node can't write its journal, and takes no jobs until it can."""

    code = "MISCONF"


class LoadingError(ReplyError):
    """The node is still reading its journal, and no other was ready in time."""

    code = "LOADING"


class UnsupportedProtocolError(ReplyError):
    """The server does not speak the version of RESP that was asked for."""

    code = "NOPROTO"


class NoNodeError(DisqueueError):
    """No node could be reached in time; `reasons` says why, by node."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self.reasons = reasons
        detail = "; ".join(f"{node}: {reason}" for node, reason in reasons.items()) or "no nodes are known"
        super().__init__(f"no node could be reached ({detail})")


class UnknownOutcomeError(DisqueueError):
    """The request was sent, but the connection broke before the reply: it may have been carried out or not."""


class MalformedReplyError(DisqueueError):
    """A reply that does not have the form of its command: the other side is perhaps no node of Disqueue."""


class StoppedError(DisqueueError):
    """The wait was ended by a stop before a node could be reached."""


class ClientClosedError(DisqueueError):
    """The client was closed and can't be used any more."""


class BatchError(DisqueueError):
    """Some jobs of a batch were not added.

    `results` has one entry a job, in order: the id, or the error.
    """

    def __init__(self, results: Sequence[str | DisqueueError]) -> None:
        self.results = list(results)
        errors = [result for result in self.results if isinstance(result, DisqueueError)]
        super().__init__(f"{len(errors)} of {len(self.results)} jobs were not added; the first: {errors[0]}")


BY_CODE: dict[str, type[ReplyError]] = {
    kind.code: kind
    for kind in (
        CommandError,
        BadJobIdError,
        NotReplicatedError,
        QueueFullError,
        QueuePausedError,
        NodeLeavingError,
        UnknownJobError,
        TooLateError,
        AuthenticationError,
        PermissionDeniedError,
        OutOfMemoryError,
        JournalError,
        LoadingError,
        UnsupportedProtocolError,
    )
}
BY_CODE["WRONGPASS"] = AuthenticationError

# These come with the general prefix.
AUTHENTICATION_TEXTS = ("invalid password", "Client sent AUTH, but no password is set", "AUTH <password> called")


def error_from_reply(line: str) -> ReplyError:
    """The exception for an error reply, given whole, with its prefix."""
    code, _, text = line.partition(" ")
    if not code.isupper():
        return CommandError(line, code="")
    if code == "ERR" and text.startswith(AUTHENTICATION_TEXTS):
        return AuthenticationError(text, code)
    return BY_CODE.get(code, ReplyError)(text, code)
