"""getopt() and config(): values that are known before a script runs."""

from __future__ import annotations

import pytest

from purebpf.script import tree
from purebpf.script.compilation import Compilation, compile_script
from purebpf.script.host import NoHost
from purebpf.script.script_error import OptionError, ScriptError
from purebpf.script.settings import Settings


def compiled(text: str, **options: str | None) -> Compilation:
    """The script with options."""
    return compile_script(text, NoHost(), Settings(options=options))


def value_of(text: str, **options: str | None) -> object:
    """The value that an expression is replaced by; a negative number is a `-` and a number."""
    probe = compiled(f"begin {{ print({text}); }}", **options).units[0].probe
    statement = probe.body.statements[0]
    assert isinstance(statement, tree.Discard)
    assert isinstance(statement.value, tree.Call)
    node = statement.value.arguments[0]
    if isinstance(node, tree.Unary):
        assert isinstance(node.operand, tree.Integer)
        return -node.operand.value
    assert isinstance(node, tree.Integer | tree.Bool | tree.String)
    return node.value


@pytest.mark.parametrize(
    ("default", "given", "value"),
    [
        ("20", "0xffffffffffffffff", (1 << 64) - 1),
        ("-1", "-10", -10),
        ("true", "False", False),
        ("true", None, True),
        ('"hello"', "5", "5"),
    ],
)
def test_an_option_has_the_type_of_its_default(
    default: str, given: str | None, value: object
) -> None:
    assert value_of(f'getopt("x", {default})', x=given) == value
    assert type(value_of(f'getopt("x", {default}, "words")', x=given)) is type(value)


def test_an_option_that_is_not_given_has_its_default() -> None:
    assert value_of('getopt("x", 7)') == 7
    assert value_of('getopt("x")') is False
    assert value_of('getopt("x")', x=None) is True


@pytest.mark.parametrize(
    ("default", "given", "problem"),
    [
        ("1", "False", "invalid integer"),
        ("true", "2", "invalid boolean"),
        ('"a"', None, "requires"),
    ],
)
def test_a_wrong_value_is_refused(default: str, given: str | None, problem: str) -> None:
    with pytest.raises(OptionError, match=f"option --x {problem}"):
        compiled(f'begin {{ print(getopt("x", {default})); }}', x=given)


def test_an_unknown_option_is_refused_with_those_that_there_are() -> None:
    text = 'begin { print((getopt("a", 1, "a number"), getopt("b"))); }'
    with pytest.raises(OptionError) as caught:
        compiled(text, help=None)
    assert caught.value.render(text, "stdin") == (
        "ERROR: unexpected program command line options: --help\n"
        "HINT: expected program options:\n    --a: a number\n    --b"
    )


@pytest.mark.parametrize(
    "call", ["getopt()", "getopt(1)", 'getopt("a", nsecs)', 'getopt("a", 1, 2)']
)
def test_a_wrong_call_is_refused_with_its_place(call: str) -> None:
    with pytest.raises(ScriptError) as caught:
        compiled(f"begin {{ print({call}); }}", a="1")
    assert caught.value.start >= len("begin { print(")


def test_config_gives_the_values_that_the_script_runs_with() -> None:
    assert value_of("config().max_strlen") == 1024
    assert value_of("config.stack_mode") == "bpftrace"
    assert value_of("config().cpp_demangle") is True
    with pytest.raises(ScriptError, match="not a known configuration option"):
        value_of("config().nonsense")


def test_warnings_name_statements_and_maps_without_effect() -> None:
    made = compiled("let @a = hash(3); begin { if (1) { exit(); @x = 1; } return; @y++; }")
    assert [warning.message for warning in made.warnings] == [
        "Unreachable statement.", "Unreachable statement.", "Unused map: @a",
    ]  # fmt: skip
    assert set(made.maps) == {"@x", "@y"}


def test_a_macro_without_parameters_is_called_by_its_name_and_others_leave_builtins_alone() -> None:
    text = "macro one() { $x = 1; $x } macro cpu(x) { x } macro pid() { 7 }"
    made = compiled(f"{text} begin {{ $a = one; $b = cpu(2) + cpu() + cpu; $c = pid + pid(); }}")
    assert len(made.units) == 1
    with pytest.raises(ScriptError, match="Unknown identifier"):
        compiled("macro f(one) { one } macro one() { 1 } begin { $a = one; }")
