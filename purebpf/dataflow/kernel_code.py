"""Claims for addresses of the kernel, each function decoded and followed once."""

from __future__ import annotations

import re
from collections.abc import Callable

from iced_x86 import Register

from purebpf.dataflow.btf_types import BtfTypes, Prototype
from purebpf.dataflow.claims import Claim, Unclaimed, claim_at, claim_before, sampled_operand
from purebpf.dataflow.code import Access, Code, displacement
from purebpf.dataflow.flow import Flow
from purebpf.dataflow.kernel_scope import KernelScope
from purebpf.dataflow.later_uses import Functions
from purebpf.dataflow.pointers import Pointer
from purebpf.dataflow.types import Kind, Type
from purebpf.tuples import NamedTuple

__all__ = ["Argument", "KernelCode", "Site", "Span"]

_NAMES: dict[int, str] = {
    int(getattr(Register, name.upper())): name
    for name in (
        *("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp"),
        *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
    )
}
_THUNK = re.compile(r"(?:__pi_)?__x86_indirect_thunk_(r\w+)")
_ASSEMBLY = {
    "__raw_callee_save___pv_queued_spin_unlock": "qspinlock",
    "__raw_callee_save___native_queued_spin_unlock": "qspinlock",
}
"""The struct that the argument of a function in assembly language leads to."""
_RETURN_THUNK = "return_thunk"
"""`__x86_return_thunk`, `srso_alias_return_thunk` and others: the kernel patches its returns."""
_CLONE = re.compile(r"(?:\.(?:constprop|isra|part)\.\d+)+$")
"""The end of the names of copies with other parameters. What callers use of a result is kept."""
_LONGEST = 1 << 16
"""Bytes of a function; larger ones are not followed."""
NO_FUNCTION = "code without a symbol"
TOO_LONG = f"functions of more than {_LONGEST >> 10} KiB"
NOT_READ = "code that could not be read"


class Span(NamedTuple):
    """A function: its first address, the one behind it, and its name."""

    start: int
    end: int
    name: str


class Site(NamedTuple):
    """The memory operand that a sample belongs to: one register, and a constant.

    Attributes:
        register: its name, such as `rbx`; it holds the same address at the sample.
        displacement: the constant, in bytes.
        access: how it is touched.
        type, offset: the object that the register is known to lead to; None: unknown.
    """

    register: str
    displacement: int
    access: Access
    type: Type | None
    offset: int


class Argument(NamedTuple):
    """The first argument of a call: a pointer `offset` bytes into an object of a type.

    Attributes:
        function: the called function.
        type, offset: the object; None: unknown.
    """

    function: Span
    type: Type | None
    offset: int


class KernelCode:
    """The data that the code of the kernel touches.

    Args:
        types: of the kernel.
        function: returns the function that contains an address.
        read: returns bytes of code by address and size, as they run.
        per_cpu: the address of the section of per-CPU variables; None: unknown.

    Attributes:
        types: of the kernel.
    """

    def __init__(
        self,
        types: BtfTypes,
        function: Callable[[int], Span | None],
        read: Callable[[int, int], bytes],
        per_cpu: int | None,
    ) -> None:
        self.types = types
        self._types, self._function, self._read = types, function, read
        self._per_cpu = per_cpu
        self._flows: dict[int, Flow | str] = {}
        self._prototypes: dict[int, Prototype | None] = {}

    def claim(self, address: int, *, is_precise: bool) -> tuple[str, Claim | Unclaimed | str]:
        """Return the function at an address, and the data that a sample there belongs to.

        Args:
            address: in the kernel.
            is_precise: the event points at the instruction that caused it. A timer's does not:
                its sample belongs to the instruction before.
        """
        span = self._function(address)
        if span is None:
            return "", NO_FUNCTION
        flow = self._flow(span)
        if isinstance(flow, str):
            return span.name, flow
        return span.name, (claim_at if is_precise else claim_before)(flow, address)

    def site(self, address: int, *, is_precise: bool) -> Site | None:
        """Return the memory operand that a sample at an address belongs to.

        None: several, or it has an index or a segment, or its register changed since.
        """
        flow = self.flow(address)
        found = None if flow is None else sampled_operand(flow, address, is_precise=is_precise)
        if flow is None:
            return None
        return None if found is None else self._site(flow, *found, is_precise=is_precise)

    def flow(self, address: int) -> Flow | None:
        """Return the pointers of the function at an address; None: it cannot be followed."""
        span = self._function(address)
        flow = None if span is None else self._flow(span)
        return flow if isinstance(flow, Flow) else None

    @staticmethod
    def _site(flow: Flow, number: int, access: Access, *, is_precise: bool) -> Site | None:
        instruction, state = flow.code.instructions[number], flow.before[number]
        base = int(instruction.memory_base)
        is_plain = (
            int(instruction.memory_index) == Register.NONE
            and int(instruction.segment_prefix) == Register.NONE
        )
        is_kept = is_precise or base not in flow.code.written[number]
        name = _NAMES.get(base)
        if not is_plain or not is_kept or name is None or state is None:
            return None
        pointer = state.get(base)
        is_known = pointer is not None and not pointer.moved and not pointer.is_per_cpu
        of, offset = (pointer.of, pointer.offset) if pointer is not None and is_known else (None, 0)
        return Site(name, displacement(instruction), access, of, offset)

    def argument(self, address: int) -> Argument | None:
        """Return the first argument of the call that returns to an address.

        None: there is no call of a known function, or its argument is unknown.
        """
        flow = self.flow(address - 1)
        if flow is None:
            return None
        number = flow.code.index.get(flow.code.calls.get(address, 0))
        if number is None:
            return None
        instruction = flow.code.instructions[number]
        state = flow.before[number]
        called = self._function(instruction.near_branch_target)
        if state is None or called is None or called.start != instruction.near_branch_target:
            return None
        pointer: Pointer | None = state.get(Register.RDI)
        if pointer is None or pointer.of is None or pointer.is_per_cpu or pointer.moved:
            return None
        return Argument(called, pointer.of, pointer.offset)

    def _flow(self, span: Span) -> Flow | str:
        known = self._flows.get(span.start)
        if known is None:
            known = self._flows[span.start] = self._follow(span)
        return known

    def _follow(self, span: Span) -> Flow | str:
        size = span.end - span.start
        if size > _LONGEST:
            return TOO_LONG
        read = self._read(span.start, size)
        if not read:
            return NOT_READ
        code = Code(read, span.start, warns=True)
        own = self._own(span.name)
        functions = Functions(self._prototype, self._returns, self._thunk)
        scope = KernelScope(self._types, code, own, functions, self._per_cpu, name=span.name)
        return Flow(code, scope)

    def _own(self, name: str) -> Prototype | None:
        """Return the prototype of a function; BTF has none for those in assembly language."""
        found = self._types.prototype(name)
        struct = _ASSEMBLY.get(name)
        if found is not None or struct is None:
            return found
        of = Type(Kind.POINTER)
        of.target = self._types.struct(struct)
        return Prototype((of,), None)

    def _called(self, name: str) -> Prototype | None:
        found = self._own(name)
        original = _CLONE.sub("", name)
        if found is None and original != name:
            found = self._own(original)
            found = found and Prototype((), found.result)
        return found

    def _thunk(self, address: int) -> int | None:
        found = _THUNK.fullmatch(self._name(address))
        return None if found is None else getattr(Register, found[1].upper(), None)

    def _returns(self, address: int) -> bool:
        return self._name(address).endswith(_RETURN_THUNK)

    def _name(self, address: int) -> str:
        """Return the name of the function that begins at an address; "" if none does."""
        span = self._function(address)
        return "" if span is None or span.start != address else span.name

    def _prototype(self, address: int) -> Prototype | None:
        if address not in self._prototypes:
            span = self._function(address)
            is_start = span is not None and span.start == address
            self._prototypes[address] = (
                self._called(span.name) if span is not None and is_start else None
            )
        return self._prototypes[address]
