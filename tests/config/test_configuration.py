"""Sources and their order, paths, CONFIG GET and SET."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from disqueue.config.configuration import Configuration, glob, load
from disqueue.config.help import options_text
from disqueue.config.kinds import Value
from disqueue.config.sources import ConfigError


@pytest.fixture(autouse=True)
def _in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "a.conf") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_later_sources_win() -> None:
    write("# comment\n\nPORT 1000\ntimeout 1\nmaxclients 1\nloglevel debug\n")
    environment = {"DISQUEUE_TIMEOUT": "2", "DISQUEUE_MAXCLIENTS": "2", "DISQUEUE_PURE": "1", "OTHER": "x"}
    configuration = load(["a.conf", "--maxclients", "3"], environment)
    values = configuration.values
    assert (values["port"], values["timeout"] - 1, values["loglevel"], values["timeout"]) == (1000, 1, "debug", 2)  # type: ignore[operator]
    assert values["maxclients"] == 3
    assert configuration.path == os.path.abspath("a.conf")
    assert configuration.remarks == []


def test_an_included_file_is_read_in_place() -> None:
    Path("sub").mkdir()
    write("port 3\n", "sub/c.conf")
    write("port 2\ninclude c.conf\n", "sub/b.conf")
    assert load([write("port 1\ninclude sub/b.conf\ntimeout 9\n")], {}).number("port") == 3


def test_files_that_include_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="include each other"):
        load([write("include a.conf\n")], {})


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = open(write("port 12\n"), "rb")  # noqa: SIM115

    monkeypatch.setattr("sys.stdin", Input)
    configuration = load(["-"], {})
    Input.buffer.close()
    assert (configuration.number("port"), configuration.path) == (12, "")


def test_option_forms() -> None:
    configuration = load(["--port=1", "--bind", "127.0.0.1", "::1", "--slowlog-log-slower-than", "-1", "--requirepass", ""], {})
    assert (
        configuration.number("port"),
        configuration.values["bind"],
        configuration.number("slowlog-log-slower-than"),
    ) == (1, ("127.0.0.1", "::1"), -1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port 1\nprot 2\n", "a.conf, line 2: there is no option 'prot'; did you mean 'port'?"),
        ("port x\n", "a.conf, line 1: port x: .*allowed is a whole number from 0 to 65535"),
        ('port "1\n', "a.conf, line 1: a quote .* is not closed"),
        ("rename-command a\n", "a.conf, line 1: rename-command takes the old and the new name"),
        ("include missing.conf\n", "missing.conf: No such file or directory\n  included by a.conf, line 1"),
        ("port 60000\n", "port 60000: other nodes use port \\+ 10000"),
        ("port 60000\ncluster-port 60000\n", "clients use this port already"),
        ("port 0\n", "nobody could reach the server"),
        ("dir missing\n", "dir .*missing: Changing directory: No such file or directory"),
        ("tls-cluster yes\ntls-key-file k\n", "tls-cluster yes: tls-cert-file, tls-ca-cert-file must be set"),
    ],
)
def test_a_bad_file_says_where_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load([write(text)], {})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.conf"], "can't read the configuration file missing.conf: No such file"),
        (["--prot", "1"], "option --prot: there is no option 'prot'; did you mean 'port'?"),
        (["--port"], "option --port: port nothing"),
        (["--include", "x"], "give the file as the first argument"),
        ([".", "--port", "1"], "can't read the configuration file"),
    ],
)
def test_bad_arguments(arguments: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(arguments, {})


def test_two_files_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"argument 'b\.conf': options start with --"):
        load([write(""), "b.conf"], {})


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(ConfigError, match="environment variable DISQUEUE_PORT: port x"):
        load([], {"DISQUEUE_PORT": "x"})


def test_a_variable_that_is_no_option_is_remarked() -> None:
    assert load([], {"DISQUEUE_MAXMEMROY": "1"}).remarks == [
        "environment variable DISQUEUE_MAXMEMROY is no option; did you mean 'maxmemory'?"
    ]


def test_old_options_are_accepted_with_a_remark() -> None:
    configuration = load([write("hz 10\ndatabases 16\nsyslog-enabled no\nsave 900 1\n")], {})
    assert len(configuration.remarks) == 4
    assert "line 1: hz has no effect" in configuration.remarks[0]


def test_paths_are_pinned_when_the_server_starts(tmp_path: Path) -> None:
    Path("data").mkdir()
    configuration = load([write("dir data\nlogfile x.log\nunixsocket /s\n")], {})
    os.chdir("/")
    assert str(tmp_path / "data") == configuration.text("dir")
    assert str(tmp_path / "data" / "x.log") == configuration.text("logfile")
    assert configuration.text("unixsocket") == "/s"


def test_get_matches_globs_in_any_case() -> None:
    configuration = Configuration()
    assert configuration.get(["PORT"]) == [("port", "7711")]
    assert {"maxmemory", "maxmemory-policy", "maxmemory-samples"} == {name for name, _ in configuration.get(["maxmemory*"])}
    assert len(configuration.get(["*"])) == len(configuration.values)
    assert configuration.get(["nothing"]) == []
    assert configuration.get(["h?", "timeout"]) == [("timeout", "0"), ("hz", "10")]


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("h[a-e]llo", "hallo", True),
        ("h[^a]llo", "hallo", False),
        ("h[^a]llo", "hello", True),
        (r"a\*b", "a*b", True),
        (r"a\*b", "axb", False),
        ("a.b", "axb", False),
        ("[z-a]", "b", False),
        ("[", "[", True),
        ("[]", "[]", True),
        ("*" * 50, "x" * 50, True),
    ],
)
def test_glob(pattern: str, text: str, matches: bool) -> None:
    assert matches == bool(glob(pattern).fullmatch(text))


def test_set_changes_all_or_nothing_and_tells_listeners() -> None:
    configuration = Configuration()
    heard: list[Value] = []
    configuration.listen("timeout", heard.append)
    configuration.set([("TIMEOUT", "5"), ("loglevel", "debug")])
    assert heard == [0, 5]
    with pytest.raises(ConfigError, match="Invalid argument 'x' for CONFIG SET 'loglevel': allowed is one of debug"):
        configuration.set([("timeout", "6"), ("loglevel", "x")])
    assert (configuration.number("timeout"), configuration.text("loglevel")) == (5, "debug")


def test_a_listener_can_refuse_and_everything_goes_back() -> None:
    configuration = Configuration()
    heard: list[Value] = []
    configuration.listen("timeout", heard.append)

    def refuse(value: Value) -> None:
        if value:
            raise ConfigError("no")

    configuration.listen("appendonly", refuse)
    with pytest.raises(ConfigError, match="no"):
        configuration.set([("timeout", "5"), ("appendonly", "yes")])
    assert heard == [0, 5, 0]
    assert not configuration.flag("appendonly")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("prot", "1", "Unsupported CONFIG parameter: prot; did you mean 'port'"),
        ("port", "1", "Unsupported CONFIG parameter: port is set in the configuration file"),
        ("dir", "/missing", "Changing directory: No such file or directory"),
        ("requirepass", "x" * 600, "Invalid argument '\\(hidden\\)' for CONFIG SET 'requirepass'"),
    ],
)
def test_set_refuses(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Configuration().set([(name, value)])


def test_set_refuses_the_same_option_twice() -> None:
    with pytest.raises(ConfigError, match="duplicate parameter 'timeout'"):
        Configuration().set([("timeout", "1"), ("timeout", "2")])


def test_a_hidden_secret_is_not_shown() -> None:
    configuration = Configuration()
    configuration.set([("cluster-secret", "swordfish")])
    assert configuration.get(["cluster-secret"]) == [("cluster-secret", "(hidden)")]


def test_the_help_names_every_option() -> None:
    text = options_text()
    assert all(f"--{name} (default " in text for name in Configuration().values)
