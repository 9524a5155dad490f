"""The help begins with examples, a misspelt option has suggestions, and durations are options."""

from __future__ import annotations

from importlib import import_module

import pytest

from purebpf.cli import parser

EPILOG = """examples:
  purebpf sing 5      five seconds
  purebpf sing        until Ctrl-C
  purebpf sing -x     loudly
  purebpf sing -y     softly

Needs a voice."""


def made() -> parser.Parser:
    singer = parser.new("purebpf sing", "Sing.", EPILOG)
    singer.add_argument("--loudness")
    parser.add_duration(singer, "sing")
    assert isinstance(singer, parser.Parser)
    return singer


def test_three_examples_stand_above_the_options_and_the_rest_below() -> None:
    text = made().format_help()
    above, options, below = text.partition("options:")
    assert options
    assert above.count("  purebpf sing ") == 3
    assert "more examples:\n  purebpf sing -y     softly\n\nNeeds a voice." in below
    assert made().format_help() == text


def test_three_examples_leave_none_for_the_end() -> None:
    singer = parser.new(
        "purebpf sing", "Sing.", EPILOG.replace("  purebpf sing -y     softly\n", "")
    )
    assert "more examples" not in singer.format_help()
    assert singer.format_help().rstrip().endswith("Needs a voice.")


def test_a_misspelt_option_has_suggestions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parser.parse(made(), ["--loudnes=9"], {})
    assert caught.value.code == 2
    assert "unrecognized arguments: --loudnes=9 (similar: --loudness)" in capsys.readouterr().err


def test_a_misspelt_option_is_named_before_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise the value is taken for a duration, and the message is about that."""
    with pytest.raises(SystemExit):
        parser.parse(made(), ["--loudnes", "x"], {})
    assert "unrecognized arguments: --loudnes (similar: --loudness)" in capsys.readouterr().err


def test_an_option_like_no_other_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser.parse(made(), ["--zzz"], {})
    assert "similar" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["5"], ["--duration", "5s"], ["--duration=5000ms"]])
def test_a_duration_is_an_argument_or_an_option(words: list[str]) -> None:
    parsed = parser.parse(made(), words, {})
    assert parsed.duration_s == 5
    assert "duration" not in vars(parsed)


def test_two_durations_are_one_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser.parse(made(), ["5", "--duration", "6"], {})
    assert "given twice" in capsys.readouterr().err


def test_every_way_of_parsing_refuses_an_unknown_option_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for parse in (made().parse_args, made().parse_intermixed_args):
        with pytest.raises(SystemExit):
            parse(["--loudnes", "x"])
        assert "arguments: --loudnes (similar: --loudness)" in capsys.readouterr().err


def test_a_command_behind_dashes_has_options_of_its_own() -> None:
    assert parser.parse(made(), ["5", "--", "ls", "--all"], {}).command == ("ls", "--all")


@pytest.mark.parametrize("name", ["io", "kwork", "latency", "lock"])
def test_the_size_of_a_table_has_one_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command_parser = import_module(f"purebpf.tools.{name}.options").build_parser()
    assert command_parser.parse_args(["--map-entries", "9"]).rows == 9
    assert not capsys.readouterr().err
    assert command_parser.parse_args(["--rows", "9"]).rows == 9
    assert "--rows is called --map-entries now" in " ".join(capsys.readouterr().err.split())


def test_an_old_name_works_and_says_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    singer = made()
    parser.add_old_name(singer, "--volume", "--loudness", dest="loudness", type=int)
    assert singer.parse_args(["--volume", "7"]).loudness == 7
    assert capsys.readouterr().err == (
        "purebpf sing: --volume is called --loudness now; the old name goes away with the next "
        "minor version\n"
    )
    assert singer.parse_args(["--loudness", "7"]).loudness == "7"
    assert not capsys.readouterr().err
    assert "--volume" not in singer.format_help()


def test_a_frequency_has_both_names() -> None:
    singer = made()
    parser.add_frequency(singer, "notes a second")
    for flag in ("-F", "--freq", "--frequency"):
        assert singer.parse_args([flag, "9"]).frequency == 9
