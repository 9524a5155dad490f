"""The pointers in each register before each instruction of a function: forward over its code.

A register holds a pointer with a declared type behind it: a variable that the debugging information
places there, a member that was loaded through another pointer, the address of a global variable, or
an address in the frame. Paths that disagree about a register leave it unknown; so does every
instruction that is not understood.
"""

from __future__ import annotations

from heapq import heappop, heappush

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind, Register

from purebpf.dataflow.code import (
    Code,
    access_of,
    access_size,
    constant_of,
    displacement,
    full,
    is_choice,
    is_whole,
)
from purebpf.dataflow.containers import contains, fits
from purebpf.dataflow.declarations import Scope
from purebpf.dataflow.layout import is_record, overlaid
from purebpf.dataflow.numbers import clears_byte, half_product, is_null, product
from purebpf.dataflow.pointers import (
    NULL,
    SLOT,
    Pointer,
    State,
    choose,
    factor_of,
    find_in,
    held,
    inside,
    is_inside,
    merge,
    move,
    pointer_of,
    wrap,
)
from purebpf.dataflow.types import Kind, Type, bare, byte_size

__all__ = ["Flow"]

_CALLER_SAVED = (
    *(Register.RAX, Register.RCX, Register.RDX, Register.RSI, Register.RDI),
    *(Register.R8, Register.R9, Register.R10, Register.R11),
)
"""System V AMD64 ABI, figure 3.4."""
_CALLS = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
_WORD = 8
_PAGE = 4096
_BYTE = 8
_ALIGNED = 1 << 24
_FIXED = 0x400000
"""The lowest address of a variable in a program that is not position-independent."""
_PAGES = ("page", "folio", "slab", "ptdesc")
_BEHIND = 32
"""Instructions behind a load, on all paths, that say which pointer of a union it was."""
_LARGEST = 64
"""Bytes of a store whose size is not known."""
_ROUNDS = 64
"""Visits of an instruction, on average, until a function counts as too difficult."""


class Flow:
    """The states of one function.

    Args:
        code: its instructions.
        scope: its declarations.

    Attributes:
        before: the state before each instruction; None where no path leads.
    """

    def __init__(self, code: Code, scope: Scope) -> None:
        self.code, self.scope = code, scope
        self.before: list[State | None] = [None] * len(code.instructions)
        self._masks = {
            int(one.op0_register)
            for one in code.instructions
            if one.mnemonic == Mnemonic.SBB and one.op0_register == one.op1_register
        }
        """Registers that are all ones or zero, so that speculation reads NULL."""
        self._run()

    def _run(self) -> None:
        count = len(self.code.instructions)
        if not count:
            return
        self._join(0, {Register.RSP: Pointer(None, -_WORD), **self.scope.entered()})
        todo, fresh = [0], 0
        done: set[int] = set()
        waiting: set[int] = set()
        for _ in range(_ROUNDS * count):
            if not todo:  # cases of a switch: only declarations are known there
                if not fresh and not self._has_hidden_paths():
                    done = {number for number in range(count) if self.before[number] is not None}
                while fresh < count and self._is_settled(fresh):
                    fresh += 1
                if fresh == count:
                    return
                self._join(fresh, {})
                todo.append(fresh)
            number = heappop(todo)
            waiting.discard(number)
            state = self.before[number]
            assert state is not None
            after = self._step(number, state)
            for one in self.code.next[number]:
                if one not in done and self._join(one, after) and one not in waiting:
                    waiting.add(one)
                    heappush(todo, one)
        self.before = [None] * count  # no fixed point: nothing is known

    def _has_hidden_paths(self) -> bool:
        """Return True if code that no known path leads to may run, and go on in other code.

        The kernel has code behind branches that are turned off (static keys), which it patches.
        """
        return self.scope.unwinds or any(
            one.flow_control == FlowControl.INDIRECT_BRANCH for one in self.code.instructions
        )

    def _is_settled(self, number: int) -> bool:
        return self.before[number] is not None or self.code.is_padding(number)

    def _join(self, number: int, state: State) -> bool:
        """Merge a state into the one before an instruction; return True if that changes it."""
        known = self.before[number]
        if known is state:
            return False
        follows_elements = self.scope.follows_elements
        merged = state if known is None else merge(known, state, follows_elements=follows_elements)
        address = self.code.instructions[number].ip
        declared = self.scope.declared(address)
        if declared:
            merged = dict(merged)
            for register, pointer in declared.items():
                if merged.get(register) != pointer:
                    merged[register] = choose(merged.get(register), pointer)
        used = self.scope.used(address)
        if used and any(held(merged, register) is None for register in used):
            merged = {**merged, **{key: used[key] for key in used if held(merged, key) is None}}
        if known is not None and merged == known:
            return False
        self.before[number] = merged
        return True

    def address(self, instruction: Instruction, state: State) -> Pointer | None:
        """Return the pointer that a memory operand adds up to; None: unknown.

        An operand with an index leads to an element.
        """
        base, index = int(instruction.memory_base), int(instruction.memory_index)
        constant = displacement(instruction)
        is_gs = int(instruction.segment_prefix) == Register.GS
        if is_gs or int(instruction.segment_prefix) == Register.FS:
            return self._on_this_cpu(instruction, state) if is_gs else None
        pointer = held(state, base)
        if base in (Register.RIP, Register.NONE) or (pointer is None and constant >= _FIXED):
            found = self.scope.at(constant)
            if found is None or found[0] is None:
                return None
            by_base = 0 if base in (Register.RIP, Register.NONE) else 1
            scale = instruction.memory_index_scale if index != Register.NONE else 0
            return Pointer(*found, by_base or scale, is_fixed=True)
        if pointer is None and constant:  # the register has the offset of a CPU
            found = self.scope.per_cpu(constant, is_plain=True)
            if found is not None:
                return Pointer(*found, is_fixed=True)
        if index == Register.NONE:
            return None if pointer is None else pointer._replace(offset=pointer.offset + constant)
        scale = instruction.memory_index_scale
        other = held(state, index) if scale == 1 else None
        if (pointer is None) == (other is None):
            return None
        known = pointer if pointer is not None else other
        if known is None or known.of is None:
            return None
        if known.is_per_cpu and scale == 1:  # the other register has the offset of a CPU
            return known._replace(offset=known.offset + constant, is_per_cpu=False)
        step = scale * factor_of(state, index if pointer is not None else base)
        return move(known, constant, step)

    def place(self, instruction: Instruction, state: State) -> Pointer | None:
        """Return the object that a memory operand touches, and the place in it; None: unknown.

        It differs from `address` where code steps from a member to the struct around it.
        """
        place = self.address(instruction, state)
        if place is None or place.of is None or place.is_fixed or self.scope.follows_elements:
            return place
        size = access_size(instruction)
        if place.moved or is_inside(place, size):
            return place
        used = self.scope.used(instruction.ip).get(int(instruction.memory_base))
        if used is not None and used.of is not None:
            moved = used._replace(offset=used.offset + displacement(instruction))
            start = moved.offset - place.offset
            if is_inside(moved, size) and contains(used.of, start, place.of):
                return moved
        return self.scope.around(place, size, self.value(instruction)) or place

    def value(self, instruction: Instruction) -> Pointer | None:
        """Return the pointer that a load leaves in its register, by its later use."""
        is_load = instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.MEMORY
        if not is_load or not is_whole(instruction.op0_register):
            return None
        return self.scope.used(instruction.next_ip).get(int(instruction.op0_register))

    def _on_this_cpu(self, instruction: Instruction, state: State) -> Pointer | None:
        """Return the place of an operand behind `gs:`: a variable, or one that a register names.

        A register holds a per-CPU pointer then, such as `kmem_cache.cpu_slab`.
        """
        base, index = int(instruction.memory_base), int(instruction.memory_index)
        constant = displacement(instruction)
        scale = instruction.memory_index_scale if index != Register.NONE else 0
        if base in (Register.RIP, Register.NONE):
            found = self.scope.per_cpu(constant, is_plain=False)
            return None if found is None else Pointer(*found, scale, is_fixed=True)
        pointer = held(state, base)
        if pointer is None or pointer.of is None:
            return None
        pointer = pointer._replace(offset=pointer.offset + constant, is_per_cpu=False)
        return move(pointer, 0, scale) if scale else pointer

    def _loaded(self, instruction: Instruction, state: State) -> Pointer | None:
        """Return the pointer that a load of eight bytes puts into its register."""
        place = self.place(instruction, state)
        if place is None:
            return None
        of, offset = place.of, place.offset
        if of is None:
            variable = self.scope.on_stack(instruction.ip, offset, state)
            if variable is None:
                return state.get(SLOT - offset)
            of, offset = variable
        if self.scope.follows_elements:
            within = inside(place._replace(of=of, offset=offset))
            if within is None:
                return None
            offset = within
        elif offset >= byte_size(of):
            return None
        found = find_in(of, offset, _WORD)
        if found is None and not self.scope.follows_elements:
            loaded = self._overlaid(instruction, of, offset)
        else:
            loaded = pointer_of(found)
            if loaded is None or not is_record(loaded.of):
                loaded = self.scope.cast(of, offset) or loaded
        return loaded._replace(by_use=True) if loaded is not None and place.by_use else loaded

    def _overlaid(self, instruction: Instruction, of: Type | None, offset: int) -> Pointer | None:
        """Return the one pointer of a union that fits what the code does with it next.

        The structs that share the memory of a `struct page` are not members of its unions.
        """
        record = bare(of)
        used = self.scope.used(instruction.next_ip).get(int(instruction.op0_register))
        if record is None or record.name in _PAGES or used is not None:
            return None
        targets = {bare(one.target) for one in overlaid(of, offset)}
        records = [one for one in targets if one is not None and is_record(one)]
        if not records:
            return None
        touched = self._touched(instruction)
        fitting = [one for one in records if all(fits(one, *access) for access in touched)]
        return Pointer(fitting[0], 0, by_use=True) if touched and len(fitting) == 1 else None

    def _touched(self, load: Instruction) -> list[tuple[int, int]]:
        """Return the offsets and sizes that code right behind a load touches by its register."""
        register, found = int(load.op0_register), []
        todo = list(self.code.next[self.code.index[load.ip]])
        for number in todo:  # grows
            one = self.code.instructions[number]
            access = access_of(one) if int(one.memory_base) == register else None
            if access is not None and int(one.memory_index) == Register.NONE:
                found.append((displacement(one), access.size))
            is_call = one.flow_control in _CALLS and register in _CALLER_SAVED
            if register not in self.code.written[number] and not is_call and len(todo) < _BEHIND:
                todo += [fresh for fresh in self.code.next[number] if fresh not in todo]
        return found

    def _step(self, number: int, state: State) -> State:
        """Return the state after an instruction."""
        instruction = self.code.instructions[number]
        if instruction.flow_control in _CALLS:
            return self._call(instruction, state)
        if instruction.mnemonic in (Mnemonic.PUSH, Mnemonic.POP):
            return _moved_stack(instruction, state)
        if not self.code.written[number] and instruction.op0_kind != OpKind.MEMORY:
            return state  # a comparison, or a branch
        after = dict(state)
        for register in self.code.written[number]:
            after.pop(register, None)
        if instruction.op0_kind == OpKind.MEMORY:
            self._store(instruction, state, after)
        elif is_null(instruction):
            after[full(instruction.op0_register)] = NULL
        elif clears_byte(instruction):
            known = held(state, full(instruction.op0_register))
            value = self.scope.decoded(known, _BYTE)
            if value is not None:
                after[full(instruction.op0_register)] = value
        elif instruction.op0_kind == OpKind.REGISTER:
            register = instruction.op0_register
            if is_whole(register):
                value = self._value(instruction, state) or product(instruction, state)
            else:
                value = half_product(instruction, state)
            if value is not None:
                after[full(register)] = value
        return after

    def _call(self, instruction: Instruction, state: State) -> State:
        after = {key: value for key, value in state.items() if key not in _CALLER_SAVED}
        result = pointer_of(self._result(instruction, state))
        if result is not None:
            after[Register.RAX] = result
        return after

    def _result(self, instruction: Instruction, state: State) -> Type | None:
        """Return the type that a called function returns; None: unknown, or void."""
        if instruction.flow_control == FlowControl.CALL:
            register = self.scope.jumps_to(instruction.near_branch_target)
            if register is None:
                return self.scope.returns(instruction.near_branch_target)
            pointer = held(state, register)
        elif instruction.op0_kind == OpKind.MEMORY:
            pointer = self._loaded(instruction, state)
        else:
            pointer = held(state, instruction.op0_register)
        called = None if pointer is None or pointer.offset or pointer.moved else bare(pointer.of)
        return called.target if called is not None and called.kind is Kind.FUNCTION else None

    def _store(self, instruction: Instruction, state: State, after: dict[int, Pointer]) -> None:
        """Follow a store into the frame."""
        place = self.address(instruction, state)
        if place is None or place.of is not None:
            return
        size = access_size(instruction) or _LARGEST
        for offset in range(place.offset - _WORD + 1, place.offset + size):
            after.pop(SLOT - offset, None)
        if instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.REGISTER:
            value = state.get(instruction.op1_register)
            if value is not None:
                after[SLOT - place.offset] = value

    def _value(self, instruction: Instruction, state: State) -> Pointer | None:
        """Return the pointer that an instruction leaves in its 64-bit register."""
        mnemonic, kind = instruction.mnemonic, instruction.op1_kind
        known = held(state, instruction.op0_register)
        if mnemonic == Mnemonic.MOV and kind == OpKind.REGISTER:
            return state.get(instruction.op1_register)
        if mnemonic == Mnemonic.MOV and kind == OpKind.MEMORY:
            return self._loaded(instruction, state)
        if mnemonic == Mnemonic.LEA:
            return self._wrap(self.address(instruction, state))
        if is_choice(instruction):
            return self._chosen(instruction, state)
        if mnemonic == Mnemonic.AND:
            return self._aligned(instruction, known)
        constant = constant_of(instruction)
        if constant is not None and known is None and mnemonic in (Mnemonic.MOV, Mnemonic.ADD):
            found = self.scope.per_cpu(constant, is_plain=True)
            is_per_cpu = mnemonic == Mnemonic.MOV
            return found and Pointer(*found, is_fixed=True, is_per_cpu=is_per_cpu)
        if mnemonic in (Mnemonic.ADD, Mnemonic.SUB) and known is not None:
            if constant is not None:
                sign = 1 if mnemonic == Mnemonic.ADD else -1
                return self._wrap(known._replace(offset=known.offset + sign * constant))
            if known.is_per_cpu or self._is_offset_of_cpu(instruction):
                return known._replace(is_per_cpu=False)
            other = held(state, instruction.op1_register) if kind == OpKind.REGISTER else None
            if mnemonic == Mnemonic.ADD and other is None and known.of is not None:
                is_register = kind == OpKind.REGISTER
                return move(
                    known, 0, factor_of(state, instruction.op1_register) if is_register else 1
                )
        if mnemonic == Mnemonic.ADD and kind == OpKind.REGISTER and known is None:
            other = held(state, instruction.op1_register)
            if other is not None and other.is_per_cpu:
                return other._replace(is_per_cpu=False)
            if other is not None and other.of is not None:
                return move(other, 0, factor_of(state, instruction.op0_register))
        if mnemonic == Mnemonic.ADD and kind == OpKind.MEMORY and known is None:
            loaded = self._loaded(instruction, state)
            if loaded is not None and loaded.of is not None:
                return move(loaded, 0, factor_of(state, instruction.op0_register))
        return self.scope.computed(instruction.ip)

    def _is_offset_of_cpu(self, instruction: Instruction) -> bool:
        """Return True for an addition that leads from a per-CPU pointer to this CPU's variable."""
        is_gs = int(instruction.segment_prefix) == Register.GS
        return is_gs and self.scope.is_offset_of_cpu(displacement(instruction))

    def _chosen(self, instruction: Instruction, state: State) -> Pointer | None:
        """Return the pointer that a conditional move leaves: both sides must agree."""
        kept = state.get(instruction.op0_register)
        if instruction.op1_kind == OpKind.REGISTER:
            moved = state.get(instruction.op1_register)
        else:
            moved = self._loaded(instruction, state)
        if kept is None or moved is None:
            return None
        return merge({0: kept}, {0: moved}).get(0)

    def _aligned(self, instruction: Instruction, known: Pointer | None) -> Pointer | None:
        """Return a masked pointer: without flags, NULL under speculation, or an aligned frame.

        The distance of an aligned frame from the CFA is unknown, but its own slots are not: it
        gets a place far below.
        """
        if known is None:
            is_byte = constant_of(instruction) == -(1 << _BYTE)
            return self.scope.decoded(None, _BYTE) if is_byte else None
        if instruction.op1_kind == OpKind.REGISTER and instruction.op1_register in self._masks:
            return known
        mask = constant_of(instruction)
        if mask is None or not -_PAGE < mask < 0:
            return None
        if known.of is None:
            return known._replace(offset=known.offset - _ALIGNED)
        if mask == -(1 << _BYTE):
            return self.scope.decoded(known, _BYTE)
        is_inside = is_record(known.of) and 0 <= known.offset < byte_size(known.of)
        if mask < -_WORD or not (is_inside or not known.offset % _WORD):
            return None
        return known._replace(offset=known.offset & mask)

    def _wrap(self, pointer: Pointer | None) -> Pointer | None:
        is_stepping = self.scope.follows_elements or (
            pointer is not None and pointer.of is not None and not is_record(pointer.of)
        )
        return wrap(pointer) if is_stepping else pointer


def _moved_stack(instruction: Instruction, state: State) -> State:
    after = dict(state)
    stack = state.get(Register.RSP)
    register = instruction.op0_register if instruction.op0_kind == OpKind.REGISTER else None
    if instruction.mnemonic == Mnemonic.POP:
        if register is not None:
            after.pop(full(register), None)
        if stack is not None:
            after[Register.RSP] = stack._replace(offset=stack.offset + _WORD)
            value = state.get(SLOT - stack.offset)
            if register is not None and value is not None:
                after[register] = value
    elif stack is not None:
        offset = stack.offset - _WORD
        after[Register.RSP] = stack._replace(offset=offset)
        after.pop(SLOT - offset, None)
        value = state.get(register) if register is not None else None
        if value is not None:
            after[SLOT - offset] = value
    return after
