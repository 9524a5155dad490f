"""Values in foreign memory: of the kernel, of processes, and of the context."""

from __future__ import annotations

from purebpf.asm import R0, R1, R2, R3, R6
from purebpf.script import tree
from purebpf.script.constants import fold
from purebpf.script.lowering.frame import Frame, Place
from purebpf.script.script_error import ScriptError
from purebpf.script.tracepoint_fields import RecordField
from purebpf.script.types import Type, offsets, room
from purebpf.tuples import NamedTuple

__all__ = ["Foreign", "Memory"]

_READERS = {"user": "probe_read_user", "kernel": "probe_read_kernel"}
_PROBE_READ = 4
_OUTSIDE = "Array access out of bounds. This can lead to unexpected results."


class Foreign(NamedTuple):
    """A value `offset` bytes from the address in R0."""

    offset: int
    type: Type
    space: str


class Memory(Frame):
    """Reads foreign memory."""

    def scalar(self, node: tree.Expression) -> None:
        """R0 = the value of an expression."""
        raise NotImplementedError

    def store(self, node: tree.Expression, place: Place, type_: Type) -> None:
        """Put the value of an expression into memory, as a value of another type."""
        raise NotImplementedError

    def warn(self, message: str, node: tree.Node) -> None:
        """Send a warning to user space, with its place in the script."""
        raise NotImplementedError

    def constant(self, node: tree.Expression) -> int | None:
        """Return the value of an expression that is known before the script runs."""
        return fold(node, self.context.settings)

    def space_of(self, node: tree.Expression) -> str:
        """Return the memory that a pointer refers to: "kernel", "user", or "" if unknown."""
        if node.type.kind == "ptr" and node.type.space:
            return node.type.space
        match node:
            case tree.Field() | tree.Index():
                return self.space_of(node.base)
            case tree.Cast() | tree.Deref() | tree.Unary():
                return self.space_of(node.operand)
            case tree.Binary():
                return self.space_of(node.left)
            case tree.Name() if self.unit.point.kind in ("kprobe", "kretprobe"):
                return ""  # an argument can be a pointer to either
            case tree.Call() if len(node.arguments) == 1:
                return self.space_of(node.arguments[0])
        return self.unit.point.space

    def read(self, place: Place, size: int, foreign: Foreign) -> None:
        """Copy `size` bytes at R0 + offset to a place; zeros if the memory cannot be read."""
        code = self.code
        code.copy(R3, R0)
        if foreign.offset:
            code.alu("+=", R3, foreign.offset)
        self.address(R1, place)
        code.move(R2, size)
        code.call_helper(_READERS.get(foreign.space, _PROBE_READ), R1, R2, R3)

    def read_word(self, foreign: Foreign) -> None:
        """R0 = a number or pointer in foreign memory, 0 if it cannot be read."""
        mark = self.mark()
        place = self.take(8)
        size = foreign.type.size if foreign.type.size in (1, 2, 4, 8) else 8
        self.read(place, size, foreign)
        self.code.load(R0, *place, size)
        self.extend(R0, foreign.type)
        self.release(mark)

    def is_foreign(self, node: tree.Expression) -> bool:
        """Return True if the value lies in foreign memory."""
        match node:
            case tree.Deref():
                return True
            case tree.Field() | tree.Index():
                kind = node.base.type.kind
                return kind in ("ptr", "args") or (
                    kind in ("struct", "array", "string") and self.is_foreign(node.base)
                )
        return False

    def find(self, node: tree.Expression) -> Foreign:
        """R0 = the base address of a foreign value; return its distance from there.

        Raises:
            ScriptError: the value has no address.
        """
        match node:
            case tree.Field():
                return self._find_field(node)
            case tree.Index():
                return self._find_item(node)
            case tree.Deref():
                self.scalar(node.operand)
                return Foreign(0, node.type, self.space_of(node.operand))
        raise ScriptError("this value has no address", node.start, node.end)

    def _find_field(self, node: tree.Field) -> Foreign:
        base = node.base.type
        if base.kind == "args":
            return self._find_argument(node)
        if base.kind == "ptr":
            self.scalar(node.base)
            found = Foreign(0, base.target, self.space_of(node.base))
        else:
            found = self.find(node.base)
        layout = found.type.layout or base.layout
        member = layout.member(node.name) if layout is not None else None
        assert member is not None
        return Foreign(found.offset + member.offset, member.type, found.space)

    def _find_argument(self, node: tree.Field) -> Foreign:
        """Find an array, string or struct in the context."""
        field = self.argument_field(node.name)
        if field.location:
            self.load_argument(node.name)
            return Foreign(0, field.type, "kernel")
        self.code.copy(R0, R6)
        return Foreign(field.offset, field.type, "kernel")

    def argument_field(self, name: str) -> RecordField:
        """Return the place of an argument in the context."""
        assert self.unit.fields is not None
        return self.unit.fields[name]

    def load_argument(self, name: str) -> None:
        """R0 = a field of the context; the address of one that lies elsewhere in the record."""
        field, code = self.argument_field(name), self.code
        if not field.location:
            if self.unit.point.kind in ("fentry", "fexit", "rawtracepoint", "uprobe"):
                code.load(R0, R6, field.offset, 8)
                self.narrow(R0, field.type)
            else:
                code.load(R0, R6, field.offset, field.type.size)
                self.extend(R0, field.type)
            return
        code.load(R0, R6, field.offset, 4)
        code.alu("&=", R0, 0xFFFF)
        if field.location == 2:
            code.alu("+=", R0, field.offset + 4)
        code.alu_register("+=", R0, R6)

    def _find_item(self, node: tree.Index) -> Foreign:
        base, index = node.base.type, self.constant(node.index)
        size = max(1, node.type.size)
        if base.kind == "ptr":
            self.scalar(node.base)
            found = Foreign(0, base, self.space_of(node.base))
        else:
            found = self.find(node.base)
        if index is not None:
            return Foreign(found.offset + index * size, node.type, found.space)
        mark = self.mark()
        address = self.keep()
        self.scalar(node.index)
        if base.kind == "array" and base.count > 1:
            index_place, fine = self.keep(), self.code.label()
            self.code.jump("<", R0, base.count, fine)
            self.warn(_OUTSIDE, node)
            self.code.place(fine)
            self.code.load(R0, *index_place, 8)
        self.code.alu("*=", R0, size)
        self.code.load(R1, *address, 8)
        self.code.alu_register("+=", R0, R1)
        self.release(mark)
        return Foreign(found.offset, node.type, found.space)

    def foreign_scalar(self, node: tree.Expression) -> None:
        """R0 = a number in foreign memory; the address of an array or a struct."""
        if isinstance(node, tree.Field) and node.base.type.kind == "args" and node.type.is_scalar:
            self.load_argument(node.name)
            return
        found = self.find(node)
        if not node.type.is_scalar:
            if found.offset:
                self.code.alu("+=", R0, found.offset)
            return
        self.read_word(found)
        self._cut_bits(node)

    def _cut_bits(self, node: tree.Expression) -> None:
        if not isinstance(node, tree.Field):
            return
        base = node.base.type.target if node.base.type.kind == "ptr" else node.base.type
        member = base.layout.member(node.name) if base.layout is not None else None
        if member is not None and member.bits:
            self.code.alu("<<=", R0, 64 - member.bit - member.bits)
            operator = "s>>=" if member.type.signed else ">>="
            self.code.alu(operator, R0, 64 - member.bits)

    def local_scalar(self, node: tree.Field | tree.Index) -> None:
        """R0 = a number in a value that lies in our memory."""
        if self._is_searched(node):
            assert isinstance(node, tree.Index)
            self._load_element(node)
            return
        place, is_word = self.local_place(node)
        type_ = node.type
        size = 8 if is_word else type_.size
        self._load_packed(place, size)
        if not is_word:
            self.extend(R0, type_)
            self._cut_bits(node)

    def _is_searched(self, node: tree.Field | tree.Index) -> bool:
        """Return True for an element of an array in our memory whose index only the run knows."""
        if not isinstance(node, tree.Index) or node.base.type.kind not in ("array", "string"):
            return False
        return node.type.is_scalar and self.constant(node.index) is None

    def _load_element(self, node: tree.Index) -> None:
        """R0 = an element of an array or a string; 0 with a warning outside of its bounds."""
        code, base = self.code, node.base.type
        count = base.count if base.kind == "array" else base.size
        place, _ = self.local_place(node.base)
        self.scalar(node.index)
        fine, done = code.label(), code.label()
        code.jump("<", R0, count, fine)
        self.warn(_OUTSIDE, node)
        code.move(R0, 0)
        code.go(done)
        code.place(fine)
        code.alu("*=", R0, node.type.size)
        self.address(R1, place)
        code.alu_register("+=", R1, R0)
        code.load(R0, R1, 0, node.type.size)
        self.extend(R0, node.type)
        code.place(done)

    def _load_packed(self, place: Place, size: int) -> None:
        """R0 = a number on the stack; the verifier wants its place to be a multiple of its size."""
        code = self.code
        step = next(step for step in (8, 4, 2, 1) if step <= size and place.offset % step == 0)
        code.load(R0, *place, step)
        for offset in range(step, size, step):
            code.load(R1, *place.add(offset), step)
            code.alu("<<=", R1, 8 * offset)
            code.alu_register("|=", R0, R1)

    def local_place(self, node: tree.Expression) -> tuple[Place, bool]:
        """Return the place of a part of a value, and True if a number there takes a whole word."""
        if isinstance(node, tree.Field):
            place, _ = self.local_place(node.base)
            base = node.base.type
            if base.kind == "record":
                index = base.names.index(node.name)
                return place.add(offsets(base.items)[0][index]), True
            member = base.layout.member(node.name) if base.layout is not None else None
            assert member is not None
            return place.add(member.offset), False
        if isinstance(node, tree.Index) and node.base.type.kind in ("tuple", "array", "string"):
            place, _ = self.local_place(node.base)
            index_value = self.constant(node.index)
            if node.base.type.kind == "tuple":
                return place.add(offsets(node.base.type.items)[0][index_value or 0]), True
            if index_value is None:
                message = "an index that is not a number is only supported for memory"
                raise ScriptError(message, node.index.start, node.index.end)
            return place.add(index_value * max(1, node.type.size)), False
        if isinstance(node, tree.Variable):
            return self.variable(node), True
        place = self.take(room(node.type))
        self.store(node, place, node.type)
        return place, True

    def variable(self, node: tree.Variable) -> Place:
        """Return the place of a variable."""
        assert node.slot is not None
        return self.slots[id(node.slot)]
