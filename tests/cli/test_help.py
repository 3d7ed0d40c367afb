"""Help, completion and hints from a command table."""

from __future__ import annotations

import pytest

from disqueue.cli import help as help_module
from disqueue.cli.help import CommandHelp, groups, help_text, matching_commands, syntax_hint

TABLE = {
    entry.name: entry
    for entry in (
        CommandHelp("ACKJOB", "job-id [job-id ...]", "Acknowledge jobs", "jobs"),
        CommandHelp("ADDJOB", "queue job timeout-ms [REPLICATE n] [ASYNC]", "Add a job", "jobs"),
        CommandHelp("PING", "[text]", "Answer", "connection"),
        CommandHelp("QLEN", "queue", "Length of a queue", "queues"),
    )
}


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(help_module, "command_table", lambda: TABLE)


def test_help_on_a_command() -> None:
    assert help_text("addjob") == "ADDJOB queue job timeout-ms [REPLICATE n] [ASYNC]\n  Add a job\n  group: @jobs"


def test_help_on_a_group() -> None:
    assert help_text("@JOBS") == "ACKJOB  Acknowledge jobs\nADDJOB  Add a job"
    assert groups() == ["connection", "jobs", "queues"]


def test_help_on_nothing_and_on_the_unknown() -> None:
    assert "@connection @jobs @queues" in help_text("")
    assert "no command 'x'" in help_text("x")
    assert help_text("@x") == "no group '@x'; there are @connection @jobs @queues"


def test_completion_ignores_case() -> None:
    assert [entry.name for entry in matching_commands("a")] == ["ACKJOB", "ADDJOB"]
    assert matching_commands("zz") == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("", ""),
        ("ADDJOBS", ""),
        ("addjob", "queue job timeout-ms [REPLICATE n] [ASYNC]"),
        ("addjob ", "queue job timeout-ms [REPLICATE n] [ASYNC]"),
        ("addjob ma", "queue job timeout-ms [REPLICATE n] [ASYNC]"),
        ("addjob mail ", "job timeout-ms [REPLICATE n] [ASYNC]"),
        ("addjob mail x 0 ", "[REPLICATE n] [ASYNC]"),
        ("addjob mail x 0 ASYNC ", "[REPLICATE n] [ASYNC]"),
        ("qlen q ", ""),
    ],
)
def test_hints_show_what_is_still_to_come(line: str, hint: str) -> None:
    assert syntax_hint(line) == hint
