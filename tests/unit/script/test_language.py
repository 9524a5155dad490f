"""The language without a kernel: trees, types, refusals with their places."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.script import tree
from purebpf.script.compilation import Compilation, compile_script
from purebpf.script.host import NoHost
from purebpf.script.parser import parse
from purebpf.script.script_error import ScriptError
from purebpf.script.settings import Settings

REFUSED = [
    ("begin { print(0x_); }", "0x has no digits", 14),
    ("begin { prntf(1) }", "Unknown function: 'prntf'", 8),
    ("begin { @x = count(); @x = 5; }", "Type mismatch for @x", 22),
    ("begin { print($y) }", "Undefined or undeclared variable: $y", 14),
    ("begin { @x[1] = 1; @x = 2; }", "used as a map without an explicit key", 19),
    ('begin { @x[1] = 1; @x["a"] = 2; }', "Argument mismatch for @x", 22),
    ('begin { if (1 == "a") { } }', "Type mismatch for '=='", 12),
    ("begin { let $a = 1; let $a = 2; }", "already declared", 20),
    ("begin { break; }", "must be used in a loop", 8),
    ("begin { unroll(200) { } }", "maximum value is 100", 15),
    ('begin { printf("%d") }', "not enough arguments", 8),
    ('begin { printf("%d", "a") }', "format specifier for type 'string[2]': d", 8),
    ("begin { @ = lhist(1, 10, 0, 1) }", "min must be less than max", 12),
    ("begin { @ = hist(1, 9) }", "bits 9 must be 0..5", 12),
    ('begin { system("ls") }', "unsafe function", 8),
    ('begin { @[("hi",)] = 1; @[("a", 5)] = 2; }', "Argument mismatch for @", 26),
    ("begin { $x = (1, 2); $x = (1, 2, 3); }", "Type mismatch for $x", 26),
    ("begin { print(typeof(uint64)); }", "a type is no value", 14),
    ("begin { container_of(1, 2, x); }", "expects a pointer, typeof(TYPE)", 8),
    ("begin { let $x : typeof($y); }", "Undefined or undeclared variable: $y", 24),
    ("begin { @ = hist(1); delete(@); }", "without a key is not supported yet", 21),
    ("begin { @[1] = 2; has_key(@, (1, 2)); }", "arguments: '(int8,int8)' when", 29),
    ('begin { print((int8[16])"hello"); }', "Cannot cast from", 14),
    ('begin { print((uint32)pton("::1")); }', "Cannot cast from", 14),
    ("begin { @x = 1; for ($kv : @x) { } }", "cannot be used for iteration", 27),
    ("begin { @x[1] = hist(1); for ($kv : @x) { } }", "maps of hist() are not supported yet", 36),
    ("begin { print(len(@x)); }", "Undefined map: @x", 18),
    ("begin { delete(@x, 1); }", "Undefined map: @x", 15),
    ("begin { delete(@x[1]); }", "Undefined map: @x", 15),
    ("begin { print(has_key(@x, 1)); }", "Undefined map: @x", 22),
    ("begin { print(5 / 0); }", "overflow or underflow", 14),
    ("begin { print(1 % (2 - 2)); }", "overflow or underflow", 14),
    ("begin { print(1 << 64); }", "overflow or underflow", 14),
    ("begin { print(1 << -1); }", "overflow or underflow", 14),
    ("begin { print(18446744073709551615 + 1); }", "overflow or underflow", 14),
    ("begin { print(-9223372036854775808 - 1); }", "overflow or underflow", 14),
    ("begin { @x = 1; print(len(@x)); }", "expects a map with explicit keys", 22),
    ("begin { strcap(1) }", "not supported yet", 8),
    ('begin { uaddr("x") }', "uaddr() can not be used with 'begin' probes", 8),
    ("begin { print(comm(1)) }", "comm() of other tasks than pid and tid", 14),
    ("begin { socket_cookie(1) }", "socket_cookie() can not be used with 'begin' probes", 8),
    ("begin { path(1) }", "path() can not be used with 'begin' probes", 8),
    ("begin { } tracepoint:none:* { }", "Probe has no valid attach points.", 10),
    ("tracepoint:a:*, kprobe:b* { }", "Probe has no valid attach points.", 0),
    ("iter:task { }", "iter task not available", 0),
    ("iter:t* { }", "without wildcards", 0),
    ("watchpoint:1:8 { }", "needs an address, a length and a mode", 0),
    ("watchpoint:x:8:w { }", "Invalid function/address argument: x", 0),
    ("watchpoint:0x10:3:w { }", "Invalid length of watchpoint probe: 3", 0),
    ("watchpoint:0x10:8:r { }", "invalid watchpoint mode: r", 0),
    ("watchpoint:0x10:8:x { }", "a length of 1 is needed", 0),
    ("usdt:/bin/x:y { }", "No matches for usdt /bin/x:y.", 0),
    ("usdt:y { }", "need a process", 0),
    ("interval:s:0 { }", "Invalid period", 0),
    ("software:faults: { }", "Invalid count", 0),
    ("foo:bar { }", "Invalid probe type", 0),
    ("begin { args.x }", "can not be used with 'begin' probes", 8),
    ("begin { 1 + }", "unexpected }", 12),
    ("begin { ", "end of file", 8),
    ("config = { nonsense = 1 } begin { }", "not a known configuration option", 11),
]


@pytest.mark.parametrize(("text", "message", "start"), REFUSED)
def test_a_wrong_script_is_refused_where_it_is_wrong(text: str, message: str, start: int) -> None:
    with pytest.raises(ScriptError) as caught:
        compile_script(text, NoHost())
    assert message in caught.value.message
    assert caught.value.start == start


def test_an_error_shows_the_line_and_marks_the_place() -> None:
    text = "begin {\n  foo(1);\n}"
    with pytest.raises(ScriptError) as caught:
        compile_script(text, NoHost())
    assert caught.value.render(text, "x.bt") == (
        "x.bt:2:3-9: ERROR: Unknown function: 'foo'\n  foo(1);\n  ~~~~~~"
    )


@pytest.mark.parametrize(
    ("text", "kind", "is_signed"),
    [
        ("@ = 1", "int", True),
        ("@ = nsecs", "int", False),
        ("@ = nsecs - 1", "int", True),
        ("@ = pid + tid", "int", False),
        ("@ = pid + (int8)1", "int", True),
        ("@ = -8 >> 1", "int", True),
        ("@ = -1 << 3", "int", True),
        ("@ = 1 << 63", "int", False),
        ("@ = 1 == 2", "bool", False),
        ("@ = comm", "string", False),
        ("@ = (1, comm)", "tuple", False),
        ("@ = sum((uint8)3)", "sum", False),
    ],
)
def test_maps_get_the_type_of_their_values(text: str, kind: str, is_signed: bool) -> None:
    value = compile_script(f"begin {{ {text} }}", NoHost()).maps["@"].value
    assert value is not None
    assert (value.kind, value.signed) == (kind, is_signed)


def test_a_map_holds_the_longest_of_its_strings() -> None:
    compilation = compile_script('begin { @["a"] = 1; @["abcdefghijk"] = 2; }', NoHost())
    key = compilation.maps["@"].key
    assert key is not None
    assert key.size == 12
    assert compilation.spec.maps[compilation.maps["@"].bpf_name].key_size == 16


def test_a_predicate_ends_before_the_block() -> None:
    probe = parse("begin /pid == 4 / 2/ { }").probes[0]
    assert probe.predicate is not None


def test_a_division_in_a_path_is_no_predicate() -> None:
    probe = parse("uprobe:/bin/bash:readline /pid/ { }").probes[0]
    assert probe.points[0].text == "uprobe:/bin/bash:readline"


def test_parameters_are_numbers_where_they_look_like_numbers() -> None:
    compilation = compile_script("begin { @a = $1; @b = str($2); }", NoHost(),
                                 Settings(("0x10", "word")))  # fmt: skip
    kinds = {name: info.value.kind for name, info in compilation.maps.items() if info.value}
    assert kinds == {"@a": "int", "@b": "string"}


def test_a_macro_keeps_its_variables_to_itself() -> None:
    text = "macro twice(x) { $t = x; $t * 2 } begin { $t = 5; @ = twice(3) + $t; }"
    assert compile_script(text, NoHost()).maps["@"].value is not None


def test_a_macro_that_calls_itself_is_refused() -> None:
    with pytest.raises(ScriptError, match="calls itself"):
        compile_script("macro m() { m() } begin { m() }", NoHost())


def test_equal_scripts_give_equal_code() -> None:
    text = "begin { @[comm, pid] = count(); } interval:s:1 { print(@); }"
    first, second = (compile_script(text, NoHost()) for _ in range(2))
    assert [item.code for item in first.spec.functions.values()] == [
        item.code for item in second.spec.functions.values()
    ]


WORDS = st.sampled_from(
    [
        "begin",
        "end",
        "interval:s:1",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "@",
        "@x",
        "$y",
        "1",
        "0x7f",
        '"s"',
        '"%d"',
        ",",
        ";",
        "/",
        "*",
        "+",
        "-",
        "<",
        "==",
        "&&",
        "?",
        ":",
        ".",
        "->",
        "++",
        "=",
        "if",
        "else",
        "while",
        "for",
        "unroll",
        "let",
        "return",
        "printf",
        "print",
        "count",
        "hist",
        "str",
        "comm",
        "pid",
        "args",
        "nsecs",
        "sizeof",
        "(uint8)",
        "struct",
        "macro",
        "config",
        "true",
        "delete",
        "clear",
        "`",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=40))
def test_any_words_are_compiled_or_refused_with_a_place(words: list[str]) -> None:
    check("begin { " + " ".join(words) + " }")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_compiled_or_refused_with_a_place(text: str) -> None:
    check(text)


def check(text: str) -> None:
    """Compile a text; a refusal has a place in it and can be shown."""
    refusal = None
    try:
        compile_script(text, NoHost())
    except ScriptError as error:
        refusal = error
    assert refusal is None or 0 <= refusal.start <= len(text)
    assert refusal is None or refusal.render(text, "stdin")


def test_names_of_defines_are_expressions_and_sizes() -> None:
    text = (
        '#define NAME "x"\n#define SIZE 3\n#define TWICE { $t = 2; $t * 2 }\n'
        "struct s { char a[2 * (SIZE + 1) - 1]; };\n"
        'begin { printf("%s %d", NAME, sizeof(struct s)); print(NAME == "x"); print(TWICE); }'
    )
    compiled = compile_script(text, NoHost())
    assert compiled.world.named("struct s") is not None
    assert compiled.world.named("struct s").size == 7  # type: ignore[union-attr]


def test_the_operand_of_sizeof_may_be_a_number_taken_for_a_struct() -> None:
    head = "struct s { int a; char b; };"
    text = f'{head} begin {{ printf("%d", sizeof(((struct s)0).b)); }}'
    assert [node.value for node in sizes(compile_script(text, NoHost()))] == [1]
    with pytest.raises(ScriptError, match="Cannot cast from 'int64' to 'struct s'"):
        compile_script(f"{head} begin {{ print(((struct s)0).b); }}", NoHost())


def sizes(compiled: Compilation) -> Iterator[tree.SizeOf]:
    """Yield the sizeof() of a script."""
    for unit in compiled.units:
        for node in tree.walk(unit.probe):
            if isinstance(node, tree.SizeOf):
                yield node


def test_a_comma_may_stand_before_a_predicate() -> None:
    probe = parse("interval:s:1, interval:s:2,\n/ @x == 5 / { }").probes[0]
    assert [point.text for point in probe.points] == ["interval:s:1", "interval:s:2"]
    assert probe.predicate is not None


def test_an_array_in_memory_can_be_cast_to_a_pointer() -> None:
    text = "struct s { int n; char a[8]; long b[2]; struct s *next; }; kprobe:f "
    for part in ("(struct s *)$p->next->a", "(struct s *)$p->b", "(uint64 *)(*$p).a"):
        compile_script(f"{text}{{ $p = (struct s *)arg0; $q = {part}; print($q); }}", NoHost())
    with pytest.raises(ScriptError, match="Cannot cast"):
        compile_script(f"{text}{{ $p = comm; print((struct s *)$p); }}", NoHost())


def test_a_block_with_jumps_that_are_too_long_is_refused() -> None:
    body = '@a[1, "x"]++; @b[comm, str(arg0)]++; ' * 900
    with pytest.raises(ScriptError, match="a block is too long"):
        compile_script(f"kprobe:f {{ if (arg1) {{ {body} }} }}", NoHost())


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        ('is_str("a")', True),
        ("is_str(1)", False),
        ("is_integer(1)", True),
        ("is_unsigned_integer(nsecs)", True),
        ("is_unsigned_integer(-1)", False),
        ("is_ptr(curtask)", True),
        ("is_array((int8[2])5)", True),
        ("is_array(5)", False),
        ('kfunc_exist("bpf_strstr")', False),  # without a kernel
    ],
)
def test_kinds_of_values_are_known_before_the_script_runs(test: str, holds: bool) -> None:
    compiled = compile_script(f"begin {{ @ = {test}; }}", NoHost())
    calls = [node for node in tree.walk(compiled.units[0].probe) if isinstance(node, tree.Call)]
    assert [call.value for call in calls if call.name == test.partition("(")[0]] == [int(holds)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("interval:10ms", "interval:us:10000"),
        ("interval:1s", "interval:us:1000000"),
        ("profile:1500", "profile:1500"),
        ("interval:ms:10", "interval:ms:10"),
        ("i:hz:9", "interval:hz:9"),
        ("rt:sys_enter", "rawtracepoint:vmlinux:sys_enter"),
        ("rawtracepoint:kvm:kvm_exit", "rawtracepoint:kvm:kvm_exit"),
    ],
)
def test_probes_have_the_names_that_bpftrace_gives_them(text: str, name: str) -> None:
    (unit,) = compile_script(f"{text} {{ print(probe) }}", NoHost()).units
    assert unit.point.name == name


def test_programs_have_the_names_of_their_places_and_a_number() -> None:
    compiled = compile_script("begin { } interval:ms:100 { } interval:ms:100 { }", NoHost())
    assert compiled.program_names == ["begin_1", "interval_ms_100_2", "interval_ms_100_3"]


def test_too_many_programs_are_refused_with_the_variable_that_helps() -> None:
    points = ", ".join(["interval:ms:1"] * 4)
    for name in ("max_bpf_progs", "max_probes"):
        with pytest.raises(ScriptError, match="exceeds the current limit of 3") as caught:
            compile_script(f"config = {{ {name} = 3 }} {points} {{ }}", NoHost())
        assert f"BPFTRACE_{name.upper()}" in caught.value.hint
