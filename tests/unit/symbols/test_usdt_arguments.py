"""Where a static probe's arguments are, as each machine's assembler words it."""

from __future__ import annotations

import pytest

from purebpf.symbols.usdt_arguments import (
    Argument,
    UnknownArgument,
    Where,
    parse_arguments,
    with_addresses,
)

X86_64, AARCH64 = 62, 183


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("-4@$-9", Argument(4, True, Where.CONST, -9)),
        ("1@$-56", Argument(1, False, Where.CONST, 200)),
        ("2@$-1", Argument(2, False, Where.CONST, 0xFFFF)),
        ("4@$-1", Argument(4, False, Where.CONST, 0xFFFFFFFF)),
        ("-1@$200", Argument(1, True, Where.CONST, -56)),
        ("-2@$-5", Argument(2, True, Where.CONST, -5)),
        ("8@$-1", Argument(8, False, Where.CONST, -1)),
        ("8@$71", Argument(8, False, Where.CONST, 71)),
        ("8@$0x10", Argument(8, False, Where.CONST, 16)),
        ("8@%rdi", Argument(8, False, Where.REG, 0, 112)),
        ("-4@%esi", Argument(4, True, Where.REG, 0, 104)),
        ("2@%cx", Argument(2, False, Where.REG, 0, 88)),
        ("1@%bpl", Argument(1, False, Where.REG, 0, 32)),
        ("-1@%r15b", Argument(1, True, Where.REG, 0, 0)),
        ("1@%ah", Argument(1, False, Where.REG, 0, 81)),
        ("4@%r8d", Argument(4, False, Where.REG, 0, 72)),
        ("8@(%rsp)", Argument(8, False, Where.REG_DEREF, 0, 152)),
        ("-4@-20(%rbp)", Argument(4, True, Where.REG_DEREF, -20, 32)),
        ("8@0x20(%rip)", Argument(8, False, Where.REG_DEREF, 32, 128)),
        ("1@-96(%rbp,%rax,8)", Argument(1, False, Where.SIB, -96, 32, 80, 8)),
        ("1@(%rbp,%rax,2)", Argument(1, False, Where.SIB, 0, 32, 80, 2)),
        ("1@-96(%rbp,%rax)", Argument(1, False, Where.SIB, -96, 32, 80, 1)),
        (" -4 @ 8 ( %rdx , %rcx , 4 ) ", Argument(4, True, Where.SIB, 8, 96, 88, 4)),
    ],
)
def test_forms_of_x86(text: str, argument: Argument) -> None:
    assert parse_arguments(text, X86_64) == (argument,)


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("-4@5", Argument(4, True, Where.CONST, 5)),
        ("8@x30", Argument(8, False, Where.REG, 0, 240)),
        ("4@w1", Argument(4, False, Where.REG, 0, 8)),
        ("8@sp", Argument(8, False, Where.REG, 0, 248)),
        ("-4@[sp, 96]", Argument(4, True, Where.REG_DEREF, 96, 248)),
        ("2@[x3,-4]", Argument(2, False, Where.REG_DEREF, -4, 24)),
        ("8@[x0]", Argument(8, False, Where.REG_DEREF, 0, 0)),
    ],
)
def test_forms_of_aarch64(text: str, argument: Argument) -> None:
    assert parse_arguments(text, AARCH64) == (argument,)


def test_several_and_none() -> None:
    several = parse_arguments("-4@%esi -4@-24(%rbp) 8@$1", X86_64)
    assert several == (
        Argument(4, True, Where.REG, 0, 104),
        Argument(4, True, Where.REG_DEREF, -24, 32),
        Argument(8, False, Where.CONST, 1),
    )
    assert parse_arguments("-4@[sp, 8] 8@x1", AARCH64)[1] == Argument(8, False, Where.REG, 0, 8)
    assert parse_arguments("", X86_64) == ()
    assert len(parse_arguments("1@$1 " * 12, X86_64)) == 12


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8@table(%rip)", "unknown way to say where a value is"),
        ("8@%fs:8", "unknown way to say where a value is"),
        ("-8f@%xmm1", "unknown way to say where a value is"),
        ("8@%xmm0", "unknown register 'xmm0'"),
        ("3@%rax", "a value of 3 bytes"),
        ("0@%rax", "a value of 0 bytes"),
        ("8@(%rax,%rbx,3)", "a scale of 3; processors have 1, 2, 4 and 8"),
        ("8@(%rax,%xyz,1)", "unknown register 'xyz'"),
    ],
)
def test_an_argument_of_an_unknown_form_leaves_the_others_readable(text: str, problem: str) -> None:
    assert parse_arguments(text, X86_64) == (UnknownArgument(text, problem),)
    first, unknown, last = parse_arguments(f"8@$1 {text}  -4@-20(%rbp)", X86_64)
    assert unknown == UnknownArgument(text, problem)
    assert (first, last) == (
        Argument(8, False, Where.CONST, 1),
        Argument(4, True, Where.REG_DEREF, -20, 32),
    )


def test_more_arguments_than_the_header_has_room_for() -> None:
    with pytest.raises(ValueError, match=r"13 arguments; bpf/usdt.bpf.h has room for 12"):
        parse_arguments("1@$1 " * 13, X86_64)


def test_variables_become_distances_from_the_probe() -> None:
    find = {"total": 0x5000, "count.0": 0x6000}.get
    text = "-4@total(%rip) 8@count.0+16(%rip) 4@%eax 8@missing-8(%rip) 8@total-0x10(%rip)"
    assert with_addresses(text, 0x4000, find) == (
        "-4@4096(%rip) 8@8208(%rip) 4@%eax 8@missing-8(%rip) 8@4080(%rip)"
    )
    forms = "-4@12+total(%rip) 4@total(,%rax,4) 4@total+4(,%rax,4) 4@(%rax,%rdx,4)"
    assert with_addresses(forms, 0x4000, find) == (
        "-4@4108(%rip) 4@4096(%rip,%rax,4) 4@4100(%rip,%rax,4) 4@(%rax,%rdx,4)"
    )
    assert parse_arguments("4@4096(%rip,%rax,4)", X86_64) == (
        Argument(4, False, Where.SIB, 4096, 128, 80, 4),
    )
    assert parse_arguments("-4@4096(%rip)", X86_64) == (
        Argument(4, True, Where.REG_DEREF, 4096, 128),
    )


def test_a_machine_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="ELF machine 243"):
        parse_arguments("8@a0", 243)
