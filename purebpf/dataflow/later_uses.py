"""The types of registers by their later use: backward from the arguments of calls.

A register that some path passes to a function as a `struct file *` holds one, or a pointer to its
start. C allows casts, so that these types are inferred, and weaker than a declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register, RegisterExt

from purebpf.dataflow.btf_types import Prototype
from purebpf.dataflow.code import Code, displacement, full
from purebpf.dataflow.flow import Pointer, pointer_of
from purebpf.dataflow.layout import is_record
from purebpf.dataflow.types import Type, bare

__all__ = ["ARGUMENTS", "later_uses"]

ARGUMENTS = (
    *(Register.RDI, Register.RSI, Register.RDX),
    *(Register.RCX, Register.R8, Register.R9),
)
"""System V AMD64 ABI, figure 3.4."""
_CALLER_SAVED = (*ARGUMENTS, Register.RAX, Register.R10, Register.R11)
_CALLS = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
_WORD = 8
_ROUNDS = 32
_CLASH = None
"""The uses disagree."""
_Uses = dict[int, Type | None]


def later_uses(
    code: Code, prototype: Callable[[int], Prototype | None], result: Type | None
) -> list[Mapping[int, Pointer]]:
    """Return the pointers that each instruction's registers hold before it, by their later use.

    Args:
        code: of one function.
        prototype: of the function at an address.
        result: the type that the function returns.
    """
    count = len(code.instructions)
    before: list[_Uses] = [{} for _ in range(count)]
    todo, waiting = list(range(count)), set(range(count))
    for _ in range(_ROUNDS * count):
        if not todo:
            break
        number = todo.pop()
        waiting.discard(number)
        uses = _join(before[follower] for follower in code.next[number])
        uses = _before(code, number, uses, prototype, result)
        if uses != before[number]:
            before[number] = uses
            fresh = [one for one in code.before[number] if one not in waiting]
            todo += fresh
            waiting.update(fresh)
    else:
        return [{} for _ in range(count)]  # no fixed point: nothing is known
    return [
        {register: Pointer(of, 0, by_use=True) for register, of in uses.items() if of is not None}
        for uses in before
    ]


def _join(paths: Iterable[_Uses]) -> _Uses:
    joined: _Uses = {}
    for uses in paths:
        for register, of in uses.items():
            joined[register] = of if joined.get(register, of) is of else _CLASH
    return joined


def _before(
    code: Code,
    number: int,
    uses: _Uses,
    prototype: Callable[[int], Prototype | None],
    result: Type | None,
) -> _Uses:
    """Return the uses before an instruction, given these behind it."""
    instruction = code.instructions[number]
    flow = instruction.flow_control
    is_direct = flow == FlowControl.CALL
    if flow in _CALLS:
        for register in _CALLER_SAVED:
            uses.pop(register, None)
    if flow == FlowControl.UNCONDITIONAL_BRANCH and not code.next[number]:
        is_direct = instruction.op0_kind in (OpKind.NEAR_BRANCH64, OpKind.NEAR_BRANCH32)
    if is_direct:
        called = prototype(instruction.near_branch_target)
        if called is not None:
            for register, of in zip(ARGUMENTS, called.parameters, strict=False):
                _use(uses, register, of)
        return uses
    if flow == FlowControl.RETURN:
        _use(uses, Register.RAX, result)
        return uses
    source = _copied(instruction)
    moved = uses.get(full(instruction.op0_register)) if source is not None else None
    for changed in code.written[number]:
        uses.pop(changed, None)
    if source is not None and moved is not None:
        uses[source] = moved
    return uses


def _use(uses: _Uses, register: int, of: Type | None) -> None:
    pointer = pointer_of(of)
    if pointer is not None and is_record(pointer.of):
        uses[register] = bare(pointer.of)


def _copied(instruction: Instruction) -> int | None:
    """Return the register that an instruction copies into another one; None: it does not."""
    if instruction.op0_kind != OpKind.REGISTER:
        return None
    if RegisterExt.size(instruction.op0_register) != _WORD:
        return None
    if instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.REGISTER:
        return int(instruction.op1_register)
    is_plain = instruction.memory_index == Register.NONE and not displacement(instruction)
    if instruction.mnemonic == Mnemonic.LEA and is_plain:
        return int(instruction.memory_base)
    return None
