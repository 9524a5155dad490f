"""The types of registers by their later use: backward from the arguments of calls.

A register that some path passes to a function as a `struct file *` holds one, or a pointer to its
start; if the path passes the register plus a constant, the object lies at this constant. C allows
casts, so that these types are inferred, and weaker than a declaration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register

from purebpf.dataflow.btf_types import Prototype
from purebpf.dataflow.code import Code, access_of, constant_of, displacement, is_choice, is_whole
from purebpf.dataflow.containers import Holders, Use, object_at
from purebpf.dataflow.frames import Frames
from purebpf.dataflow.layout import is_record
from purebpf.dataflow.pointers import SLOT, Pointer, pointer_of
from purebpf.dataflow.types import Type, bare, byte_size
from purebpf.tuples import NamedTuple

__all__ = ["Functions", "later_uses", "places_of"]

_ARGUMENTS = (
    *(Register.RDI, Register.RSI, Register.RDX),
    *(Register.RCX, Register.R8, Register.R9),
)
"""System V AMD64 ABI, figure 3.4."""
_WORD = 8
_MOST_WORDS = 2
"""The words of a struct that is passed in registers."""
_CALLER_SAVED = (*_ARGUMENTS, Register.RAX, Register.R10, Register.R11)
_CALLS = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
_GOES_ON = (FlowControl.NEXT, FlowControl.CONDITIONAL_BRANCH)
_ROUNDS = 32
_MOST = 8
"""Uses of one register; one with more is not known."""
_ENOUGH = 2
"""Objects at known places that tell a struct from all others."""
_LOWEST_BITS = -256
"""The least mask that removes flags from a pointer."""


_TOO_MANY: frozenset[Use] = frozenset()
_Uses = dict[int, frozenset[Use]]
"""Uses by register (of iced_x86), and by the negative number of a slot of the frame."""


class Functions(NamedTuple):
    """The functions that code calls, by address.

    Attributes:
        prototype: returns the prototype of the function; None: unknown.
        returns: returns True for a return thunk, which goes back to the caller.
        jumps_to: returns the register that a retpoline jumps to; None: it is none.
    """

    prototype: Callable[[int], Prototype | None]
    returns: Callable[[int], bool]
    jumps_to: Callable[[int], int | None]


class _Known(NamedTuple):
    """The facts that a function's uses depend on."""

    functions: Functions
    result: Type | None
    frames: Frames


def places_of(parameters: Iterable[Type | None]) -> Iterator[tuple[int, Type | None]]:
    """Yield each parameter's key in a state (a register, or a place on the stack) and its type.

    A struct of two words takes two registers; a larger one is on the stack.
    """
    free, offset = list(_ARGUMENTS), 0
    for of in parameters:
        words = max(1, -(-byte_size(of) // _WORD))
        if words > len(free) or (words > _MOST_WORDS and is_record(of)):
            yield SLOT - offset, of
            offset += words * _WORD
        else:
            yield free[0], of
            free = free[words:]


def later_uses(
    code: Code, functions: Functions, result: Type | None, holders: Holders
) -> list[Mapping[int, Pointer]]:
    """Return the pointers that each instruction's registers hold before it, by their later use.

    Args:
        code: of one function.
        functions: that it calls.
        result: the type that it returns.
        holders: returns the structs that have a type at an offset, in bytes.
    """
    count = len(code.instructions)
    known = _Known(functions, result, Frames(code))
    nothing: _Uses = {}
    before = [nothing] * count  # instructions that change none of them share the uses behind them
    todo, waiting = list(range(count)), set(range(count))
    for _ in range(_ROUNDS * count):
        if not todo:
            break
        number = todo.pop()
        waiting.discard(number)
        followers = code.next[number]
        if len(followers) == 1:
            uses = before[followers[0]]
        else:
            uses = _join(before[follower] for follower in followers) if followers else nothing
        if not _is_idle(code, number, uses, known.frames):
            uses = _before(code, number, dict(uses), known)
        if uses is not before[number] and uses != before[number]:
            before[number] = uses
            fresh = [one for one in code.before[number] if one not in waiting]
            todo += fresh
            waiting.update(fresh)
    else:
        return [{} for _ in range(count)]  # no fixed point: nothing is known
    accesses = _accesses(code, before)
    pointers: dict[frozenset[Use], Pointer | None] = {}
    for uses in {id(uses): uses for uses in before}.values():
        for several in uses.values():
            if several not in pointers:
                place = object_at(several, accesses.get(several, ()), holders)
                pointers[several] = place and Pointer(*place, by_use=True)
    held: dict[int, Mapping[int, Pointer]] = {}
    for uses in before:
        if id(uses) not in held:
            held[id(uses)] = {
                register: pointer
                for register, several in uses.items()
                if register > 0 and register != Register.RSP
                if (pointer := pointers[several]) is not None
            }
    return [held[id(uses)] for uses in before]


def _is_idle(code: Code, number: int, behind: _Uses, frames: Frames) -> bool:
    """Return True for an instruction inside of a function that changes none of the used places."""
    instruction = code.instructions[number]
    flow = instruction.flow_control
    goes_on = flow in _GOES_ON or (flow == FlowControl.UNCONDITIONAL_BRANCH and code.next[number])
    if not goes_on or not code.written[number].isdisjoint(behind):
        return False
    kind = instruction.op0_kind
    if not behind:
        return True
    if instruction.mnemonic == Mnemonic.PUSH:
        return frames.pushed(number) not in behind
    if kind == OpKind.MEMORY:
        return frames.slot(number, instruction) not in behind
    return kind != OpKind.REGISTER or int(instruction.op0_register) not in behind


def _accesses(code: Code, before: list[_Uses]) -> dict[frozenset[Use], set[tuple[int, int]]]:
    """Return the offsets and sizes that instructions touch, by the uses of their register."""
    found: dict[frozenset[Use], set[tuple[int, int]]] = defaultdict(set)
    for instruction, uses in zip(code.instructions, before, strict=True):
        several = uses.get(int(instruction.memory_base)) if uses else None
        if several and int(instruction.memory_index) == Register.NONE:
            access = access_of(instruction)
            if access is not None:
                found[several].add((displacement(instruction), access.size))
    return found


def _join(paths: Iterable[_Uses]) -> _Uses:
    joined: _Uses = {}
    for uses in paths:
        for register, several in uses.items():
            known = joined.get(register)
            joined[register] = several if known is None else _both(known, several)
    return joined


def _both(one: frozenset[Use], other: frozenset[Use]) -> frozenset[Use]:
    if one is other or not one or not other:
        return one and other
    both = one | other
    return both if len(both) <= _MOST else _TOO_MANY


def _before(code: Code, number: int, uses: _Uses, known: _Known) -> _Uses:
    """Return the uses before an instruction, given these behind it."""
    instruction = code.instructions[number]
    flow = instruction.flow_control
    if flow in _CALLS:
        for register in _CALLER_SAVED:
            uses.pop(register, None)
    is_tail = flow == FlowControl.UNCONDITIONAL_BRANCH and not code.next[number]
    is_direct = instruction.op0_kind in (OpKind.NEAR_BRANCH64, OpKind.NEAR_BRANCH32)
    if flow == FlowControl.CALL or (is_tail and is_direct):
        if is_tail and known.functions.returns(instruction.near_branch_target):
            _use(uses, Register.RAX, known.result)
            return uses
        prototype = known.functions.prototype(instruction.near_branch_target)
        if prototype is not None:
            for key, of in places_of(prototype.parameters):
                if key > 0:
                    _use(uses, key, of)
        return uses
    if flow == FlowControl.RETURN:
        _use(uses, Register.RAX, known.result)
        return uses
    _move(code, number, uses, known.frames)
    return uses


def _use(uses: _Uses, register: int, of: Type | None) -> None:
    pointer = pointer_of(of)
    if pointer is not None and is_record(pointer.of):
        stripped = bare(pointer.of)
        assert stripped is not None
        uses[register] = frozenset((Use(stripped, 0),))


def _move(code: Code, number: int, uses: _Uses, frames: Frames) -> None:
    """Carry the uses of the changed place to the one that its value comes from."""
    instruction = code.instructions[number]
    target = _target(instruction, number, frames)
    behind = uses.get(target) if target is not None else None
    if not is_choice(instruction):
        for changed in code.written[number]:
            uses.pop(changed, None)
        if target is not None and target < 0 and _writes_memory(instruction):
            uses.pop(target, None)
    found = _source(instruction, number, frames) if behind is not None else None
    if behind is None or found is None:
        return
    source, constant = found
    if constant:
        behind = frozenset(Use(use.of, use.offset + constant) for use in behind)
    uses[source] = _both(uses[source], behind) if source in uses else behind


def _writes_memory(instruction: Instruction) -> bool:
    access = access_of(instruction)
    return access is None or access.writes


def _target(instruction: Instruction, number: int, frames: Frames) -> int | None:
    """Return the register, or the slot, of eight bytes that an instruction changes."""
    if instruction.mnemonic == Mnemonic.PUSH:
        return frames.pushed(number)
    if instruction.op0_kind == OpKind.MEMORY:
        return frames.slot(number, instruction)
    if instruction.op0_kind != OpKind.REGISTER:
        return None
    return _whole(instruction.op0_register)


def _source(instruction: Instruction, number: int, frames: Frames) -> tuple[int, int] | None:
    """Return the place that an instruction's value comes from, and the constant it adds."""
    mnemonic = instruction.mnemonic
    if mnemonic == Mnemonic.PUSH:
        register = _whole(instruction.op0_register) if _is_register(instruction, 0) else None
        return None if register is None else (register, 0)
    if mnemonic == Mnemonic.POP:
        slot = frames.popped(number)
        return None if slot is None else (slot, 0)
    if mnemonic == Mnemonic.MOV or is_choice(instruction):
        if _is_register(instruction, 1):
            register = _whole(instruction.op1_register)
            return None if register is None else (register, 0)
        is_load = instruction.op1_kind == OpKind.MEMORY
        slot = frames.slot(number, instruction) if is_load else None
        return None if slot is None else (slot, 0)
    if mnemonic == Mnemonic.LEA and instruction.memory_index == Register.NONE:
        base = int(instruction.memory_base)
        is_fixed = base in (Register.RIP, Register.NONE)
        return None if is_fixed else (base, displacement(instruction))
    constant = constant_of(instruction)
    if constant is None or instruction.op0_kind != OpKind.REGISTER:
        return None
    if mnemonic in (Mnemonic.ADD, Mnemonic.SUB):
        return int(instruction.op0_register), constant * (1 if mnemonic == Mnemonic.ADD else -1)
    if mnemonic == Mnemonic.AND and _LOWEST_BITS <= constant < 0:
        return int(instruction.op0_register), 0
    return None


def _is_register(instruction: Instruction, operand: int) -> bool:
    return bool(instruction.op_kind(operand) == OpKind.REGISTER)


def _whole(register: int) -> int | None:
    """Return a general register if it has 64 bits."""
    return int(register) if is_whole(register) else None
