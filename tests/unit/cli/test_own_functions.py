"""The line about own functions above a table that begins with a runtime's."""

from __future__ import annotations

from purebpf.cli.own_functions import describe_own, describe_programs
from purebpf.results import Labels, Profile
from purebpf.symbols.frame import Address, Frame

EXE = "/srv/exporter"
CALLERS = ("main.exportAll", "net/http.HandlerFunc.ServeHTTP", "runtime.goexit")
RUNTIME = ("runtime.unlock2", "runtime.lock2", "runtime.memmove", "runtime.findObject")


def go(name: str) -> Frame:
    return Frame(name, 0, EXE, Address(1), "user")


def stacks(*leaves: str) -> Profile:
    profile = Profile("", unit="samples")
    for leaf in leaves:
        names = (leaf, "main.appendRow", *CALLERS)
        profile.add(tuple(map(go, names)), (), 10, Labels("exporter", 7, 7))
    return profile


def test_a_function_that_calls_the_runtime_is_named_above_the_table() -> None:
    line, *_ = describe_own(stacks(*RUNTIME, "runtime.mallocgc"))
    assert line == "own code, with what it calls: 100 % main.appendRow [exporter]\n\n"


def test_a_function_in_the_first_rows_is_not_named_twice() -> None:
    profile = stacks(*RUNTIME)
    for _ in range(3):
        labels = Labels("exporter", 7, 7)
        profile.add(tuple(map(go, ("main.appendRow", *CALLERS))), (), 20, labels)
    assert list(describe_own(profile)) == []


def test_few_samples_and_functions_of_libraries_say_nothing() -> None:
    assert list(describe_own(stacks("runtime.mallocgc"))) == []
    profile = Profile("", unit="samples")
    names = ("runtime.gcDrain", "runtime.gcBgMarkWorker", "runtime.goexit")
    profile.add(tuple(map(go, names)), (), 100, Labels("exporter", 7, 7))
    assert list(describe_own(profile)) == []


def test_the_line_fits_eighty_columns() -> None:
    profile = Profile("", unit="samples")
    for number in range(3):
        own = f"main.{'long' * 10}{number}"
        names = (f"runtime.f{number}", own, "runtime.goexit")
        profile.add(tuple(map(go, names)), (), 50, Labels("exporter", 7, 7))
    for leaf in RUNTIME:
        profile.add((go(leaf), go("runtime.goexit")), (), 60, Labels("exporter", 7, 7))
    line, *_ = describe_own(profile)
    assert len(line.rstrip("\n")) <= 80


def short_processes(many: int) -> Profile:
    profile = Profile("", unit="samples")
    for pid in range(many):
        comm = "cut" if pid % 3 else "expr"
        profile.add((), (go("do_exit"),), 5, Labels(comm, 100 + pid, 100 + pid))
    return profile


def test_many_short_processes_are_summed_by_program() -> None:
    parent, programs = describe_programs(short_processes(30), ["7: sh collect.sh"])
    assert parent == "children of 7: sh collect.sh\n"
    assert programs == "programs: 67 % cut (20 processes), 33 % expr (10 processes)\n\n"
    assert list(describe_programs(short_processes(5), ["7: sh collect.sh"])) == []
