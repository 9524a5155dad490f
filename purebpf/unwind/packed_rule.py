"""Rules as BPF reads them: 8 bytes {s16 saved, u8 kind, u8 flags, s32 cfa}.

    kind          CFA
    SP, FP        register + cfa
    PLT           sp + a word, + one more where (pc & 15) >= cfa
    DEREF_FP, SP  the word at register + the low half of cfa, + the high half
    SIGNAL        -; i386: the saved registers are at sp + cfa
    END           -
    INVALID       code without a rule
    USER          a rule that only user space can follow
    DEPTH         code without a rule; of a leaf it is sp + cfa + 8

The return address is a word below the CFA, unless a flag says otherwise; `saved` is where the
frame pointer, or with RA_ALONE the return address, is.
"""

from __future__ import annotations

import struct
from enum import IntFlag

from purebpf.enums import IntEnum
from purebpf.unwind.expression import added_to_word, plt_threshold, register_form
from purebpf.unwind.machine import I386, Machine
from purebpf.unwind.rule import CFA_DEPTH, CFA_EXPRESSION, CFA_UNSUPPORTED, How, RegisterRule, Rule

__all__ = ["Flag", "Kind", "pack_rule"]

_LAYOUT = struct.Struct("<hBBi")
_HALF = 1 << 15
_FP_IN_CONTEXT, _SP_IN_CONTEXT, _IP_IN_CONTEXT = 24, 28, 56


class Kind(IntEnum):
    """The base of the CFA's computation."""

    INVALID = 0
    END = 1
    SP = 2
    FP = 3
    PLT = 4
    SIGNAL = 5
    DEREF_FP = 6
    DEREF_SP = 7
    USER = 8
    DEPTH = 9


class Flag(IntFlag):
    """The places of the frame pointer and the return address."""

    FP_SAVED = 1
    """The frame pointer is at CFA + saved."""
    FP_UNDEFINED = 2
    """The frame pointer is lost."""
    FP_AT_FP = 4
    """The frame pointer is at frame pointer + saved."""
    RA_IN_REGISTER = 8
    """arm64: the return address is in x30, so this is a leaf."""
    RA_PAIR = 16
    """arm64: the return address is 8 bytes above the saved frame pointer."""
    RA_ALONE = 32
    """arm64: the return address is at CFA + saved; the frame pointer was not saved."""
    OF_I386 = 64
    """A rule of 32-bit code of x86-64, in words of 4 bytes."""


def pack_rule(rule: Rule, machine: Machine, *, is_none: bool = False) -> bytes:
    """The 8 bytes of a rule; of the kind USER where BPF cannot follow it.

    Args:
        rule: the rule from the table.
        machine: the machine of its registers.
        is_none: the code has no rule at all.
    """
    if is_none:
        return _LAYOUT.pack(0, Kind.INVALID, 0, 0)
    kind, cfa, saved, flags = _parts(rule, machine) or (Kind.USER, 0, 0, 0)
    if kind is Kind.SP and flags == Flag.FP_SAVED and saved < -cfa:
        saved = flags = 0  # popped already: below sp, the register has it
    if not (-_HALF <= saved < _HALF and -1 << 31 <= cfa < 1 << 31):
        kind, cfa, saved, flags = Kind.USER, 0, 0, 0
    return _LAYOUT.pack(saved, kind, flags | (machine is I386 and Flag.OF_I386), cfa)


def _parts(rule: Rule, machine: Machine) -> tuple[Kind, int, int, int] | None:
    """The kind, the CFA, `saved` and the flags; None: BPF cannot follow the rule."""
    if rule.cfa_register == CFA_DEPTH and isinstance(rule.cfa, int):
        return Kind.DEPTH, rule.cfa, 0, 0
    if rule.is_signal:
        context = _context(rule) if machine is I386 else 0
        return None if context is None else (Kind.SIGNAL, context, 0, 0)
    if _is(rule.ra, How.UNDEFINED):
        return Kind.END, 0, 0, 0
    base = _cfa(rule, machine)
    where = _pack_saved(rule, machine)
    return None if base is None or where is None else (*base, *where)


def _context(rule: Rule) -> int | None:
    """Return where struct sigcontext_32 is, from the stack pointer: the rule names its registers.

    arch/x86/include/uapi/asm/sigcontext.h; the 32-bit vDSO has two such rules.
    """
    form = register_form(rule.cfa) if isinstance(rule.cfa, bytes) else None
    if form is None or form.register != I386.sp or added_to_word(form.then) != 0:
        return None
    fp, ra = _at_sp(rule.fp), _at_sp(rule.ra)
    context = form.offset - _SP_IN_CONTEXT
    is_context = fp == context + _FP_IN_CONTEXT and ra == context + _IP_IN_CONTEXT
    return context if is_context else None


def _at_sp(rule: RegisterRule) -> int | None:
    """Return the distance from the stack pointer of where a register of i386 is saved."""
    if not isinstance(rule, tuple) or rule[0] is not How.EXPRESSION:
        return None
    form = register_form(rule[1]) if isinstance(rule[1], bytes) else None
    is_plain = form is not None and form.register == I386.sp and not form.then
    return form.offset if form is not None and is_plain else None


def _cfa(rule: Rule, machine: Machine) -> tuple[Kind, int] | None:
    register, cfa = rule.cfa_register, rule.cfa
    if isinstance(cfa, int):
        kind = {machine.sp: Kind.SP, machine.fp: Kind.FP}.get(register)
        return None if kind is None or register == CFA_UNSUPPORTED else (kind, cfa)
    if register != CFA_EXPRESSION:
        return None
    threshold = plt_threshold(cfa)
    if threshold is not None:
        return Kind.PLT, threshold
    form = register_form(cfa)
    added = None if form is None else added_to_word(form.then)
    if form is None or added is None or not -_HALF <= form.offset < _HALF:
        return None
    kind = {machine.sp: Kind.DEREF_SP, machine.fp: Kind.DEREF_FP}.get(form.register)
    return None if kind is None else (kind, form.offset & 2 * _HALF - 1 | added << 16)


def _pack_saved(rule: Rule, machine: Machine) -> tuple[int, int] | None:
    """Return the places of the frame pointer and the return address, if BPF can fetch both."""
    fp, ra = rule.fp, rule.ra
    if machine.leaf_in_register:
        if ra is None or _is(ra, How.SAME):
            where = _frame_pointer(fp, machine)
            return None if where is None else (where[0], where[1] | Flag.RA_IN_REGISTER)
        if not isinstance(ra, int):
            return None
        if isinstance(fp, int):
            return (fp, Flag.FP_SAVED | Flag.RA_PAIR) if ra == fp + 8 else None
        return (ra, Flag.RA_ALONE) if fp is None or _is(fp, How.SAME) else None
    return _frame_pointer(fp, machine) if ra == -machine.word else None


def _frame_pointer(fp: RegisterRule, machine: Machine) -> tuple[int, int] | None:
    if fp is None or _is(fp, How.SAME):
        return 0, 0
    if isinstance(fp, int):
        return fp, Flag.FP_SAVED
    how, argument = fp
    if how is How.UNDEFINED:
        return 0, Flag.FP_UNDEFINED
    if how is How.EXPRESSION and isinstance(argument, bytes):
        form = register_form(argument)
        if form is not None and not form.then and form.register == machine.fp:
            return form.offset, Flag.FP_AT_FP
    return None


def _is(rule: RegisterRule, how: How) -> bool:
    return isinstance(rule, tuple) and rule[0] is how
