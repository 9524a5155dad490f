"""Claims: which member of which type an instruction touches, or why this is unknown."""

from __future__ import annotations

from enum import Enum

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register

from purebpf.dataflow.code import Access, Code, access_of, is_whole
from purebpf.dataflow.flow import Flow
from purebpf.dataflow.indexed import find_indexed
from purebpf.dataflow.layout import PADDING, SEVERAL, find, is_record, name_of
from purebpf.dataflow.pointers import TASK_STACK, Pointer, State, inside
from purebpf.dataflow.types import Kind, Type, bare, byte_size
from purebpf.tuples import NamedTuple

__all__ = ["Claim", "Unclaimed", "claim_at", "claim_before", "sampled_operand"]

_STRINGS = frozenset(
    (
        OpKind.MEMORY_SEG_RSI, OpKind.MEMORY_SEG_RDI, OpKind.MEMORY_ESRDI, OpKind.MEMORY_SEG_ESI,
        OpKind.MEMORY_SEG_EDI, OpKind.MEMORY_ESEDI,
    )
)  # fmt: skip
_ENDS = {OpKind.MEMORY_SEG_RSI: Register.RSI, OpKind.MEMORY_ESRDI: Register.RDI}
_FILLS = frozenset(
    (
        *(Mnemonic.STOSB, Mnemonic.STOSW, Mnemonic.STOSD, Mnemonic.STOSQ),
        *(Mnemonic.MOVSB, Mnemonic.MOVSW, Mnemonic.MOVSD, Mnemonic.MOVSQ),
    )
)
_STACK_WORDS = frozenset((Mnemonic.PUSH, Mnemonic.POP, Mnemonic.LEAVE, Mnemonic.RET))
_CALLS = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
_INTERRUPTS_ON = (Mnemonic.STI, Mnemonic.POPF, Mnemonic.POPFQ)
_COMPARES = (Mnemonic.CMP, Mnemonic.TEST)


class Unclaimed(Enum):
    """The reasons why an access has no type."""

    NO_OPERAND = "no memory operand"
    STACK = "on the stack"
    ENTRY = "first instruction of a function: the one that waited is in its caller"
    AFTER_CALL = "after a call: the one that waited is in the function that returned"
    SEVERAL_PATHS = "several paths lead there, and touch different data"
    UNKNOWN_BASE = "the type behind its register is unknown"
    UNKNOWN_VARIABLE = "at a fixed address without a variable"
    INCOMPLETE = "its type is only declared in this unit"
    INTERRUPTS_OFF = "interrupts were off: the sample was taken when they were on again"
    OUTSIDE = "outside the type behind its register"
    UNKNOWN_INDEX = "an index leads to one of several arrays of its type"
    THREAD = "thread-local, or relative to a segment"
    STRING = "a string instruction"
    USER = "memory of a program, which the kernel reads or writes"
    UNDECODED = "not an instruction of this function"
    UNREACHED = "no path leads to it"


class Claim(NamedTuple):
    """A member that an instruction touches.

    Attributes:
        type: the type that the pointer leads to, or of the variable.
        name: of this type; of an array, the name of its element.
        member: its path, such as `node.next`; "" for a type without members.
        offset, size: of the member in the type, in bytes.
        access: how it is touched.
        is_inferred: the pointer was moved by an index, or past the end of its object, so that it
            leads to another element if the program keeps to its types.
    """

    type: Type | None
    name: str
    member: str
    offset: int
    size: int
    access: Access
    is_inferred: bool

    @property
    def is_same(self) -> tuple[int, str]:
        """The part that two accesses to the same data share."""
        return id(bare(self.type)), self.member


def claim_before(flow: Flow, address: int) -> Claim | Unclaimed:
    """Return the access that a timer's sample belongs to.

    The interrupt of a software clock arrives when the instruction that waited is done, so that
    the sampled address is the one behind it. Several instructions may lead there; all must agree.

    Args:
        flow: the function.
        address: the sampled instruction.
    """
    code = flow.code
    number = code.index.get(address)
    if number is None:
        return Unclaimed.UNDECODED
    before = code.before[number]
    if not before:
        return Unclaimed.ENTRY if number == 0 else Unclaimed.UNREACHED
    if any(_turns_interrupts_on(code, one) for one in before):
        return Unclaimed.INTERRUPTS_OFF
    return _join([_claim_or_fused(flow, one) for one in before])


def _join(answers: list[Claim | Unclaimed]) -> Claim | Unclaimed:
    """Return the claim of a sample that may belong to any of several instructions.

    An instruction without a memory operand does not wait for data, so that the sample is inferred
    to belong to another one. If all others touch one type, it is known, and the member is not.
    """
    first = answers[0]
    if all(_is_same(first, other) for other in answers[1:]):
        return first
    claims = [one for one in answers if isinstance(one, Claim)]
    rest = {one for one in answers if isinstance(one, Unclaimed)}
    if not claims or not rest <= {Unclaimed.NO_OPERAND}:
        return Unclaimed.SEVERAL_PATHS
    first = claims[0]
    if any(bare(one.type) is not bare(first.type) for one in claims):
        return Unclaimed.SEVERAL_PATHS
    is_inferred = bool(rest) or any(one.is_inferred for one in claims)
    access = Access(
        any(one.access.reads for one in claims),
        any(one.access.writes for one in claims),
        max(one.access.size for one in claims),
    )
    if any(one.member != first.member for one in claims):
        first = first._replace(member=SEVERAL, offset=0, size=byte_size(first.type))
    return first._replace(access=access, is_inferred=is_inferred)


def _turns_interrupts_on(code: Code, number: int) -> bool:
    """Return True for STI, whose effect begins behind the next instruction, and for POPF."""
    if code.instructions[number].mnemonic in _INTERRUPTS_ON:
        return True
    return any(code.instructions[one].mnemonic == Mnemonic.STI for one in code.before[number])


def _is_same(one: Claim | Unclaimed, other: Claim | Unclaimed) -> bool:
    if isinstance(one, Claim) and isinstance(other, Claim):
        return one.is_same == other.is_same
    return one is other


def _claim_or_fused(flow: Flow, number: int) -> Claim | Unclaimed:
    """Return the claim of an instruction; of a branch, of the comparison fused with it."""
    code = flow.code
    instruction = code.instructions[number]
    if instruction.flow_control in _CALLS:
        return Unclaimed.AFTER_CALL
    return claim_at(flow, code.instructions[_compared(code, number)].ip)


def _compared(code: Code, number: int) -> int:
    """Return the comparison that is fused with a branch, or the instruction itself."""
    is_branch = code.instructions[number].flow_control == FlowControl.CONDITIONAL_BRANCH
    if is_branch and number > 0 and code.before[number] == [number - 1]:
        return number - (code.instructions[number - 1].mnemonic in _COMPARES)
    return number


def sampled_operand(flow: Flow, address: int, *, is_precise: bool) -> tuple[int, Access] | None:
    """Return the instruction whose memory operand a sample belongs to, and its use.

    None: there is no memory operand, or several instructions lead there.
    """
    code = flow.code
    number = code.index.get(address)
    if number is None:
        return None
    if not is_precise:
        before = code.before[number]
        if len(before) != 1 or _turns_interrupts_on(code, before[0]):
            return None
        number = _compared(code, before[0])
        if code.instructions[number].flow_control in _CALLS:
            return None
    access = access_of(code.instructions[number])
    return None if access is None else (number, access)


def claim_at(flow: Flow, address: int) -> Claim | Unclaimed:
    """Return the member that the instruction at an address touches, or why this is unknown."""
    number = flow.code.index.get(address)
    if number is None:
        return Unclaimed.UNDECODED
    instruction, state = flow.code.instructions[number], flow.before[number]
    if state is None:
        return Unclaimed.UNREACHED
    is_user = number in flow.code.opened
    answer = _special(instruction, state)
    if answer is None:
        answer = _claim_operand(flow, instruction, state, is_user=is_user)
    if is_user and answer in (Unclaimed.UNKNOWN_BASE, Unclaimed.STRING):
        return Unclaimed.USER
    return answer


def _claim_operand(
    flow: Flow, instruction: Instruction, state: State, *, is_user: bool
) -> Claim | Unclaimed:
    access = access_of(instruction)
    if access is None:
        return Unclaimed.NO_OPERAND
    place = flow.place(instruction, state)
    if place is None:
        claim = None if is_user else _claim_value(flow, instruction, state, access)
        return claim or _unplaced(instruction, state)
    if place.of is None:
        variable = flow.scope.on_stack(instruction.ip, place.offset, state)
        if variable is None or not _has_members(variable[0]):
            return Unclaimed.STACK
        place = Pointer(*variable)
    return _resolve(place, access, follows_elements=flow.scope.follows_elements)


def _unplaced(instruction: Instruction, state: State) -> Unclaimed:
    """Return the reason for an operand that leads to an unknown place."""
    if _is_in_segment(instruction):
        return Unclaimed.THREAD
    register = int(instruction.memory_base)
    if register in (Register.RIP, Register.NONE):
        return Unclaimed.UNKNOWN_VARIABLE
    base = state.get(register)
    is_stack = register == Register.RSP or (base is not None and base.of is None)
    return Unclaimed.STACK if is_stack else Unclaimed.UNKNOWN_BASE


def _claim_value(
    flow: Flow, instruction: Instruction, state: State, access: Access
) -> Claim | None:
    """Return the pointer that an unknown place contains, as a bucket of a hash table does.

    A load says it by the later use of its register, a store by the register that it stores.
    """
    value: Pointer | None = flow.value(instruction)
    is_move = instruction.mnemonic in (Mnemonic.MOV, Mnemonic.XCHG)
    if is_move and instruction.op0_kind == OpKind.MEMORY and is_whole(instruction.op1_register):
        value = state.get(int(instruction.op1_register))
    of = None if value is None else bare(value.of)
    if of is None or value is None or not is_record(of) or not 0 <= value.offset < byte_size(of):
        return None
    if int(instruction.memory_base) == Register.RSP:
        return None
    pointer = Type(Kind.POINTER)
    pointer.target = of
    return Claim(pointer, name_of(pointer), "", 0, access.size, access, True)


def _is_in_segment(instruction: Instruction) -> bool:
    return int(instruction.memory_segment) in (Register.FS, Register.GS)


def _has_members(of: Type | None) -> bool:
    stripped = bare(of)
    while stripped is not None and stripped.kind is Kind.ARRAY:
        stripped = bare(stripped.target)
    return is_record(stripped)


def _special(instruction: Instruction, state: State) -> Claim | Unclaimed | None:
    """Return the answer for invalid, stack and string instructions; None: it is another one."""
    if instruction.is_invalid:
        return Unclaimed.UNDECODED
    if instruction.mnemonic in _STACK_WORDS and instruction.op0_kind != OpKind.MEMORY:
        return Unclaimed.STACK
    kinds = {instruction.op_kind(number) for number in range(instruction.op_count)}
    if kinds & _STRINGS:
        return _claim_string(
            instruction,
            state,
            sorted((_ENDS[kind] for kind in kinds if kind in _ENDS), reverse=True),
        )
    return None


def _claim_string(instruction: Instruction, state: State, ends: list[int]) -> Claim | Unclaimed:
    """Return the struct that a string instruction fills, copies or compares, if there is one."""
    places = [state.get(end) for end in ends]
    known = [one for one in places if one is not None and one.of is not None]
    if places and not known and all(places):
        return Unclaimed.STACK
    first = known[0] if known else None
    others = [one for one in places if one is not first]
    is_sure = all(one is not None and one.of in (None, first and first.of) for one in others)
    if first is None or not is_sure or not is_record(first.of) or not byte_size(first.of):
        return Unclaimed.STRING
    of = first.of
    if not 0 <= first.offset < byte_size(of):
        return Unclaimed.OUTSIDE
    writes = places[0] is first and instruction.mnemonic in _FILLS
    access = Access(not writes, writes, byte_size(of))
    is_inferred = bool(first.moved) or first.by_use
    return Claim(of, name_of(of), SEVERAL, 0, byte_size(of), access, is_inferred)


def _resolve(place: Pointer, access: Access, *, follows_elements: bool) -> Claim | Unclaimed:
    of, offset = place.of, place.offset
    whole = byte_size(of)
    if of is TASK_STACK:
        return Unclaimed.STACK
    if not whole:
        stripped = bare(of)
        is_declared = stripped is not None and not stripped.is_complete
        return Unclaimed.INCOMPLETE if is_declared else Unclaimed.UNKNOWN_BASE
    is_inside = 0 <= offset < whole
    if not is_inside and not _is_open(of):
        within = inside(place) if follows_elements or not is_record(of) else None
        if within is None:
            return Unclaimed.OUTSIDE
        offset = within
    if place.moved > 0:
        found = find_indexed(of, offset, access.size, place.moved, is_fixed=place.is_fixed)
        if found is None:
            return Unclaimed.UNKNOWN_INDEX
    else:
        found = find(of, offset, access.size)
    if found.path.endswith(PADDING):
        return Unclaimed.OUTSIDE
    is_inferred = bool(place.moved) or not is_inside or place.by_use
    return Claim(of, name_of(of), found.path, found.offset, found.size, access, is_inferred)


def _is_open(of: Type | None) -> bool:
    """Return True for a record that ends in an array without a length."""
    stripped = bare(of)
    if stripped is None or not stripped.members:
        return False
    last = bare(stripped.members[-1].type)
    return last is not None and last.kind is Kind.ARRAY and not last.count
