"""The interpreter of call frame instructions: from an FDE to rows.

Instructions: DWARF 5, section 6.4.2; DW_CFA_GNU_* in the Linux Standard Base;
DW_CFA_AARCH64_negate_ra_state in "DWARF for the Arm 64-bit Architecture", section 4.4.
"""

from __future__ import annotations

import struct

from purebpf.unwind.encoded import NO_BASES, EncodingError, pointer, sleb, uleb
from purebpf.unwind.entries import Cie, Fde
from purebpf.unwind.rule import CFA_EXPRESSION, CFA_UNSUPPORTED, How, RegisterRule, Row

__all__ = ["PlainRule", "interpret", "row_at"]

PlainRule = tuple[int, int | bytes, RegisterRule, RegisterRule, bool]
"""The fields of a `Rule`, which costs three times as much to make."""

_UNSUPPORTED: PlainRule = (CFA_UNSUPPORTED, 0, None, None, False)
_FOREVER = 1 << 65
_MOST_REGISTERS = 128
_DEEPEST = 64
"""States remembered. GCC and Clang nest two."""
_HALF, _WORD, _LONG = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
_UNDEFINED = (How.UNDEFINED, 0)
_SAME = (How.SAME, 0)
_NOTHING: dict[int, RegisterRule] = {}


_State = tuple[int, int | bytes, dict[int, RegisterRule], int]
"""The rules at one address: the CFA's register, the CFA, the registers, and the offset before the
CFA became an expression, which holds again when a register follows.
"""

_EMPTY: _State = (CFA_UNSUPPORTED, 0, _NOTHING, 0)


class _Unreadable(Exception):  # noqa: N818
    """An instruction that is not known, or not whole."""


def interpret(fde: Fde, fp: int) -> tuple[list[int], list[PlainRule], bool]:
    """The rows of an FDE: offsets from its start, and the rules from there on.

    The offsets ascend; of equal ones the last counts.
    Instructions that cannot be read end in `UNSUPPORTED`.

    Args:
        fde: the entry.
        fp: the frame pointer's number.

    Returns:
        both, and whether entries with the same instructions have the same ones.
    """
    initial = _initial(fde.cie)
    if initial is None:
        return [0], [_UNSUPPORTED], True
    offsets: list[int] = []
    rules: list[PlainRule] = []
    _, movable = _run(fde, initial, offsets, rules, fp, _FOREVER)
    return offsets, rules, movable


def row_at(fde: Fde, address: int) -> Row | None:
    """The rules of all registers at an address of an FDE; None where they cannot be read."""
    initial = _initial(fde.cie)
    if initial is None:
        return None
    (register, cfa, registers, _), _ = _run(fde, initial, [], [], 0, address - fde.start)
    if register == CFA_UNSUPPORTED:
        return None
    return Row(register, cfa, registers, fde.cie.ra, fde.cie.is_signal)


def _initial(cie: Cie) -> _State | None:
    """The rules that a CIE starts its FDEs with; None if they cannot be read."""
    if cie.initial is None:
        code = Fde(0, 0, cie, cie.code, 0)
        rules: list[PlainRule] = []
        state, _ = _run(code, _EMPTY, [], rules, 0, _FOREVER)
        cie.initial = False if rules[-1] is _UNSUPPORTED else state
    return cie.initial if isinstance(cie.initial, tuple) else None


def _run(  # noqa: PLR0917 - on the hot path
    fde: Fde, initial: _State, offsets: list[int], rules: list[PlainRule], fp: int, stop: int
) -> tuple[_State, bool]:
    """Interpret until the address is past `start + stop`; add a row for every advance.

    This is one long function: it runs once for each of a million instructions, and a call costs as
    much as most of them.
    """
    _, _, cie, code, _ = fde
    ra, is_signal = cie.ra, cie.is_signal
    code_factor, data_factor = cie.code_factor, cie.data_factor
    register, cfa, first, before = initial
    registers = first.copy()
    own_fp, own_ra = first.get(fp), first.get(ra)
    add_offset, add_rule = offsets.append, rules.append
    stack: list[_State] = []
    at = location = 0
    end = len(code)
    movable = True
    try:
        while at < end:
            operation = code[at]
            at += 1
            if 0x40 <= operation < 0x80:  # advance_loc
                add_offset(location)
                add_rule((register, cfa, own_fp, own_ra, is_signal))
                location += (operation & 63) * code_factor
                if location > stop:
                    break
            elif operation == 0x0E:  # def_cfa_offset
                cfa = code[at]
                at += 1
                if cfa > 127:
                    cfa, at = uleb(code, at - 1)
            elif 0x80 <= operation < 0xC0:  # offset
                offset = code[at]
                at += 1
                if offset > 127:
                    offset, at = uleb(code, at - 1)
                operation &= 63
                registers[operation] = offset = offset * data_factor
                if operation == fp:
                    own_fp = offset
                elif operation == ra:
                    own_ra = offset
            elif not operation:  # nop
                continue
            elif operation == 0x0A:  # remember_state
                if len(stack) >= _DEEPEST:
                    raise _Unreadable  # noqa: TRY301
                stack.append((register, cfa, registers.copy(), before))
            elif operation == 0x0B:  # restore_state
                register, cfa, registers, before = stack.pop()
                own_fp, own_ra = registers.get(fp), registers.get(ra)
            elif operation >= 0xC0:  # restore
                _restore(registers, first, operation & 63)
                own_fp, own_ra = registers.get(fp), registers.get(ra)
            elif operation == 0x0D:  # def_cfa_register
                register, at = _register(code, at)
                if not isinstance(cfa, int):
                    cfa = before  # as libgcc and readelf do; assembly in libgcrypt relies on it
            elif operation == 0x0C:  # def_cfa
                register, at = _register(code, at)
                cfa, at = uleb(code, at)
            elif operation in _ADVANCES:
                add_offset(location)
                add_rule((register, cfa, own_fp, own_ra, is_signal))
                layout = _ADVANCES[operation]
                location += layout.unpack_from(code, at)[0] * code_factor
                at += layout.size
                if location > stop:
                    break
            elif operation == 0x02:  # advance_loc1
                add_offset(location)
                add_rule((register, cfa, own_fp, own_ra, is_signal))
                location += code[at] * code_factor
                at += 1
                if location > stop:
                    break
            elif operation == 0x0F:  # def_cfa_expression
                if isinstance(cfa, int):
                    before = cfa
                cfa, at = _block(code, at)
                register = CFA_EXPRESSION
            elif operation == 0x2E:  # GNU_args_size
                at = uleb(code, at)[1]
            elif operation in (0x12, 0x13):  # def_cfa_sf, def_cfa_offset_sf
                if operation == 0x12:
                    register, at = _register(code, at)
                offset, at = sleb(code, at)
                cfa = offset * data_factor
            elif operation == 0x01:  # set_loc
                add_offset(location)
                add_rule((register, cfa, own_fp, own_ra, is_signal))
                where, at = pointer(code, at, cie.encoding, fde.code_address + at, NO_BASES)
                movable = False
                if where - fde.start < location:
                    raise _Unreadable  # noqa: TRY301
                location = where - fde.start
                if location > stop:
                    break
            elif operation in (0x2C, 0x2D):  # AARCH64_negate_ra_state_with_pc, _ra_state
                continue  # the signature is removed from every return address
            else:
                at = _register_rule(cie, code, at, operation, registers, first)
                own_fp, own_ra = registers.get(fp), registers.get(ra)
    except (IndexError, struct.error, EncodingError, _Unreadable):
        add_offset(location)
        add_rule(_UNSUPPORTED)
        return _EMPTY, movable
    add_offset(location)
    add_rule((register, cfa, own_fp, own_ra, is_signal))
    return (register, cfa, registers, before), movable


_ADVANCES = {0x03: _HALF, 0x04: _WORD, 0x1D: _LONG}  # advance_loc2, advance_loc4, MIPS_advance_loc8


def _register_rule(  # noqa: PLR0917 - on the hot path
    cie: Cie,
    code: bytes,
    at: int,
    operation: int,
    registers: dict[int, RegisterRule],
    first: dict[int, RegisterRule],
) -> int:
    """An instruction of the less frequent kind, which sets one register's rule; where it ends."""
    number, at = _register(code, at)
    if operation == 0x06:  # restore_extended
        _restore(registers, first, number)
        return at
    if operation == 0x07:  # undefined
        registers[number] = _UNDEFINED
        return at
    if operation == 0x08:  # same_value
        registers[number] = _SAME
        return at
    if operation in (0x10, 0x16):  # expression, val_expression
        expression, at = _block(code, at)
        how = How.EXPRESSION if operation == 0x10 else How.VALUE_EXPRESSION
        registers[number] = (how, expression)
        return at
    if operation in (0x11, 0x15):  # offset_extended_sf, val_offset_sf
        offset, at = sleb(code, at)
    else:
        offset, at = uleb(code, at)
    if operation in (0x05, 0x11):  # offset_extended
        registers[number] = offset * cie.data_factor
    elif operation in (0x14, 0x15):  # val_offset
        registers[number] = (How.VALUE, offset * cie.data_factor)
    elif operation == 0x09:  # register
        registers[number] = (How.REGISTER, offset)
    elif operation == 0x2F:  # GNU_negative_offset_extended
        registers[number] = -offset * cie.data_factor
    else:
        raise _Unreadable
    return at


def _restore(
    registers: dict[int, RegisterRule], first: dict[int, RegisterRule], number: int
) -> None:
    """Set the rule of a register back to the CIE's."""
    if number in first:
        registers[number] = first[number]
    else:
        registers.pop(number, None)


def _register(code: bytes, at: int) -> tuple[int, int]:
    number, at = uleb(code, at)
    if number >= _MOST_REGISTERS:
        raise _Unreadable
    return number, at


def _block(code: bytes, at: int) -> tuple[bytes, int]:
    size, at = uleb(code, at)
    if at + size > len(code):
        raise _Unreadable
    return code[at : at + size], at + size
