"""Blocks of raw_syscalls that need no record are attached as raw tracepoints."""

from __future__ import annotations

import pytest

from purebpf.asm.listing import disassemble
from purebpf.script.compilation import Compilation, compile_script
from purebpf.script.host import NoHost
from purebpf.script.script_error import ScriptError

_FIELD = "\tfield:{};\toffset:{};\tsize:{};\tsigned:1;\n"
SYS_ENTER = _FIELD.format("long id", 8, 8) + _FIELD.format("unsigned long args[6]", 16, 48)
SYS_EXIT = _FIELD.format("long id", 8, 8) + _FIELD.format("long ret", 16, 8)


class Host(NoHost):
    """A machine with the tracepoints of all system calls."""

    def tracepoint_format(self, category: str, event: str) -> str:
        """Return their format files."""
        return {"sys_enter": SYS_ENTER, "sys_exit": SYS_EXIT}.get(event, "") * (
            category == "raw_syscalls"
        )


def compiled(text: str) -> Compilation:
    """Compile a script for that machine."""
    return compile_script(text, Host())


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("sys_enter /pid == 1/ { @[comm, args.id] = count(); }", "raw_tp/sys_enter"),
        ("sys_enter { @start[tid] = nsecs; }", "raw_tp/sys_enter"),
        ("sys_exit /args.ret < 0/ { @[args->ret]++; }", "raw_tp/sys_exit"),
        ("sys_exit { @[args.id] = count(); }", "tracepoint/raw_syscalls/sys_exit"),
        ("sys_enter { @ = args.args[1]; }", "tracepoint/raw_syscalls/sys_enter"),
        ("sys_enter { @[kstack] = count(); }", "tracepoint/raw_syscalls/sys_enter"),
        ("sys_enter { @[ustack(raw)] = count(); }", "tracepoint/raw_syscalls/sys_enter"),
        ("sys_enter { @[kstack(3)] = count(); }", "tracepoint/raw_syscalls/sys_enter"),
        ("sys_enter { $x = sizeof(args.args); @ = $x; }", "tracepoint/raw_syscalls/sys_enter"),
        (
            "sys_enter { let $x : typeof(args.args[0]); @ = $x; }",
            "tracepoint/raw_syscalls/sys_enter",
        ),
        ("sys_enter { @ = ctx; }", "tracepoint/raw_syscalls/sys_enter"),
    ],
)
def test_the_section_of_a_block(text: str, section: str) -> None:
    made = compiled(f"tracepoint:raw_syscalls:{text}")
    (program,) = made.spec.programs.values()
    assert program.section == section
    assert made.units[0].point.name.startswith("tracepoint:raw_syscalls:sys_")


def test_a_macro_may_need_the_record() -> None:
    text = (
        "macro len($x) { $x + args.args[0] } "
        "tracepoint:raw_syscalls:sys_enter { $y = 1; @ = len($y); }"
    )
    (program,) = compiled(text).spec.programs.values()
    assert program.section == "tracepoint/raw_syscalls/sys_enter"


def lookups(text: str) -> int:
    """Count the calls of map_lookup_elem() in the last program of a script."""
    made = compiled(text)
    name = made.program_names[-1]
    return disassemble(made.spec, name).count("call bpf_map_lookup_elem#")


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("/@s[tid]/ { @n = @s[tid] + @s[tid]; }", 1),
        ("/@s[tid]/ { @n = @s[tid]; delete(@s, tid); @m = @s[tid]; }", 2),
        ("/@s[tid]/ { if (@s[tid] > 5) { @s[tid] = 1; @n = @s[tid]; } }", 3),
        ("/@s[tid]/ { @n = @s[pid]; }", 2),
        ("/@s[cpu]/ { @n = @s[cpu]; }", 2),
        ("/@s[tid] > 3/ { @n = @s[tid]; }", 2),
        ("/@s[tid]/ { @s[tid]++; @n = @s[tid]; }", 4),
        ("/@s[tid]/ { while (@n < 3) { @n += @s[tid]; } }", 1),
    ],
)
def test_a_value_of_the_predicate_is_read_once(body: str, count: int) -> None:
    start = "tracepoint:raw_syscalls:sys_enter { @s[tid] = nsecs; }"
    assert lookups(f"{start} tracepoint:raw_syscalls:sys_exit {body}") == count


def test_a_macro_may_change_the_map_of_a_predicate() -> None:
    text = (
        "macro drop(@m) { delete(@m, tid) } tracepoint:raw_syscalls:sys_enter { @s[tid] = 1; } "
        "tracepoint:raw_syscalls:sys_exit /@s[tid]/ { drop(@s); @n = @s[tid]; }"
    )
    assert lookups(text) == 2


class Aliased(NoHost):
    """A kernel that lists one of the two names of a system call as traceable."""

    def knows_functions(self) -> bool:
        """Return True."""
        return True

    def kernel_functions(self) -> list[str]:
        """Return the function that can be traced."""
        return ["__ia32_sys_getppid"]

    def kernel_aliases(self, name: str) -> list[str]:
        """Return both names of it."""
        both = ["__ia32_sys_getppid", "__x64_sys_getppid"]
        return both if name in both else []


def test_a_function_may_be_listed_by_another_name_of_its_code() -> None:
    text = "kprobe:__x64_sys_getppid+4 { @++; }"
    assert compile_script(text, Aliased()).units[0].point.name == text.partition(" ")[0]
    with pytest.raises(ScriptError, match="No matches for kprobe __x64_sys_getpid"):
        compile_script("kprobe:__x64_sys_getpid { @++; }", Aliased())
