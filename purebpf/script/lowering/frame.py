"""`Frame`: the registers and the memory of a program.

R6 is the context. R9 is the address of the program's scratch memory, if it needs some. R0 is the
value of an expression. Other values are on the stack, or in scratch memory if they are large.
"""

from __future__ import annotations

from purebpf.asm import R0, R1, R2, R3, R4, R7, R9, R10, MapName, Program
from purebpf.asm.program import Function, SourceLine, Stack
from purebpf.script import tree
from purebpf.script.lowering.layout import BUSY, SCRATCH, SCRATCH_SLOTS, ZEROS, Context
from purebpf.script.script_error import ScriptError, locate
from purebpf.script.types import Type
from purebpf.script.unit import Unit
from purebpf.tuples import NamedTuple

__all__ = ["Frame", "NeedsScratchError", "Place", "calls_user_stack"]

_STACK = 480
_ALL_STACKS = 512
_FRAME_STEP = 32
_STACK_BESIDE_WALK = 96
"""The stack that Linux 6.1 leaves to a program whose functions walk the user's stack."""
_LARGE = 64
_UNROLLED = 128
_FLAG = 8  # the first bytes of a scratch slot say that it is in use


class Place(NamedTuple):
    """Memory at `offset` bytes from the address in register `base`."""

    base: int
    offset: int

    def add(self, offset: int) -> Place:
        """Return the place `offset` bytes behind this one."""
        return Place(self.base, self.offset + offset)


class NeedsScratchError(Exception):
    """A value does not fit onto the stack, and the program has no scratch memory yet."""


class Frame:
    """The memory of one program.

    Attributes:
        code: the instructions.
        unit: the block.
        context: the maps, actions and options of the whole script.
        end: the place where the program ends.
        has_loops: True if the block has loops that the verifier must not follow turn by turn.
        functions: the bodies of loops over maps.
        in_callback: True in such a body; R7 is then the stack of the program.
    """

    def __init__(self, code: Program, unit: Unit, context: Context) -> None:
        self.code: Function = code
        self.unit, self.context = unit, context
        self.has_scratch = self.in_callback = False
        self._used = self._scratch = 0
        self.end = code.label()
        self.has_loops = any(
            isinstance(node, tree.While | tree.For) for node in tree.walk(unit.probe)
        )
        self.slots: dict[int, Place] = {}
        self.functions: list[Function] = []
        depth = _deepest_callback(unit.probe)
        share = _ALL_STACKS // (depth + 1) // _FRAME_STEP * _FRAME_STEP
        self._limit = share if depth else _STACK
        if calls_user_stack(unit.probe):
            self._limit = min(self._limit, _STACK_BESIDE_WALK)

    def outer_place(self, place: Place) -> Place:
        """Return a place in the memory of the program, as the current function reaches it."""
        is_outer = self.in_callback and place.base == R10
        return Place(R7, place.offset) if is_outer else place

    def mark_line(self, node: tree.Node) -> None:
        """Note the line of the script that the next instructions are for."""
        line, _, text = locate(self.context.text, node.start)
        self.code.source = SourceLine(self.context.name, line, text)

    def take(self, size: int) -> Place:
        """Reserve memory until `release`.

        Raises:
            NeedsScratchError: it does not fit onto the stack.
            ScriptError: the values of the block are too large.
        """
        size = -(-size // 8) * 8
        if size <= _LARGE and self._used + size <= self._limit:
            self._used += size
            return Place(R10, -self._used)
        if not self.has_scratch:
            raise NeedsScratchError
        place = Place(R9, _FLAG + self._scratch)
        self._scratch += size
        context = self.context
        context.scratch_size = max(context.scratch_size, _FLAG + self._scratch)
        if context.scratch_size > 1 << 15:
            probe = self.unit.probe
            message = "the values of this block need more than 32 KiB: lower max_strlen"
            raise ScriptError(message, probe.start, probe.points[0].end)
        return place

    def mark(self) -> tuple[int, int]:
        """Return the amounts of memory that are in use, for `release`."""
        return self._used, self._scratch

    def release(self, mark: tuple[int, int]) -> None:
        """Give back the memory that was taken since `mark`."""
        self._used, self._scratch = mark

    def acquire_scratch(self) -> None:
        """Find a slot of scratch memory that no program on this CPU uses: R9.

        Programs of system calls and uprobes can be preempted by others on the same CPU.
        """
        code, found = self.code, self.code.label()
        key = self.take(8)
        for slot in range(SCRATCH_SLOTS):
            following = code.label()
            code.store_constant(*key, slot, 4)
            code.call_helper("map_lookup_elem", MapName(SCRATCH), Stack(key.offset))
            code.jump("==", R0, 0, following)
            code.move(R1, 1)
            code.exchange(R0, 0, R1, 8)
            code.jump("==", R1, 0, found)
            code.place(following)
        self.add_to_global(BUSY, 1)
        code.go(self.end)
        code.place(found)
        code.copy(R9, R0)
        self.has_scratch = True

    def release_scratch(self) -> None:
        """Let other programs use the slot."""
        self.code.store_constant(R9, 0, 0, 8)

    def hide_constant(self) -> None:
        """Add a zero that the verifier does not know to R0.

        The verifier follows a loop turn by turn while the values of its variables are known.
        """
        self.code.map_value(R1, ZEROS)
        self.code.load(R1, R1, 0, 8)
        self.code.alu_register("+=", R0, R1)

    def task_number(self, *, is_process: bool) -> None:
        """R0 = the number of the process or of the thread in our PID namespace; 0: it has none.

        In other namespaces than the first, with bpf_get_ns_current_pid_tgid() (Linux 5.7).
        """
        code, (device, inode) = self.code, self.context.host.pid_namespace
        if not inode:
            code.call_helper("get_current_pid_tgid")
            if is_process:
                code.alu(">>=", R0, 32)
            else:
                code.zero_extend(R0)
            return
        mark = self.mark()
        place, found = self.take(8), code.label()  # struct bpf_pidns_info: the thread, the process
        code.move(R1, device)
        code.move(R2, inode)
        self.address(R3, place)
        code.move(R4, 8)
        code.call_helper("get_ns_current_pid_tgid", R1, R2, R3, R4)
        code.jump("==", R0, 0, found)
        code.store_constant(*place, 0, 8)
        code.place(found)
        code.load(R0, *place.add(4 if is_process else 0), 4)
        self.release(mark)

    def add_to_global(self, offset: int, amount: int) -> None:
        """Add a number to a word of the globals in one step."""
        self.code.map_value(R1, "globals", offset)
        self.code.move(R2, amount)
        self.code.atomic_add(R1, 0, R2, 8)

    def address(self, register: int, place: Place) -> None:
        """`register` = the address of a place."""
        if register != place.base:
            self.code.copy(register, place.base)
        if place.offset:
            self.code.alu("+=", register, place.offset)

    def zero(self, place: Place, size: int) -> None:
        """Clear memory of a multiple of 8 bytes."""
        if size <= _UNROLLED:
            for offset in range(0, size, 8):
                self.code.store_constant(*place.add(offset), 0, 8)
            return
        self.context.zeros_size = max(self.context.zeros_size, size)
        self.address(R1, place)
        self.code.move(R2, size)
        self.code.map_value(R3, ZEROS)
        self.code.call_helper("probe_read_kernel", R1, R2, R3)

    def copy_memory(self, target: Place, source: Place, size: int) -> None:
        """Copy a multiple of 8 bytes between places that the verifier knows."""
        if size <= _UNROLLED:
            for offset in range(0, size, 8):
                self.code.load(R3, *source.add(offset), 8)
                self.code.store(target.base, target.offset + offset, R3, 8)
            return
        self.address(R3, source)
        self.address(R1, target)
        self.code.move(R2, size)
        self.code.call_helper("probe_read_kernel", R1, R2, R3)

    def extend(self, register: int, type_: Type) -> None:
        """Extend the sign of an integer that was loaded with its own size."""
        if type_.kind == "int" and type_.signed and type_.size < 8:
            self.code.alu("<<=", register, 64 - 8 * type_.size)
            self.code.alu("s>>=", register, 64 - 8 * type_.size)

    def narrow(self, register: int, type_: Type) -> None:
        """Cut an integer to the size of a type, and extend its sign."""
        if type_.kind != "int" or type_.size == 8:
            return
        if type_.size == 4 and not type_.signed:
            self.code.zero_extend(register)
            return
        bits = 64 - 8 * type_.size
        self.code.alu("<<=", register, bits)
        self.code.alu("s>>=" if type_.signed else ">>=", register, bits)

    def keep(self) -> Place:
        """Put R0 into memory."""
        place = self.take(8)
        self.code.store(place.base, place.offset, R0, 8)
        return place


def calls_user_stack(node: tree.Node) -> bool:
    """Return True if a part of a script needs the user's stack."""
    return any(
        isinstance(part, tree.Name | tree.Call) and part.name == "ustack"
        for part in tree.walk(node)
    )


def _deepest_callback(node: tree.Node) -> int:
    """Return how many loops over maps, or calls of len(), lie in each other."""
    deepest = 0
    for name in node._fields:
        part = getattr(node, name)
        for inner in part if isinstance(part, list) else (part,):
            if isinstance(inner, tree.Node):
                deepest = max(deepest, _deepest_callback(inner))
    is_loop = isinstance(node, tree.For) and isinstance(node.source, tree.Map)
    counts = isinstance(node, tree.Call) and node.name == "len"
    return deepest + (is_loop or counts)
