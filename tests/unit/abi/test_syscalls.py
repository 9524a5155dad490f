"""The system call tables, against the headers of the machine and against known numbers."""

from __future__ import annotations

import platform

import pytest

from purebpf.abi import syscalls
from scripts.generate_syscalls import disagreements, installed, parse


@pytest.mark.parametrize(
    ("abi", "number", "name"),
    [
        ("x86_64", 0, "read"),
        ("x86_64", 39, "getpid"),
        ("x86_64", 262, "newfstatat"),
        ("x86_64", 321, "bpf"),
        ("i386", 4, "write"),
        ("i386", 252, "exit_group"),
        ("x32", 0, "read"),
        ("x32", 545, "execveat"),
        ("aarch64", 93, "exit"),
        ("aarch64", 280, "bpf"),
        ("arm", 386, "bpf"),
    ],
)
def test_numbers_and_names_agree_in_each_abi(abi: str, number: int, name: str) -> None:
    assert syscalls.name(abi, number) == name
    assert syscalls.number(abi, name) == number


def test_a_number_without_a_name_is_its_own() -> None:
    assert syscalls.name("x86_64", 9999) == "syscall:9999"
    assert syscalls.name("riscv64", 63) == "syscall:63"
    assert syscalls.number("x86_64", "socketcall") is None
    assert syscalls.number("i386", "socketcall") == 102


def test_new_calls_have_the_same_number_everywhere() -> None:
    for number in range(424, 473):  # asm-generic/unistd.h, since Linux 5.1
        names = {syscalls.name(abi, number) for abi in syscalls.ABIS}
        names.discard(f"syscall:{number}")
        assert len(names) <= 1, number


def test_a_machine_has_its_abis() -> None:
    assert syscalls.machine("x86_64").abis == ("x86_64", "i386", "x32")
    assert syscalls.machine("aarch64").abis == ("aarch64", "arm")
    assert syscalls.machine("riscv64").abis == ("riscv64",)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not installed(), reason="the kernel's headers are not here"
)
def test_the_tables_do_not_contradict_the_installed_headers() -> None:
    assert disagreements(installed()) == []


def test_the_parser_takes_every_spelling() -> None:
    text = """\
#ifndef _ASM_UNISTD_64_H
#define __NR_read 0
#define __NR_io_setup (__X32_SYSCALL_BIT + 543)
#define __NR_write (__NR_SYSCALL_BASE + 4)
#define __NR_syscalls 451
#define __ARM_NR_breakpoint (__ARM_NR_BASE+1)
"""
    assert parse(text) == {0: "read", 543: "io_setup", 4: "write", 451: "syscalls"}
