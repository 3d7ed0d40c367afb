"""CONFIG REWRITE: the file says afterwards what holds now, and keeps what it says besides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.config.configuration import Configuration, load
from disqueue.config.rewrite import HEADING, new_lines, rewrite
from disqueue.config.sources import ConfigError


@pytest.fixture(autouse=True)
def _in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, *options: str) -> Configuration:
    Path("a.conf").write_text(text, encoding="utf-8")
    return load(["a.conf", *options], {})


def rewritten(configuration: Configuration) -> str:
    rewrite(configuration)
    return Path("a.conf").read_text(encoding="utf-8")


def test_lines_are_changed_in_place_and_comments_stay(tmp_path: Path) -> None:
    configuration = read('# first\nport 1\n\n  TIMEOUT 5\n# last\nrename-command DEBUG ""\n')
    configuration.set([("timeout", "6"), ("maxmemory", "3145728"), ("requirepass", 'a b"')])
    assert rewritten(configuration) == (
        '# first\nport 1\n\ntimeout 6\n# last\nrename-command DEBUG ""\n\n'
        f'{HEADING}\nrequirepass "a b\\""\nmaxmemory 3mb\ndir {tmp_path}\n'
    )


def test_a_second_rewrite_changes_nothing() -> None:
    configuration = read("port 1\n", "--maxclients", "17")
    once = rewritten(configuration)
    assert once == rewritten(configuration)
    assert once.count(HEADING) == 1


def test_what_is_written_is_what_the_next_start_reads() -> None:
    configuration = read("timeout 3\ntimeout 4\n", "--loglevel", "debug", "--bind", "127.0.0.1", "::1")
    configuration.set([("timeout", "0"), ("client-output-buffer-limit", "normal 1048576 0 0")])
    rewrite(configuration)
    again = load(["a.conf"], {})
    assert configuration.values == again.values
    assert "timeout 4" not in Path("a.conf").read_text(encoding="utf-8")


def test_an_included_file_that_comes_later_does_not_win() -> None:
    Path("b.conf").write_text("timeout 5\nmaxclients 9\n", encoding="utf-8")
    configuration = read("timeout 1\ninclude b.conf\n")
    configuration.set([("timeout", "7")])
    text = rewritten(configuration)
    assert load(["a.conf"], {}).number("timeout") == 7
    assert "maxclients" not in text


def test_a_line_that_is_wrong_by_now_becomes_a_comment() -> None:
    configuration = read("port 1\n")
    Path("a.conf").write_text("port 1\nprot 2\ntimeout x\n", encoding="utf-8")
    assert rewritten(configuration).startswith("port 1\n# ??? prot 2\n# ??? timeout x\n")


def test_a_file_that_vanished_is_made_anew() -> None:
    configuration = read("port 1\n")
    os.unlink("a.conf")
    assert rewritten(configuration).startswith(f"{HEADING}\nport 1\n")


def test_the_permissions_of_the_file_stay_and_nothing_is_left_behind() -> None:
    configuration = read("port 1\n")
    os.chmod("a.conf", 0o640)
    rewrite(configuration)
    assert os.stat("a.conf").st_mode & 0o777 == 0o640
    assert os.listdir(".") == ["a.conf"]


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    Path("real").mkdir()
    Path("real/x.conf").write_text("port 1\n", encoding="utf-8")
    os.symlink("real/x.conf", "a.conf")
    rewrite(load(["a.conf", "--timeout", "3"], {}))
    assert os.path.islink("a.conf")
    assert "timeout 3" in (tmp_path / "real/x.conf").read_text(encoding="utf-8")


def test_without_a_file_there_is_nothing_to_rewrite() -> None:
    with pytest.raises(ConfigError, match="The server is running without a config file"):
        rewrite(load([], {}))


def test_a_write_that_fails_leaves_the_old_file(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = read("port 1\n", "--timeout", "3")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(ConfigError, match="Rewriting config file: No space left on device"):
        rewrite(configuration)
    assert Path("a.conf").read_text(encoding="utf-8") == "port 1\n"
    assert os.listdir(".") == ["a.conf"]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "timeout": st.integers(0, 1 << 32).map(str),
            "maxmemory": st.integers(0, 1 << 50).map(str),
            "requirepass": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
            "appendfsync": st.sampled_from(["always", "no"]),
            "slowlog-log-slower-than": st.integers(-1, 1 << 40).map(str),
            "client-output-buffer-limit": st.just("normal 1 2 3"),
        },
    ),
    st.lists(st.sampled_from(["", "# note", "timeout 3", "appendfsync always", "hz 10", 'requirepass "x y"']), max_size=6),
)
def test_whatever_is_set_is_read_back(values: dict[str, str], lines: list[str]) -> None:
    Path("a.conf").write_text("\n".join(lines), encoding="utf-8")
    configuration = load(["a.conf"], {})
    accepted = {name: value for name, value in values.items() if value != str(1 << 32)}
    configuration.set(list(accepted.items()))
    result = new_lines(configuration, os.path.abspath("a.conf"))
    Path("a.conf").write_text("\n".join(result), encoding="utf-8")
    assert configuration.values == load(["a.conf"], {}).values
    assert [line for line in result if line.startswith("# note")] == [line for line in lines if line == "# note"]
