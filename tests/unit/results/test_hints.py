"""What to do for names that are missing, by runtime."""

from __future__ import annotations

import json as reader

import pytest

from purebpf.cli.loss import paragraphs
from purebpf.results import Labels, Profile
from purebpf.results.formats import json
from purebpf.results.shape.hints import hints
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.runtimes import Runtime

GENERATED = Unknown(Reason.ANONYMOUS, "", Address(1), "user")
LISTED = Unknown(Reason.NOT_IN_PERF_MAP, "", Address(1), "user")
EVAL = Frame("_PyEval_EvalFrameDefault", 1, "/usr/bin/python3.12", Address(2), "user")
EXECUTE = Frame("execute_ex", 1, "/usr/bin/php8.2", Address(5), "user")
RUN = Frame("vm_exec", 1, "/usr/lib/libruby-3.1.so.3.1", Address(6), "user")
LUA = Frame("luaV_execute", 1, "/usr/lib/liblua5.4.so.0", Address(8), "user")
COMPILED = Frame("JIT$inner", 1, "[jit]", Address(7), "user")
NAMED = Frame("py::main:/srv/app.py", 1, "[jit]", Address(3), "user")
OTHER = Frame("main", 1, "/srv/app", Address(4), "user")


def profile(*rows):
    found = Profile()
    for pid, weight, *stack in rows:
        found.add(tuple(stack), (), weight, Labels("app", pid))
    return found


def told(found, **runtimes):
    return hints(found, lambda pid: runtimes.get(f"pid{pid}"))


def test_where_python_is_read_it_came_too_late() -> None:
    python = profile((7, 100, EVAL))
    python.about["python_stacks"] = 0
    (hint,) = told(python, pid7=Runtime("python", "3.11"))
    assert "were not read in time" in hint
    assert "by tables" not in hint


@pytest.mark.parametrize(
    ("runtime", "frame", "words"),
    [
        (Runtime("python", "3.11"), EVAL, ["Python 3.11 (PID 7) were not read", "purebpf dump"]),
        (
            Runtime("python", "3.12"),
            EVAL,
            ["Python 3.12 (PID 7)", "by tables"],
        ),
        (
            Runtime("python", "3.12", is_named=True),
            EVAL,
            ["wrote the names", "-fno-omit-frame"],
        ),
        (Runtime("python"), EVAL, ["Python (PID 7)", "CPython 3.8 to 3.15"]),
        (Runtime("python", "3.16"), EVAL, ["Python 3.16 (PID 7): only", "CPython 3.8 to 3.15"]),
        (Runtime("python", "2.7"), EVAL, ["Python 2.7 (PID 7): only", "`py-spy dump -p PID`"]),
        (Runtime("python", "3.7"), EVAL, ["Python 3.7 (PID 7): only", "`py-spy dump -p PID`"]),
        (Runtime("node"), GENERATED, ["node (PID 7)", "--perf-basic-prof"]),
        (Runtime("chromium"), GENERATED, ["Chromium (PID 7)", "--js-flags=--perf-basic-prof"]),
        (
            Runtime("java", "17"),
            GENERATED,
            ["methods of Java 17 (PID 7) were not read: `purebpf profile`", "Compiler.perfmap"],
        ),
        (
            Runtime("php"),
            EXECUTE,
            ["functions of PHP (PID 7) were not read", "read those of 8.0 to 8.4"],
        ),
        (Runtime("ruby"), RUN, ["functions of Ruby (PID 7) were not read", "of 3.0 to 3.4"]),
        (Runtime("erlang"), GENERATED, ["of Erlang (PID 7) cannot be read; `erl +JPperf true`"]),
        (Runtime("mono"), GENERATED, ["the functions of Mono (PID 7) cannot be read"]),
        (Runtime("lua"), LUA, ["the functions of Lua (PID 7) cannot be read"]),
        (Runtime("openj9"), GENERATED, ["the functions of OpenJ9 (PID 7) cannot be read"]),
        (Runtime("java", "8"), GENERATED, ["methods of Java 8 (PID 7) were not", "JDK 11 to 25"]),
        (Runtime("java"), GENERATED, ["methods of Java (PID 7)", "JDK 11 to 25 on x86-64"]),
    ],
)
def test_a_hint_for_each_runtime(runtime, frame, words):
    (hint,) = told(profile((7, 1, frame, OTHER)), pid7=runtime)
    assert all(word in hint for word in words)
    assert "  " not in hint


@pytest.mark.parametrize(
    ("runtime", "stack"),
    [
        (None, (GENERATED,)),
        (Runtime("node"), (OTHER,)),
        (Runtime("node"), (LISTED,)),
        (Runtime("java", "17"), (EVAL,)),
        (Runtime("python", "3.12"), (OTHER, GENERATED)),
        (Runtime("python", "3.12", is_named=True), (EVAL, NAMED, EVAL)),
        (Runtime("php"), (COMPILED, EXECUTE)),
        (Runtime("ruby"), (Frame("<main>", 0, "/srv/a.rb", Address(0), "user"), RUN)),
        (Runtime("php"), (RUN,)),
        (Runtime("erlang"), (COMPILED, GENERATED)),
        (Runtime("lua"), (OTHER,)),
    ],
)
def test_no_hint_where_nothing_is_missing_or_nothing_helps(runtime, stack):
    assert told(profile((7, 1, *stack)), pid7=runtime) == []


def test_one_stack_with_names_is_enough_for_a_process():
    found = profile((7, 90, EVAL, OTHER), (7, 1, EVAL, NAMED))
    assert told(found, pid7=Runtime("python", "3.12", is_named=True)) == []


def test_a_runtime_is_named_once_with_its_heaviest_processes():
    found = profile(*((pid, 10 + pid, GENERATED) for pid in range(1, 6)), (9, 500, EVAL))
    node = {f"pid{pid}": Runtime("node") for pid in range(1, 6)}
    python, javascript = told(found, **node, pid9=Runtime("python", "3.13"))
    assert "(PID 9)" in python
    assert "(PIDs 5, 4, 3, ...)" in javascript


def test_what_hardly_ran_gets_no_hint():
    assert told(profile((7, 1, GENERATED), (8, 1000, OTHER)), pid7=Runtime("node")) == []


def test_the_map_of_an_earlier_process_is_as_good_as_none():
    stale = GENERATED._replace(reason=Reason.STALE_PERF_MAP)
    (hint,) = told(profile((7, 1, stale)), pid7=Runtime("node"))
    assert "--perf-basic-prof" in hint


def stripped(path):
    return Unknown(Reason.STRIPPED, path, Address(1), "user")


def test_where_the_names_of_stripped_files_are():
    one = stripped("/opt/a\nb")
    (hint,) = told(profile((7, 5, one, one), (8, 95, OTHER)))
    assert hint.startswith("a?b is stripped: install its debug package (Debian")
    assert "--debuginfod" in hint
    files = [(at, at, stripped(f"/lib/lib{at}.so")) for at in range(10, 15)]
    (hint,) = told(profile(*files, (9, 900, OTHER)))
    assert hint.startswith("lib14.so, lib13.so, lib12.so and 2 more are stripped")
    assert told(profile((7, 1, one), (8, 1000, OTHER))) == []


def test_functions_without_a_symbol_are_of_stripped_files():
    start = Frame("lib.so!0x40", 3, "/opt/lib.so", Address(1), "user")
    (hint,) = told(profile((7, 5, start), (8, 95, OTHER)))
    assert hint.startswith("lib.so is stripped")


def test_hints_are_printed_last_and_saved():
    found = profile((7, 1, GENERATED))
    assert "hints" not in reader.loads(json.document(found))
    found.hints = ["start it otherwise"]
    assert paragraphs(found)[-1] == "  hint: start it otherwise"
    assert reader.loads(json.document(found))["hints"] == found.hints
    assert json.parse(json.document(found)).hints == found.hints


def test_a_native_image_has_no_debug_package() -> None:
    bare = Unknown(Reason.STRIPPED, "/opt/compiler", Address(9), "user")
    found = profile((7, 100, bare))
    assert told(found, pid7=Runtime("native-image")) == [
        "the functions of a stripped native image of GraalVM (PID 7) cannot be read"
    ]
    (hint,) = told(found)
    assert "compiler is stripped" in hint
