"""The declarations that a function of the kernel can see, from BTF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from iced_x86 import Mnemonic, OpKind, Register

from purebpf.dataflow.btf_types import BtfTypes, Prototype
from purebpf.dataflow.code import Code
from purebpf.dataflow.containers import Hints, Use
from purebpf.dataflow.later_uses import Functions, later_uses, places_of
from purebpf.dataflow.layout import find
from purebpf.dataflow.pointers import TASK_STACK, Pointer, State, pointer_of
from purebpf.dataflow.types import Kind, Type, bare, byte_size

__all__ = ["KernelScope", "find_per_cpu"]

_WORD = 8
_TOP = (1 << 64) - 1
_HIGH = 1 << 63
_LEAST = 8
"""Distinct addresses behind `gs:` that a decision needs."""
_HITS = 0.5
"""The least share of them that are the start of a variable; others are members, or no code."""
_ENCODED = {("maple_enode", 8): "maple_node"}
"""Structs that are declared only, and the ones that their pointers lead to without some bits."""
_COUNTER = Type(Kind.SCALAR, "percpu_ref (per CPU)", _WORD)
"""The type behind `percpu_ref.percpu_count_ptr`, an `unsigned long` with flags."""
_CASTS = {("sk_buff", "_skb_refdst"): "dst_entry", ("fib_table", "tb_data"): "trie"}
"""The structs behind members that are declared as numbers, by struct and member."""
_TREES = ("ma_state", "ma_wr_state", "maple_tree")
_BITS = 8
_PAGE_BITS, _PAGE_ENTRY_BITS = 12, 6
_PAGE = 1 << _PAGE_BITS
"""The section is aligned to pages (include/asm-generic/vmlinux.lds.h, PERCPU_SECTION)."""
_GS = re.compile(
    rb"\x65[\x40-\x4f]?[\x8b\x89\x03\x3b\x39]"
    rb"(?:[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]|([\x04\x0c\x14\x1c\x24\x2c\x34\x3c]\x25))(....)",
    re.DOTALL,
)
"""Instructions with a constant address behind `gs:`, relative to RIP or absolute (in group 1)."""


def find_per_cpu(types: BtfTypes, code: bytes, address: int) -> int | None:
    """Return the address of the section of per-CPU variables; None: not known.

    kallsyms has no data symbols on many kernels, and the section starts at 0 up to Linux 6.14. It
    is where most constants behind `gs:` are the start of a variable.

    Args:
        types: of the kernel.
        code: of some functions.
        address: of the code.
    """
    used = set(_constants(code, address))
    starts = [variable.offset for variable in types.per_cpu]
    if len(used) < _LEAST or not starts:
        return None
    votes = Counter(
        (constant - start) & _TOP
        for constant in used
        for start in starts
        if not (constant - start) % _PAGE
    )
    if not votes:
        return None
    (base, hits), *others = votes.most_common(2)
    is_alone = not others or others[0][1] * 2 < hits
    return base if is_alone and hits >= _HITS * len(used) else None


def _constants(code: bytes, address: int) -> Iterator[int]:
    for found in _GS.finditer(code):
        constant = int.from_bytes(found[2], "little", signed=True)
        yield (constant if found[1] else address + found.end() + constant) & _TOP


def _pages(code: Code, page: Type | None) -> dict[int, Pointer]:
    """Return the pointers that `virt_to_page` makes, by the address of its last instruction.

    It shifts an address to the number of its page, this to the place of its `struct page` in an
    array, and adds the array's address, a variable.
    """
    found: dict[int, Pointer] = {}
    if page is None or byte_size(page) != 1 << _PAGE_ENTRY_BITS:
        return found
    for number, instruction in enumerate(code.instructions[2:], 2):
        if instruction.mnemonic != Mnemonic.ADD or instruction.op1_kind != OpKind.MEMORY:
            continue
        if int(instruction.memory_base) not in (Register.RIP, Register.NONE):
            continue
        shifts = code.instructions[number - 2 : number]
        steps = [(one.mnemonic, one.op0_register, one.op1_kind) for one in shifts]
        register = instruction.op0_register
        expected = [(name, register, OpKind.IMMEDIATE8) for name in (Mnemonic.SHR, Mnemonic.SHL)]
        bits = [one.immediate8 for one in shifts if one.op1_kind == OpKind.IMMEDIATE8]
        if steps == expected and bits == [_PAGE_BITS, _PAGE_ENTRY_BITS]:
            found[instruction.ip] = Pointer(page, 0, by_use=True)
    return found


class KernelScope:
    """The parameters, results and per-CPU variables; a `purebpf.dataflow.declarations.Scope`.

    Args:
        types: of the kernel.
        code: of the function.
        own: the prototype of the function; None: unknown.
        functions: that it calls.
        per_cpu: the address of the section of per-CPU variables; None: unknown.
        name: of the function.
    """

    follows_elements = unwinds = False

    def __init__(
        self,
        types: BtfTypes,
        code: Code,
        own: Prototype | None,
        functions: Functions,
        per_cpu: int | None,
        *,
        name: str,
    ) -> None:
        self._types, self._functions, self._per_cpu = types, functions, per_cpu
        self._own = own
        targets = [bare(one.of) for one in self.entered().values()]
        self._has_tree = any(one is not None and one.name in _TREES for one in targets)
        words = name.lstrip("_").split("_")
        self._family = f"{words[0]}_" if len(words) > 1 else ""
        result = own.result if own is not None else None
        uses = later_uses(code, functions, result, types.holders)
        self._pages = _pages(code, types.struct("page"))
        self._uses = {one.ip: each for one, each in zip(code.instructions, uses, strict=True)}

    def entered(self) -> Mapping[int, Pointer]:
        """Return the pointers among the function's parameters."""
        parameters = self._own.parameters if self._own is not None else ()
        pointers = ((key, pointer_of(of)) for key, of in places_of(parameters))
        return {key: pointer for key, pointer in pointers if pointer is not None}

    def used(self, address: int) -> Mapping[int, Pointer]:
        """Return the pointers in registers before an instruction, by their later use."""
        return self._uses.get(address, {})

    def declared(self, _address: int) -> Mapping[int, Pointer]:
        """Return nothing: BTF does not describe local variables."""
        return {}

    def on_stack(self, _at: int, _offset: int, _state: State) -> tuple[Type | None, int] | None:
        """Return None: BTF does not describe local variables."""
        return None

    def at(self, _address: int) -> tuple[Type | None, int] | None:
        """Return None: BTF has per-CPU variables only."""
        return None

    def returns(self, address: int) -> Type | None:
        """Return the type that the function at an address returns; None: unknown, or void."""
        called = self._functions.prototype(address)
        return None if called is None else called.result

    def computed(self, address: int) -> Pointer | None:
        """Return the pointer to the page of an address (`virt_to_page`)."""
        return self._pages.get(address)

    def around(self, pointer: Pointer, size: int, value: Pointer | None = None) -> Pointer | None:
        """Return a pointer outside its object as one into the struct around it.

        None: several structs have such a member, and fit.
        """
        assert pointer.of is not None
        use = None
        if value is not None and value.of is not None and value.offset <= 0:
            use = Use(value.of, -value.offset)
        found = self._types.around(pointer.of, pointer.offset, size, Hints(self._family, use))
        if found is None:
            return None
        of, start = found
        return pointer._replace(of=of, offset=pointer.offset + start, by_use=True)

    def decoded(self, pointer: Pointer | None, bits: int) -> Pointer | None:
        """Return the pointer to a node of a maple tree without its type, the lowest byte.

        The slots of nodes are `void *`; functions that have a tree take them from there.
        """
        if pointer is None:
            node = self._types.struct("maple_node") if self._has_tree and bits == _BITS else None
            return None if node is None else Pointer(node, 0, by_use=True)
        of = bare(pointer.of)
        struct = _ENCODED.get((of.name, bits)) if of is not None and not of.is_complete else None
        node = self._types.struct(struct) if struct is not None and not pointer.offset else None
        return None if node is None else Pointer(node, 0, by_use=pointer.by_use)

    def cast(self, of: Type | None, offset: int) -> Pointer | None:
        """Return the pointer in a member that is declared as `void *` or a number; None: unknown.

        File systems keep their own struct in `super_block.s_fs_info`.
        """
        record = bare(of)
        name, member = ("", "") if record is None else (record.name, find(of, offset, _WORD).path)
        if member == "stack" and name == "task_struct":
            return Pointer(TASK_STACK, 0)
        if member.endswith("percpu_count_ptr"):
            return Pointer(_COUNTER, 0, is_per_cpu=True)
        if member == "s_fs_info" and name == "super_block" and self._family:
            own = self._types.struct(f"{self._family}sb_info")
            return None if own is None else Pointer(own, 0, by_use=True)
        cast = _CASTS.get((name, member))
        struct = None if cast is None else self._types.struct(cast)
        return None if struct is None else Pointer(struct, 0, by_use=True)

    def is_offset_of_cpu(self, address: int) -> bool:
        """Return True for `this_cpu_off`, the distance of this CPU's variables."""
        if self._per_cpu is None:
            return False
        variable = self._types.per_cpu_at((address - self._per_cpu) & _TOP)
        return variable is not None and variable.name == "this_cpu_off"

    def jumps_to(self, address: int) -> int | None:
        """Return the register that a retpoline jumps to; None: it is none."""
        return self._functions.jumps_to(address)

    def per_cpu(self, address: int, *, is_plain: bool) -> tuple[Type | None, int] | None:
        """Return the type of the per-CPU variable at an address, and the offset in it.

        Args:
            address: in the section, as instructions have it.
            is_plain: it is not behind `gs:`. A low address may be any number then.
        """
        address &= _TOP
        if self._per_cpu is None or (is_plain and address < _HIGH):
            return None
        offset = (address - self._per_cpu) & _TOP
        variable = self._types.per_cpu_at(offset)
        return None if variable is None else (variable.type, offset - variable.offset)
