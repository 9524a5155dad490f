"""Scripts from nobody compile, or are refused at a place; nothing else happens to the compiler."""

from __future__ import annotations

import os
import random
import re

import pytest

from purebpf.script.compilation import compile_script
from purebpf.script.host import NoHost
from purebpf.script.script_error import ScriptError
from purebpf.script.settings import Settings

COUNT = 100_000 if os.environ.get("PUREBPF_NIGHTLY") else 2_000
PARTS = 20
SETTINGS = Settings(("5", "text", "-1"), is_unsafe=True)

STATEMENTS = [
    "@[pid, comm] = count();", "@h[tid] = hist(arg0, 3);", "@l = lhist($x, 0, 100, 5);",
    '@t = tseries($x, 1s, 5, "max");', "@s = stats(nsecs);", "@ = 1;", "@a[1] = @b[2];",
    "$x = 5;", "let $y: uint8 = 300;", "$t = (1, (2, @a[1]), comm);", "$r = (a=1, b=-2);",
    'printf("%d %s %-5x\\n", $x, comm, $t.0);', 'printf("%s", str($x, 10));', "print(@);",
    "print((1, $t.1.0));", "clear(@); zero(@h);", "delete(@a[1]);", "delete(@a, 1);",
    'if ($x > 3 && comm == "a") { $x++; } else if (!$x) { exit(1); } else { return; }',
    "while ($x < 10) { $x++; if ($x == 4) { break; } continue; }", "unroll (3) { @++; }",
    "for ($i : 0..10) { @c += $i; }", "for ($kv : @a) { print($kv.0); }",
    "$p = (struct s *)arg0; print($p.b); print($p->a[1]);", "print(*(uint32 *)arg1);",
    '$z = $x ? 1 : comm == "b" ? 2 : 3;', "@q = -5 / $x % 3 << 2 >> 1 ^ ~7;",
    "print({ $n = 1; $n + 1 });", "m($x, @a);", "print(sizeof(struct s));", "buf(arg0, 3);",
    "print(offsetof(struct s, b));", '$s = "a\\x41\\n"; if ($s != "b") { }', "_ = $x;",
    "print(ntop(2, 5)); print(macaddr(arg0));", 'time("%H"); print(strftime("%s", nsecs));',
    "@k[kstack(3), ustack] = sum(-$x);", 'print(strncmp(comm, "x", 3)); print($1 + $#);',
    'print(((int8[])"hey")[$x]); let $w : typeof($x) = 1;', 'assert($x, "no"); $x /= $x - 5;',
    "$u = container_of((int *)5, typeof(struct s), c); print(sizeof($u));", "delete(@s);",
    '$e = "\udc9e"; @["a", (1,)] = 2; @["b", ("hi", 5)] = 3;',
    'join(arg0); system("%d", 1); cat("/x");', "print(bswap((uint16)$x)); print(1e6 + 0x_f);",
    'printf("%gr", $x); print(B); print(D);', "$n = (struct s *)$p.a; print($n.f.y);",
    "print(((struct s *)arg0).f); $c = ((struct s *)arg0).f.t; print($c); @[$c] = 1;",
    'print(reg("ip")); print(kaddr("x")); print(strlen(comm)); print(len(@a));',
]  # fmt: skip
HEADS = ["kprobe:a", "uprobe:/bin/x:f", "fentry:f", "kretprobe:f", "begin", "end",
         "interval:s:1", "profile:hz:99", "kprobe:a, kretprobe:b", "BEGIN",
         "uprobe:/bin/x:f /pid == 5/", "software:cs:1 / @a[1] /", "tracepoint:a:b",
         "rawtracepoint:x", "hardware:cycles:1e3", "bench:b",
         "uprobe:/bin/x:f+3, /$1/", "usdt:/bin/x:y:z", "interval:us:10"]  # fmt: skip
TOPS = ["#define A 5", "struct f { float y; char t[3 + 2 * (1 + 4)]; };", '#define B "b"',
        "#define D curtask->pid", "#define E { 5 }", "struct g { char t[A - 2]; };",
        "struct s { int a[4]; char b; unsigned long c : 3; struct f f; };", "#include <x.h>",
        "config = { max_strlen = 64 }", "let @a = lruhash(10);",
        "macro m($p, @q) { @q[1] = $p; $p + 1 }", "enum e { X, Y = 3 };"]  # fmt: skip
TOKEN = re.compile(r"\w+|\s+|\W")


def grown(choose: random.Random) -> str:
    """Return a script of statements that fit the grammar, not always each other."""
    tops = [top for top in TOPS if choose.random() < 0.8]
    text = "\n".join(tops)
    for _ in range(choose.randint(1, 2)):
        chosen = choose.choices(STATEMENTS, k=choose.randint(1, 4))
        if choose.random() < 0.8:
            chosen = ["$x = 7 % 5; @a[1] = 2; $t = (1, (2, @a[1]), comm);", *chosen]
        text += f"\n{choose.choice(HEADS)} {{ {' '.join(chosen)} }}"
    return text


def damaged(text: str, choose: random.Random) -> str:
    """Return a script some of whose tokens, or bytes, are others."""
    parts: list[str] = TOKEN.findall(text)
    for _ in range(choose.choice((0, 0, 0, 1, 1, 2, 3))):
        at = choose.randrange(len(parts))
        match choose.randrange(5):
            case 0:
                parts[at] = choose.choice(parts)
            case 1:
                parts.insert(at, choose.choice(parts))
            case 2 if len(parts) > 1:
                del parts[at]
            case 3:
                parts[at] = choose.choice(["-1", "0", "99999999999999999999", "@", "$", '"', "(",
                                           ")", "{", "}", "\0", "\udc80", "é", "1s", "args", "[",
                                           "string", "$1", "void", "struct"])  # fmt: skip
            case _:
                parts[at] = chr(choose.randrange(1, 256)) + parts[at]
    return "".join(parts)


def refusal(text: str) -> ScriptError | None:
    """Return the error of a script; None if it compiles."""
    try:
        compile_script(text, NoHost(), SETTINGS)
    except ScriptError as error:
        return error
    except Exception as error:
        error.add_note(f"the script: {text!a}")
        raise
    return None


@pytest.mark.parametrize(
    "text", ["#define A 5\xb3\nbegin { }", "interval:s:\xb3 { }", "kprobe:\xb3 { }"]
)
def test_digits_that_are_no_numbers_are_compiled_or_refused(text: str) -> None:
    error = refusal(text)
    assert error is None or error.message


def test_a_declared_map_without_values_is_refused_where_it_is_read() -> None:
    error = refusal("let @a = hash(5); begin { delete(@a, 1); }")
    assert error is not None
    assert (error.message, error.start) == ("Undefined map: @a", 33)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_hostile_script_is_compiled_or_refused_at_a_place(part: int) -> None:
    choose = random.Random(part)
    for _ in range(COUNT // PARTS):
        text = damaged(grown(choose), choose)
        error = refusal(text)
        if error is not None:
            assert error.message
            assert 0 <= error.start <= error.end <= len(text), text
            assert "ERROR: " in error.render(text, "fuzz")
