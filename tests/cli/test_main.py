"""`disqueue …` itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from disqueue import __version__
from disqueue.cli import main as main_module
from disqueue.cli.main import SUBCOMMANDS, Subcommand, available_subcommands, main
from tests.cli.conftest import Run


def test_version_tells_the_form(disqueue: Run) -> None:
    done = disqueue("--version", DISQUEUE_PURE="1")
    assert done.returncode == 0
    assert done.stdout.decode().startswith(f"disqueue {__version__}, plain (DISQUEUE_PURE is set)")


def test_help_lists_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in available_subcommands())


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().out


def test_an_unknown_command_names_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sevrer"])
    assert ended.value.code == 2
    assert "cli" in capsys.readouterr().err


def test_only_what_is_installed_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Subcommand("absent", "disqueue.cli.no_such_module", "")
    monkeypatch.setattr(main_module, "SUBCOMMANDS", (*SUBCOMMANDS, absent))
    offered = available_subcommands()
    assert {"cli", "demo", "cluster"} <= set(offered)
    assert "absent" not in offered


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    """The server starts through this module: it must not pay for the command line's libraries."""
    heavy = ("rich", "prompt_toolkit", "redis", "asyncio")
    code = f"import sys, disqueue.cli.main as m; m.find_subcommand('server'); print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_a_reader_that_goes_away_is_no_fault(disqueue: Run) -> None:
    code = "import sys; from disqueue.cli.main import main; sys.exit(main(['cli', '--help']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert errors == b""
