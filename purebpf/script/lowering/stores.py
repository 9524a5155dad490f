"""Values in memory: strings, tuples, structs, and values that user space turns into text."""

from __future__ import annotations

from purebpf.abi.assembler import Label
from purebpf.asm import R0, R1, R2, R3, R6
from purebpf.script import tree
from purebpf.script.lowering.conditions import Conditions
from purebpf.script.lowering.frame import Place
from purebpf.script.lowering.memory import Foreign
from purebpf.script.script_error import ScriptError
from purebpf.script.types import CHAR, U64, Type, offsets, room, spell

__all__ = ["PROBE_READ_STR", "STRING_READERS", "Stores"]

STRING_READERS = {"user": "probe_read_user_str", "kernel": "probe_read_kernel_str"}
PROBE_READ_STR = 45
_COMM_SIZE = 16
_FAMILIES = {4: 2, 16: 10}  # AF_INET, AF_INET6


class Stores(Conditions):
    """Puts values of all types into memory. Strings are padded with zeros."""

    def locate(self, node: tree.Expression) -> Place:
        """Return the place of a value that is no number."""
        if isinstance(node, tree.Variable):
            return self.variable(node)
        is_part = isinstance(node, tree.Field | tree.Index) and not self.is_foreign(node)
        if is_part and node.type.kind != "string":
            return self.local_place(node)[0]
        place = self.take(room(node.type))
        self.store(node, place, node.type)
        return place

    def store(self, node: tree.Expression, place: Place, type_: Type) -> None:
        """Put the value of an expression into memory, as a value of another type."""
        if isinstance(node, tree.Call) and node.expansion is not None:
            node = node.expansion
        mark = self.mark()
        if isinstance(node, tree.BlockValue):
            self.statements(node.statements)
            if node.result is not None:
                self.store(node.result, place, type_)
        elif isinstance(node, tree.Ternary) and not type_.is_scalar:
            self._store_ternary(node, place, type_)
        elif type_.is_scalar:
            self.scalar(node)
            if self.has_loops:
                self.hide_constant()
            self.narrow(R0, type_)
            self.code.store(place.base, place.offset, R0, 8)
        elif type_.kind == "string":
            self._store_string(node, place, room(type_))
        elif type_.kind in ("tuple", "record"):
            self._store_items(node, place, type_)
        else:
            self._store_other(node, place, type_)
        self.release(mark)

    def _store_ternary(self, node: tree.Ternary, place: Place, type_: Type) -> None:
        code = self.code
        yes, no, done = code.label(), code.label(), code.label()
        self.condition(node.test, yes, no)
        code.place(yes)
        self.store(node.yes, place, type_)
        code.go(done)
        code.place(no)
        self.store(node.no, place, type_)
        code.place(done)

    def _store_items(self, node: tree.Expression, place: Place, type_: Type) -> None:
        if isinstance(node, tree.Tuple | tree.Record):
            if not node.items:
                self.code.store_constant(*place, 0, 8)
            places = offsets(type_.items)[0]
            for number, item in enumerate(node.items):  # in the order in which they are written
                index = number
                if isinstance(node, tree.Record):
                    index = type_.names.index(node.names[number])
                self.store(item, place.add(places[index]), type_.items[index])
            return
        self.convert(self._source(node), node.type, place, type_)

    def convert(self, source: Place, old: Type, target: Place, new: Type) -> None:
        """Copy a value, and widen its strings."""
        if old.kind in ("tuple", "record"):
            places, targets = offsets(old.items)[0], offsets(new.items)[0]
            for index, name in enumerate(new.names or old.items):
                place = old.names.index(str(name)) if new.names else index
                self.convert(source.add(places[place]), old.items[place],
                             target.add(targets[index]), new.items[index])  # fmt: skip
            return
        size, most = room(old), room(new)
        self.copy_memory(target, source, min(size, most))
        if most > size:
            self.zero(target.add(size), most - size)

    def _source(self, node: tree.Expression) -> Place:
        """Return the place of a variable's, a map's or an item's value."""
        if isinstance(node, tree.Map):
            info = self.map_info(node)
            assert info.value is not None
            place = self.take(room(info.value))
            self.copy_value(info, node.key, place)
            return place
        if isinstance(node, tree.Variable | tree.Field | tree.Index) and not self.is_foreign(node):
            return self.local_place(node)[0]
        raise ScriptError(f"a value of type '{spell(node.type)}' is not supported here",
                          node.start, node.end)  # fmt: skip

    # strings

    def _store_string(self, node: tree.Expression, place: Place, size: int) -> None:
        text = self.literal(node)
        if text is not None:
            self._store_literal(text, place, size)
            return
        match node:
            case tree.Call(name="str"):
                self._read_string(node, place, size)
            case tree.Call(name="path"):
                self._store_path(node, place, size)
            case tree.Name(name="comm"):
                self._store_comm(place, size)
            case tree.Name(name="pcomm" | "leader_comm"):
                first = "real_parent" if node.name == "pcomm" else "group_leader"
                self.task_member(node, first, "comm")
                self._read_text(place, size, Foreign(0, node.type, "kernel"), _COMM_SIZE)
            case tree.Name(name="probetype"):
                kind = self.unit.point.kind
                word = "special" if kind in ("begin", "end") else kind
                self._store_literal(word.encode(), place, size)
            case tree.Call(name="", arguments=[inner]):
                self._store_string(inner, place, size)
            case _ if self.is_foreign(node):
                self._read_array(place, size, self.find(node), node.type.size)
            case _:
                self._copy_string(node, place, size)

    def _store_path(self, node: tree.Call, place: Place, size: int) -> None:
        """Store the path of a `struct path` that the context leads to; "" without one."""
        code, size_here = self.code, min(size, node.type.size)
        self.zero(place, size)
        done = code.label()
        if offset := self.load_trusted(node.arguments[0], done):
            code.alu("+=", R0, offset)
        self.address(R2, place)
        code.move(R3, size_here)
        code.call_helper("d_path", R0, R2, R3)
        code.place(done)

    def load_trusted(self, node: tree.Expression, done: Label) -> int:
        """R0 = the address of a value that the context leads to, by loads that the kernel trusts.

        It goes to `done` if a pointer is null. Returns the distance that is not in R0 yet.
        """
        code = self.code
        if isinstance(node, tree.AddressOf):
            node = node.operand
        if isinstance(node, tree.Name):
            code.copy(R0, R6)
            return 0
        assert isinstance(node, tree.Field)
        base = node.base
        if base.type.kind == "args":
            self.load_trusted(base, done)
            offset = self.argument_field(node.name).offset
        else:
            offset = self.load_trusted(base, done)
            outer = base.type.target if base.type.kind == "ptr" else base.type
            member = outer.layout.member(node.name) if outer.layout is not None else None
            assert member is not None
            offset += member.offset
        if node.type.kind == "ptr":
            code.load(R0, R0, offset, 8)
            code.jump("==", R0, 0, done)
            return 0
        return offset

    def _copy_string(self, node: tree.Expression, place: Place, size: int) -> None:
        source = self._source(node)
        is_member = isinstance(node, tree.Field | tree.Index) and node.base.type.kind == "struct"
        if is_member:
            self.address(R0, source)
            self._read_array(place, size, Foreign(0, node.type, "kernel"), node.type.size)
        else:
            self.convert(source, node.type, place, Type("string", size))

    def _store_literal(self, text: bytes, place: Place, size: int) -> None:
        text = text.partition(b"\0")[0][: size - 1]
        filled = -(-(len(text) + 1) // 8) * 8
        self.store_bytes(text.ljust(filled, b"\0"), place)
        if size > filled:
            self.zero(place.add(filled), size - filled)

    def store_bytes(self, data: bytes, place: Place) -> None:
        """Put bytes into memory, with zeros up to a multiple of 8."""
        code = self.code
        filled = -(-len(data) // 8) * 8
        padded = data.ljust(filled, b"\0")
        for offset in range(0, filled, 8):
            word = int.from_bytes(padded[offset : offset + 8], "little")
            if word < 1 << 31:
                code.store_constant(*place.add(offset), word, 8)
            else:
                code.move(R0, word)
                code.store(place.base, place.offset + offset, R0, 8)

    def _store_comm(self, place: Place, size: int) -> None:
        if size > _COMM_SIZE:
            self.zero(place.add(_COMM_SIZE), size - _COMM_SIZE)
        self.address(R1, place)
        self.code.move(R2, min(size, _COMM_SIZE))
        self.code.call_helper("get_current_comm", R1, R2)

    def _read_array(self, place: Place, size: int, found: Foreign, longest: int) -> None:
        """Read a string that fills an array of `longest` bytes at R0 + offset, or ends before.

        The helper puts a NUL into the last byte, which may be a character.
        """
        code = self.code
        kept = self._read_text(place, size, found, longest)
        if longest > size:
            return
        done = code.label()
        code.jump("!=", R0, longest, done)
        code.load(R0, *kept, 8)
        self.read(place.add(longest - 1), 1, Foreign(longest - 1, CHAR, found.space))
        code.place(done)

    def _read_text(self, place: Place, size: int, found: Foreign, longest: int) -> Place:
        """Read a string of at most `longest` bytes with its NUL at R0 + offset.

        R0 = the bytes that were read, negative if there are none.

        Returns:
            the place that has the address.
        """
        code = self.code
        if found.offset:
            code.alu("+=", R0, found.offset)
        kept = self.keep()
        self.zero(place, size)
        code.load(R3, *kept, 8)
        code.move(R2, min(size, longest))
        self.address(R1, place)
        helper: str | int = STRING_READERS.get(found.space, PROBE_READ_STR)
        code.call_helper(helper, R1, R2, R3)
        return kept

    def _read_string(self, node: tree.Call, place: Place, size: int) -> None:
        argument = node.arguments[0]
        size_here = min(size, node.type.size)
        length = node.arguments[1] if len(node.arguments) > 1 else None
        is_constant = length is None or self.constant(length) is not None
        if is_constant and argument.type.kind in ("string", "array"):
            if argument.type.kind == "string" and not self.is_foreign(argument):
                self._cut_string(node, place, size)
                return
            found, longest = self.find(argument), min(size_here, argument.type.size)
            if longest == argument.type.size:
                self._read_array(place, size, found, longest)
            else:
                self._read_text(place, size, found, longest)
            return
        self.scalar(argument)
        address = self.keep()
        self.zero(place, size)
        code = self.code
        if length is None or is_constant:
            code.move(R2, size_here)
        else:
            self.scalar(length)
            code.copy(R2, R0)
            fine = code.label()
            code.jump("<=", R2, size_here, fine)
            code.move(R2, size_here)
            code.place(fine)
        code.load(R3, *address, 8)
        self.address(R1, place)
        helper: str | int = STRING_READERS.get(self.space_of(argument), PROBE_READ_STR)
        code.call_helper(helper, R1, R2, R3)

    def _cut_string(self, node: tree.Call, place: Place, size: int) -> None:
        """Copy a string, and cut it to the length that str() got."""
        argument = node.arguments[0]
        self._store_string(argument, place, size)
        if node.type.size < argument.type.size and node.type.size <= size:
            for offset in range(node.type.size - 1, min(size, room(argument.type))):
                self.code.store_constant(*place.add(offset), 0, 1)

    # values that become text in user space

    def _store_other(self, node: tree.Expression, place: Place, type_: Type) -> None:
        code = self.code
        if isinstance(node, tree.Call) and node.name == "" and node.arguments:
            self._store_other(node.arguments[0], place, type_)
        elif isinstance(node, tree.Name) and node.name == "ustack":
            self.store_user_stack(place)
        elif isinstance(node, tree.Name) and node.name == "func":
            self.scalar(node)
            code.store(place.base, place.offset, R0, 8)
            self.store_pid(place.add(8))
        elif isinstance(node, tree.Call) and node.name == "buf":
            self._store_buffer(node, place, type_)
        elif isinstance(node, tree.Call):
            self._store_call(node, place)
        elif isinstance(node, tree.Cast) and type_.kind == "array":
            inner = node.operand.type
            self.store(node.operand, place, inner if inner.kind == "string" else U64)
        elif node.type.kind == "args":
            code.copy(R0, R6)
            self.read(place, node.type.size, Foreign(0, node.type, "kernel"))
        elif type_.kind in ("struct", "array") and self.is_foreign(node):
            found = self.find(node)
            size = node.type.size
            if size % 8:
                kept = self.keep()
                self.zero(place, room(type_))
                code.load(R0, *kept, 8)
            self.read(place, size, found)
        else:
            self.convert(self._source(node), node.type, place, type_)

    def _store_call(self, node: tree.Call, place: Place) -> None:
        code, arguments = self.code, node.arguments
        match node.name:
            case "ustack":
                self.store_user_stack(place)
            case "usym":
                self.scalar(arguments[0])
                code.store(place.base, place.offset, R0, 8)
                self.store_pid(place.add(8))
            case "strftime":
                self.scalar(arguments[1])
                code.store(place.base, place.offset, R0, 8)
            case "macaddr":
                self._store_mac(arguments[0], place)
            case "pton":
                from ipaddress import ip_address

                text = arguments[0]
                assert isinstance(text, tree.String)
                self.store_bytes(ip_address(text.value).packed, place)
            case "ntop":
                self._store_address(node, place)
            case _:
                message = f"{node.name}() cannot be used here"
                raise ScriptError(message, node.start, node.end)

    def _store_mac(self, address: tree.Expression, place: Place) -> None:
        self.code.store_constant(*place, 0, 8)
        if address.type.is_scalar:
            self.scalar(address)
            self.read(place, 6, Foreign(0, address.type, self.space_of(address)))
        elif self.is_foreign(address):
            self.read(place, 6, self.find(address))
        else:
            source = self.locate(address)
            for offset in range(6):
                self.code.load(R0, source.base, source.offset + offset, 1)
                self.code.store(place.base, place.offset + offset, R0, 1)

    def _store_buffer(self, node: tree.Call, place: Place, type_: Type) -> None:
        """Put a length of 8 bytes and then the bytes into memory."""
        code, source = self.code, node.arguments[0]
        self.zero(place, room(type_))
        size = node.type.size
        length = node.arguments[1] if len(node.arguments) == 2 else None
        code.store_constant(*place, size, 8)
        if length is not None and self.constant(length) is None:
            fine = code.label()
            self.scalar(length)
            code.jump("<=", R0, size, fine)
            code.move(R0, size)
            code.place(fine)
            code.store(place.base, place.offset, R0, 8)
        elif length is not None and self.constant(length) == 0:
            code.store_constant(*place, 0, 8)
            return
        if not source.type.is_scalar and not self.is_foreign(source):
            local = self.locate(source)
            self.copy_memory(place.add(8), local, min(room(source.type), room(type_) - 8))
            return
        if source.type.is_scalar:
            self.scalar(source)
            found = Foreign(0, source.type, self.space_of(source))
        else:
            found = self.find(source)
        self._read_length(place, size, found)

    def _read_length(self, place: Place, size: int, found: Foreign) -> None:
        """Read the bytes of a buffer, as many as its length says."""
        code, fine = self.code, self.code.label()
        code.copy(R3, R0)
        code.alu("+=", R3, found.offset)
        code.load(R2, *place, 8)
        code.jump("<=", R2, size, fine)
        code.move(R2, size)
        code.place(fine)
        self.address(R1, place.add(8))
        readers = {"user": "probe_read_user", "kernel": "probe_read_kernel"}
        code.call_helper(readers.get(found.space, 4), R1, R2, R3)

    def _store_address(self, node: tree.Call, place: Place) -> None:
        """Put an address family and an internet address into memory."""
        code, address = self.code, node.arguments[-1]
        self.zero(place.add(8), 16)
        if address.type.kind == "int":
            self.scalar(address)
            code.store(place.base, place.offset + 8, R0, 4)
            size = 4
        else:
            size = 16 if address.type.size >= 16 else 4
            if self.is_foreign(address):
                self.read(place.add(8), size, self.find(address))
            else:
                source = self.locate(address)
                for offset in range(0, size, 4):
                    code.load(R0, source.base, source.offset + offset, 4)
                    code.store(place.base, place.offset + 8 + offset, R0, 4)
        if len(node.arguments) == 2:
            self.scalar(node.arguments[0])
            code.store(place.base, place.offset, R0, 8)
        else:
            code.store_constant(*place, _FAMILIES[size], 8)
