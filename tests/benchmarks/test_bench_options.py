"""The command line of `disqueue bench`."""

from __future__ import annotations

import pytest

from disqueue.cli.bench_options import parse_options


def test_defaults_measure_this_machine() -> None:
    options = parse_options([], {})
    assert options.producer == options.consumer
    assert (options.producer.host, options.producer.port) == ("127.0.0.1", 7711)
    assert options.modes == ("cycle", "phases")


def test_the_consumer_may_be_at_another_node() -> None:
    options = parse_options(["-p", "8000", "-a", "secret", "--consume-from", ":8001"], {})
    assert (options.producer.port, options.consumer.port) == (8000, 8001)
    assert options.consumer.password == "secret"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "'0' is no number of jobs: 1 to 100000000"),
        (["-P", "x"], "'x' is no number of requests: 1 to 10000"),
        (["--rate", "0"], "'0' is no rate: above 0 and up to 1e+06"),
        (["--rate", "nan"], "'nan' is no rate"),
        (["--consume-from", "host:port"], "'port' is no port"),
        (["--mode", "latency", "-d", "8"], "latency needs bodies of 16 bytes or more"),
        (["--mode", "latency", "-c", "500"], "latency takes 400 at the most"),
        (["--protocol", "redis-list", "-r", "3"], "--replicate and --fastack are Disque's"),
        (["--mode", "fast"], "invalid choice: 'fast'"),
    ],
)
def test_wrong_options_are_explained(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse_options(arguments, {})
    assert end.value.code == 2
    assert message in capsys.readouterr().err
