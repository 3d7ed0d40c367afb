"""What to do about an error reply, by its prefix word."""

from __future__ import annotations

from collections.abc import Sequence

from disqueue.cli.connection import DEFAULT_PORT, ConnectionFailed, Target
from disqueue.cli.help import nearest_command, usage_of
from disqueue.cli.reply import ErrorReply

_HINTS = {
    "NOAUTH": "give the password with -a, or in DISQUEUE_AUTH",
    "DENIED": "set a password at the server (CONFIG SET requirepass, from its own machine), then give it here with -a",
    "WRONGPASS": "check -a or DISQUEUE_AUTH",
    "NOREPL": "ask for fewer copies (REPLICATE), bring more nodes up, or look with 'disqueue cluster status'",
    "LEAVING": "use another node; HELLO lists them, the lowest priority first",
    "MAXLEN": "wait until consumers catch up, or give a larger MAXLEN",
    "PAUSED": "PAUSE <queue> none opens the queue again",
    "OOM": "let consumers acknowledge jobs, or raise maxmemory (CONFIG SET maxmemory 2gb)",
    "LOADING": "the server reads its journal; try again in a moment (INFO persistence tells how far it is)",
    "MISCONF": "make the journal's disk writable or free some space; the server goes on by itself then",
    "BADID": "a job id is what ADDJOB or GETJOB gave: D-, 38 more characters",
    "NOJOB": "the job was acknowledged, deleted or has expired, or it lives on another node",
}
_CALL_FAULTS = ("wrong number of arguments", "syntax error")


def hint(error: ErrorReply, words: Sequence[bytes] = ()) -> str:
    """A hint for the error that a command got, or an empty string."""
    if error.prefix in _HINTS:
        return _HINTS[error.prefix]
    name = words[0].decode("utf-8", "replace") if words else ""
    if "unknown command" in error.text:
        near = nearest_command(name)
        return (f"did you mean {near}? " if near else "") + "'disqueue cli help' tells what there is"
    if any(text in error.text for text in _CALL_FAULTS) and (usage := usage_of(name)):
        return f"the command is {usage}"
    return ""


def explain_error(error: ErrorReply, words: Sequence[bytes] = ()) -> str:
    advice = hint(error, words)
    return f"(error) {error.text}" + (f"\n  hint: {advice}" if advice else "")


def explain_connection(error: ConnectionFailed, target: Target) -> str:
    if "can't connect" not in str(error):
        return str(error)
    if target.socket_path:
        advice = "check that a server with 'unixsocket' runs, and the path given with -s"
    else:
        start = "disqueue server" if target.port == DEFAULT_PORT else f"disqueue server --port {target.port}"
        advice = f"start a server with '{start}', or name another one with -h HOST -p PORT or DISQUEUE_URL"
    return f"{error}\n  hint: {advice}"
