from __future__ import annotations

import pytest

from purebpf.tools.latency.functions import parse_pair
from purebpf.tools.latency.options import parse
from purebpf.tools.latency.request import Grouping, parse_grouping


def test_words_are_functions_and_the_last_number_is_the_duration():
    options, view, details = parse(["vfs_read", "libc.so.6:malloc", "2.5", "--by", "ret:int"])
    assert options.functions == ("vfs_read", "libc.so.6:malloc")
    assert options.duration_s == 2.5
    assert (options.by, options.unit_ns, options.linear) == ("ret:int", 1000, 0)
    assert (view.format, details.fine) == ("text", False)


def test_options_may_stand_between_words():
    options, view, _ = parse(["f", "-o", "out.json", "g", "--by", "cpu", "7"])
    assert (options.functions, options.duration_s, options.by) == (("f", "g"), 7, "cpu")
    assert (view.output, view.format) == ("out.json", "json")


def test_a_page_has_columns_of_a_second():
    options, view, _ = parse(["f", "-o", "out.html"])
    assert (view.format, options.interval_s) == ("html", 1)
    assert parse(["f", "-o", "out.html", "-i", "5"])[0].interval_s == 5


def test_a_command_comes_behind_its_dashes():
    options, _, _ = parse(["./a.out:run", "--time", "--", "./a.out", "7"])
    assert options.command == ("./a.out", "7")
    assert options.functions == ("./a.out:run",)
    assert options.duration_s is None


def test_buckets_and_units():
    options, _, details = parse(["f", "--buckets", "hdr", "--unit", "ns"])
    assert (options.unit_ns, options.linear, details.fine) == (1, 0, True)
    options, _, details = parse(["f", "--buckets", "50"])
    assert (options.linear, details.fine) == (50, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "functions to time required"),
        (["5"], "functions to time required"),
        (["f", "-e", "a:b,c"], "not both"),
        (["f", "--count", "--slower", "3"], "--slower exclude it"),
        (["f", "--count", "--time"], "not allowed with argument"),
        (["f", "--count", "--by", "ret"], "does not see results"),
        (["-e", "a:b,c", "--by", "ret"], "no results or call tree"),
        (["-e", "a:b,c", "--by", "arg1"], "tracepoints (-e) have no arguments"),
        (["f", "--stacks"], "add --slower TIME"),
        (["f", "--by", "colour"], "unknown grouping 'colour'"),
        (["f", "--by", "arg7"], "arguments of functions are known to arg6"),
        (["f", "--by", "arg13"], "unknown grouping 'arg13'"),
        (["-e", "a:b"], "not a pair"),
        (["f", "--slower", "-1"], "zero or more milliseconds"),
        (["f", "--format", "folded"], "add --time"),
        (["f", "--count", "--format", "html"], "no times to draw"),
        (["f", "0"], "must be above zero"),
    ],
)
def test_wrong_options_are_explained(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "grouping"),
    [
        ("", Grouping()),
        ("process", Grouping("process")),
        ("ret", Grouping("ret")),
        ("ret:int", Grouping("ret", 0, 32)),
        ("arg3:uint", Grouping("arg", 3, 32, signed=False)),
        ("arg12", Grouping("arg", 12)),
    ],
)
def test_groupings(text, grouping):
    assert parse_grouping(text) == grouping


def test_the_end_of_a_pair_may_lack_what_its_beginning_has():
    assert parse_pair("irq:a,b") == ("irq:a", "irq:b")
    assert parse_pair("irq:a,timer:b") == ("irq:a", "timer:b")
    assert parse_pair("./x:p:a,b") == ("./x:p:a", "./x:p:b")
